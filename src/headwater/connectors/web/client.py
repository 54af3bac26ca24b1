"""A client that waits for nothing for ever: origins that were let in, bounded answers, tries that end. No proxy."""

import http.client
import json
import ssl
import threading
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from socket import SHUT_RDWR, socket
from time import sleep
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from headwater.sdk import Fail

MIB: Final = 1024 * 1024
# A connection; one exchange, from the first byte of the request to the last of the answer; what an answer may hold.
CONNECT_SECONDS: Final = 30.0
EXCHANGE_SECONDS: Final = 180.0
BODY_BYTES: Final = 64 * MIB
# The wait before each further try, and the longest that a provider may ask for within a run.
BACK_OFF_SECONDS: Final = (0.5, 1.5)
PATIENCE_SECONDS: Final = 60.0
REDIRECTS: Final = 5

_CHUNK_BYTES: Final = 256 * 1024
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class Answer:
    """What came back. Status 0 means that nothing whole did, and `fault` says why; `url` is where it came from."""

    status: int
    url: str
    headers: Message = field(default_factory=Message)
    body: bytes = b""
    fault: str = ""

    @property
    def is_passing(self) -> bool:
        """Whether the fault may be gone after a while."""
        return self.status in {0, 429} or self.status >= 500

    def json(self) -> Any:
        """Return the body's value, or raise `Fail` where it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise Fail("The provider answered something that is not JSON.", code="provider_protocol_error") from error


def retry_after(answer: Answer) -> float | None:
    """Return the seconds that an answer asks to wait for (RFC 9110, 10.2.3), None where it does not say."""
    text = answer.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdecimal():
        return float(text[:9])
    with suppress(ValueError):
        return max(0.0, (_moment(text) - said_at(answer)).total_seconds())
    return None


def said_at(answer: Answer) -> datetime:
    """Return the provider's own time: its clock and ours may differ."""
    with suppress(ValueError):
        return _moment(answer.headers.get("Date", ""))
    return datetime.now(UTC)


def _moment(text: str) -> datetime:
    moment = parsedate_to_datetime(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def passing_wait(answer: Answer) -> float | None:
    """Return how long to wait before the same is asked again, None where that would change nothing."""
    return (retry_after(answer) or 0.0) if answer.is_passing and answer.fault not in _LASTING else None


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL, the port always written; empty where it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    except ValueError:
        return ""
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}" if host and port else ""


def endpoint_of(options: Mapping[str, Any], default: str = "") -> str:
    """Return the option `endpoint`, or end the run: https, or http to this machine or where `allow_http` is set."""
    endpoint = options.get("endpoint", default)
    parts = urlsplit(endpoint) if isinstance(endpoint, str) and origin_of(endpoint) else None
    if parts is None or "@" in parts.netloc or parts.query or parts.fragment:
        raise Fail("Set the option `endpoint` to an https:// address.", retryable=False, hint="manual_action_required")
    if parts.scheme != "https" and parts.hostname not in _LOOPBACK and options.get("allow_http") is not True:
        raise Fail(
            "The option `endpoint` is not https, so that anybody on the way could read the credentials.",
            retryable=False,
            hint="manual_action_required",
        )
    return parts.geturl()


def entered(answer: Mapping[str, Any], name: str) -> str:
    """Return what the owner entered, or end the run where it is missing."""
    value = answer.get(name)
    if isinstance(value, str) and value:
        return value
    raise Fail(f"The answer has no {name}.", retryable=False, hint="manual_action_required")


class Client:
    """Asks the origins that `admits` lets in, with the same headers each. A connection is kept for each origin.

    `wait` says of an answer how long to wait before the request is sent again. Redirects are followed to admitted
    origins only: the headers carry the owner's credentials.
    """

    def __init__(
        self,
        headers: Mapping[str, str],
        admits: Callable[[str], bool],
        wait: Callable[[Answer], float | None] = passing_wait,
    ) -> None:
        self._headers = {"User-Agent": "headwater", "Accept-Encoding": "gzip", **headers}
        self._admits, self._wait = admits, wait
        self._links: dict[str, http.client.HTTPConnection] = {}
        self.requests = 0

    def ask(
        self, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] | None = None, *, tries: int = 3
    ) -> Answer:
        """Send a request that changes nothing, and return the last answer, redirects followed."""
        if not self._admits(origin_of(url)):
            return Answer(0, url, fault="it is on another server")
        for redirect in range(REDIRECTS + 1):
            answer = self._patiently(_Request(method, url, body, {**self._headers, **(headers or {})}), tries)
            target = urljoin(url, answer.headers.get("Location", ""))
            moved = answer.status in {301, 302, 307, 308} and "Location" in answer.headers
            if not moved or redirect == REDIRECTS or not self._admits(origin_of(target)):
                return answer
            url = target
        raise AssertionError

    def _patiently(self, request: "_Request", tries: int) -> Answer:
        answer = self._once(request)
        for back_off in BACK_OFF_SECONDS[: tries - 1]:
            wait = self._wait(answer)
            if wait is None or wait > PATIENCE_SECONDS:
                break
            sleep(max(wait, back_off))
            answer = self._once(request)
        return answer

    def _once(self, request: "_Request") -> Answer:
        origin = origin_of(request.url)
        self.requests += 1
        kept = self._links.get(origin)
        answer = _exchange(kept, request) if kept is not None else Answer(0, request.url, fault=_CUT)
        if answer.fault == _CUT:
            # Either there was no connection, or the other side had closed it meanwhile, which is no try.
            self._links[origin] = _opened(origin)
            answer = _exchange(self._links[origin], request)
        if answer.fault:
            del self._links[origin]
        return answer


