"""The homeserver's client-server API (Matrix 1.11 and later), over one connection that is kept open."""

import http.client
import json
import re
import ssl
from collections.abc import Iterator
from functools import cache
from math import isfinite
from time import sleep
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, quote, urlencode, urlsplit
from uuid import uuid4

from headwater.sdk import Fail, RunContext

CLIENT: Final = "/_matrix/client/v3"
ANSWER_BYTES: Final = 64 * 1024 * 1024
TIMEOUT_SECONDS: Final = 60
BACK_OFF_SECONDS: Final = (0.5, 2.0)
# How often a token that expired is asked for again before there is an answer: the next one can expire as well.
RENEWALS: Final = 3
# How long one answer may ask to wait, how long is waited where it says nothing, and how long in all of a run.
LIMITED_MAX_SECONDS: Final = 60.0
LIMITED_SECONDS: Final = 5.0
LIMITED_MIN_SECONDS: Final = 0.2
PATIENCE_SECONDS: Final = 300.0

_LOOPBACK: Final = {"localhost", "127.0.0.1", "::1"}
_CHUNK_BYTES: Final = 256 * 1024
_MEDIA = re.compile(r"mxc://([A-Za-z0-9\[][A-Za-z0-9.:\[\]-]{0,254})/([A-Za-z0-9_-]{1,255})")
# Half a surrogate pair and NUL have an escape in JSON, and no place in UTF-8 or in every database.
_UNFIT = re.compile(rb"\\u(?:[dD][89a-fA-F]|0000)")
_ASKED: Final = {
    "type": "object",
    "properties": {
        "access_token": {"type": "string", "format": "password", "title": "Access token", "minLength": 1},
    },
    "required": ["access_token"],
}


class Refused(Exception):
    """The homeserver's answer is a refusal that is about what was asked, and not about the session."""

    def __init__(self, status: int = 0, reason: str = "") -> None:
        self.status, self.reason = status, reason
        super().__init__(reason or f"the homeserver answered {status}")


class Answer(NamedTuple):
    """What the homeserver said; status 0 where it said nothing."""

    status: int = 0
    body: bytes = b""
    retry_after: str = ""