class _Request(NamedTuple):
    method: str
    url: str
    body: bytes
    headers: Mapping[str, str]

    @property
    def target(self) -> str:
        parts = urlsplit(self.url)
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _exchange(link: http.client.HTTPConnection, request: _Request) -> Answer:
    """Send a request and read the whole answer. When its time is over, the socket is shut down under it."""
    late = threading.Event()

    def cut() -> None:
        late.set()
        with suppress(OSError, AttributeError):
            socket.shutdown(link.sock, SHUT_RDWR)

    timer = threading.Timer(EXCHANGE_SECONDS, cut)
    timer.daemon = True
    timer.start()
    try:
        _connect(link)
        link.request(request.method, request.target, request.body or None, request.headers)
        response = link.getresponse()
        content = _content(response)
    except (OSError, ValueError, http.client.HTTPException, zlib.error, _TooLargeError) as error:
        link.close()
        return Answer(0, request.url, fault=_fault(error, late))
    finally:
        timer.cancel()
    if late.is_set():
        return Answer(0, request.url, fault=_SLOW)
    return Answer(response.status, request.url, response.headers, content)


def _connect(link: http.client.HTTPConnection) -> None:
    """Connect, if it is not; then only the time of the whole exchange counts: a server may think long."""
    if getattr(link, "sock", None) is None:
        link.connect()
        link.sock.settimeout(EXCHANGE_SECONDS)


_CUT: Final = "the connection broke off"
_SLOW: Final = "it took too long"
_LARGE: Final = "its answer is too large"
_UNTRUSTED: Final = "its certificate cannot be trusted"
_LASTING: Final = frozenset({_SLOW, _LARGE, _UNTRUSTED})


class _TooLargeError(Exception):
    """More came than an answer may hold."""


def _fault(error: Exception, late: threading.Event) -> str:
    """Name a fault in words of our own: the other side's words may hold anything."""
    if late.is_set() or isinstance(error, TimeoutError):
        return _SLOW
    if isinstance(error, _TooLargeError):
        return _LARGE
    if isinstance(error, ssl.SSLCertVerificationError):
        return _UNTRUSTED
    return _CUT if isinstance(error, ConnectionError | http.client.HTTPException) else "it cannot be reached"


def _opened(origin: str) -> http.client.HTTPConnection:
    parts = urlsplit(origin)
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=CONNECT_SECONDS, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, port, timeout=CONNECT_SECONDS)


def _content(response: http.client.HTTPResponse) -> bytes:
    """Read a body to its end, unpacked, and never more than an answer may hold."""
    packed = response.getheader("Content-Encoding", "").lower() == "gzip"
    unpacker = zlib.decompressobj(wbits=31) if packed else None
    parts, size = [], 0
    while chunk := response.read(_CHUNK_BYTES):
        part = chunk if unpacker is None else unpacker.decompress(chunk, BODY_BYTES + 1 - size)
        parts.append(part)
        size += len(part)
        if size > BODY_BYTES:
            raise _TooLargeError
    if response.length or (unpacker is not None and parts and not unpacker.eof):
        raise http.client.IncompleteRead(b"")
    return b"".join(parts)


def failure(answer: Answer, what: str) -> Fail:
    """Describe an answer that ends the run. `what` begins the sentence: `The calendar server`."""
    if answer.status == 0:
        return Fail(f"{what} gave no answer: {answer.fault}.", code="provider_unavailable", hint="retry_by_runtime")
    if answer.status == 401:
        text = f"{what} refused the credentials."
        return Fail(text, retryable=False, code="credential_invalid", hint="refresh_credentials")
    if answer.status in {403, 451}:
        text = f"{what} does not allow this: status {answer.status}."
        return Fail(text, retryable=False, code="insufficient_scope", hint="upstream_unblock")
    code = "provider_rate_limited" if answer.status == 429 else "provider_unavailable"
    if answer.is_passing:
        return Fail(f"{what} answered with status {answer.status}.", code=code, hint="retry_by_runtime")
    text = f"{what} answered with status {answer.status}."
    return Fail(text, retryable=False, code="provider_protocol_error", hint="unknown")