class Homeserver:
    """One session of one account at a homeserver. No proxy is used and no redirect is followed."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        url = _endpoint(run)
        self._path = url.path.rstrip("/")
        if url.scheme == "https":
            secure = ssl.create_default_context()
            self._link: http.client.HTTPConnection = http.client.HTTPSConnection(
                url.hostname or "", url.port, timeout=TIMEOUT_SECONDS, context=secure
            )
        else:
            self._link = http.client.HTTPConnection(url.hostname or "", url.port, timeout=TIMEOUT_SECONDS)
        self._waited = 0.0
        self._headers = self._signed_in()
        self.account = str(self.get("/account/whoami").get("user_id"))

    def get(self, path: str, **query: str | int) -> dict[str, Any]:
        """Return the object at a path below the client API; raise `Refused` where there is none."""
        target = f"{self._path}{CLIENT}{path}"
        answer = self._patiently(f"{target}?{urlencode(query)}" if query else target)
        said = _object(answer.body)
        if answer.status != 200:
            raise Refused(answer.status)
        if said is None:
            raise Fail("The homeserver's answer is no JSON object.", hint="retry_by_runtime", code="upstream_failed")
        return said

    def sync(self, room_filter: dict[str, Any], since: str = "") -> dict[str, Any]:
        """Return what is new since a token, or all; nobody is shown as present for it, and it waits for nothing."""
        nothing: dict[str, Any] = {"types": []}
        rooms = {"account_data": nothing, "ephemeral": nothing, "include_leave": True, **room_filter}
        said: dict[str, Any] = {"room": rooms, "account_data": nothing, "presence": nothing}
        if not since:
            # Synapse has the same answer for some minutes to a sync from the beginning with the same filter.
            said["headwater.dev/asked"] = uuid4().hex
        query = {"filter": json.dumps(said, separators=(",", ":")), "timeout": "0", "set_presence": "offline"}
        answer = self.get("/sync", **query, **({"since": since} if since else {}))
        if not isinstance(answer.get("next_batch"), str):
            raise Fail("The homeserver's answer has no next_batch.", hint="retry_by_runtime", code="upstream_failed")
        return answer

    def event(self, room: str, event: str) -> dict[str, Any] | None:
        """Return an event as it is by now, with its newest edit; None where the account cannot see it."""
        try:
            return self.get(f"/rooms/{quote(room, safe='')}/event/{quote(event, safe='')}")
        except Refused as refusal:
            if 400 <= refusal.status < 500:
                return None
            raise

    def media(self, address: str, limit_bytes: int) -> Iterator[bytes]:
        """Yield the bytes at an mxc: address; raise `Refused`, with `too_large` where there are more than the limit."""
        found = _MEDIA.fullmatch(address)
        if found is None:
            raise Refused(reason="no_address")
        place = f"{quote(found[1], safe='')}/{quote(found[2], safe='')}"
        target = f"{self._path}/_matrix/client/v1/media/download/{place}"
        answer = self._patiently(target, keep_body=False)
        if answer.status != 200:
            raise Refused(answer.status)
        yield from self._chunks(limit_bytes)

    def _chunks(self, limit_bytes: int) -> Iterator[bytes]:
        left = limit_bytes
        try:
            if (self._response.length or 0) > left:
                raise Refused(reason="too_large")
            while chunk := self._response.read(_CHUNK_BYTES):
                left -= len(chunk)
                if left < 0:
                    raise Refused(reason="too_large")
                yield chunk
        except (OSError, http.client.HTTPException):
            raise Refused(reason="broken_off") from None
        finally:
            if not self._response.isclosed():
                self._link.close()

    def _signed_in(self) -> dict[str, str]:
        token = self._run.ask("credentials", "Sign in to Matrix.", _ASKED).get("access_token")
        if not isinstance(token, str) or not re.fullmatch(r"[\x21-\x7e]{1,8192}", token):
            raise _rejected()
        return {"Authorization": f"Bearer {token}"}

    def _renewed(self, answer: Answer) -> bool:
        """Ask for a newer token where the session goes on and only its token expired; return whether there is one."""
        if (_object(answer.body) or {}).get("soft_logout") is not True:
            return False
        before, self._headers = self._headers, self._signed_in()
        return self._headers != before

    def _patiently(self, target: str, *, keep_body: bool = True) -> Answer:
        """Ask until there is an answer that means something, within bounds."""
        pauses, renewals = iter(BACK_OFF_SECONDS), 0
        while True:
            answer = self._once(target, keep_body=keep_body)
            if answer.status == 429:
                self._wait(_pause(answer))
            elif answer.status == 401:
                renewals += 1
                if renewals > RENEWALS or not self._renewed(answer):
                    raise _rejected()
            elif answer.status == 0 or answer.status >= 500:
                pause = next(pauses, None)
                if pause is None and answer.status:
                    return self._surrendered(answer, keep_body=keep_body)
                if pause is None:
                    raise Fail("The homeserver cannot be reached.", hint="retry_by_runtime", code="unreachable")
                sleep(pause)
            else:
                return answer

    def _surrendered(self, answer: Answer, *, keep_body: bool) -> Answer:
        """A fault of the homeserver ends the run, unless it is about one file."""
        if keep_body:
            raise Fail("The homeserver fails.", hint="retry_by_runtime", code="upstream_failed")
        return answer

    def _wait(self, seconds: float) -> None:
        self._waited += seconds
        if seconds > LIMITED_MAX_SECONDS or self._waited > PATIENCE_SECONDS:
            told = "The homeserver asks to wait longer than a run may."
            raise Fail(told, hint="retry_by_runtime", code="rate_limited")
        self._run.progress(f"The homeserver asks to wait {seconds:.0f} s")
        sleep(seconds)

    def _once(self, target: str, *, keep_body: bool) -> Answer:
        try:
            self._link.request("GET", target, headers=self._headers)
            self._response = self._link.getresponse()
            if self._response.status == 200 and not keep_body:
                return Answer(200)
            body = self._response.read(ANSWER_BYTES + 1)
        except (OSError, http.client.HTTPException):
            self._link.close()
            return Answer()
        if len(body) > ANSWER_BYTES:
            self._link.close()
            raise Fail("The homeserver's answer is larger than 64 MiB.", retryable=False, code="answer_too_large")
        return Answer(self._response.status, body, self._response.getheader("Retry-After", ""))


@cache
def homeserver_of(run: RunContext) -> Homeserver:
    """Sign in once for all the streams of a run."""
    return Homeserver(run)


def _endpoint(run: RunContext) -> SplitResult:
    try:
        url = urlsplit(str(run.options.get("endpoint", "")))
        known = url.port is None or url.port > 0
    except ValueError:
        known = False
    safe = known and (url.scheme == "https" or (url.scheme == "http" and url.hostname in _LOOPBACK))
    if not safe or not url.hostname or url.username is not None:
        told = "Set the option `endpoint` to the https address of a homeserver."
        raise Fail(told, retryable=False, hint="manual_action_required")
    return url


def _rejected() -> Fail:
    told = "The homeserver does not know this session any more."
    return Fail(told, retryable=False, hint="refresh_credentials", code="credential_rejected")


def _pause(answer: Answer) -> float:
    """Return how many seconds a refusal over the rate asks to wait."""
    asked = (_object(answer.body) or {}).get("retry_after_ms")
    if isinstance(asked, int | float):
        seconds = min(asked, 2000 * LIMITED_MAX_SECONDS) / 1000
    else:
        seconds = float(answer.retry_after) if answer.retry_after.isdecimal() else LIMITED_SECONDS
    return max(LIMITED_MIN_SECONDS, seconds)


def _object(body: bytes) -> dict[str, Any] | None:
    """Read an answer; None where it is no JSON object."""
    try:
        said = json.loads(body, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    return dict(_fitting(said)) if _UNFIT.search(body) else said


def _no_number(name: str) -> None:
    raise ValueError(name)


def _finite(text: str) -> float | str:
    number = float(text)
    return number if isfinite(number) else text


def _fitting(value: Any) -> Any:
    """Replace the characters that no text may hold."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")
    if isinstance(value, dict):
        return {_fitting(name): _fitting(item) for name, item in value.items()}
    return [_fitting(item) for item in value] if isinstance(value, list) else value
