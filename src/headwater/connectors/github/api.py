"""GitHub's REST API: one token, pages, conditional requests, and its limits of rate, which are kept."""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import Any, Final
from urllib.parse import quote, urlencode, urljoin

from headwater.connectors.web.client import (
    PATIENCE_SECONDS,
    Answer,
    Client,
    endpoint_of,
    entered,
    failure,
    origin_of,
    passing_wait,
    retry_after,
    said_at,
)
from headwater.sdk import Fail, RunContext

ENDPOINT: Final = "https://api.github.com"
PAGE: Final = 100
PAGES: Final = 10_000
WHAT: Final = "GitHub"
JSON: Final = "application/vnd.github+json"
_VERSION: Final = "2022-11-28"
_CREDENTIALS: Final = {
    "type": "object",
    "properties": {"token": {"type": "string", "title": "Access token", "format": "password", "minLength": 1}},
    "required": ["token"],
    "additionalProperties": False,
}
_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,4096}")
_NEXT: Final = re.compile(r'<([^<>]*)>[^,<]*;\s*rel="next"')


class StoppedError(Exception):
    """Nothing more can be asked in this run. What was saved stands, and the next run goes on from there."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason, self.message = reason, message
        super().__init__(reason)


class UnavailableError(Exception):
    """One thing cannot be had now; others may."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        super().__init__()


def limit_wait(answer: Answer) -> float | None:
    """Return how long GitHub asks to wait where its limit is reached, None where the answer is of another kind.

    A limit is status 429, or 403 with `Retry-After`, with nothing remaining, or with its own words for it.
    """
    if answer.status not in {403, 429}:
        return None
    if (seconds := retry_after(answer)) is not None:
        return seconds
    reset = answer.headers.get("X-RateLimit-Reset", "")
    if answer.headers.get("X-RateLimit-Remaining") == "0" and reset.isascii() and reset.isdecimal():
        return max(0.0, int(reset[:12]) - said_at(answer).timestamp())
    secondary = answer.status == 429 or b"secondary rate limit" in answer.body[:2_000]
    return PATIENCE_SECONDS if secondary else None


def _wait(answer: Answer) -> float | None:
    limited = limit_wait(answer)
    return passing_wait(answer) if limited is None else limited


class Api:
    """The API as one account sees it."""

    def __init__(self, run: RunContext) -> None:
        self._endpoint = endpoint_of(run.options, ENDPOINT).rstrip("/") + "/"
        token = entered(run.ask("credentials", "Give a GitHub access token.", _CREDENTIALS), "token").strip()
        if not _TOKEN.fullmatch(token):
            raise Fail(
                "The token has characters that no token has.",
                retryable=False,
                code="credential_invalid",
                hint="refresh_credentials",
            )
        headers = {"Authorization": f"Bearer {token}", "X-GitHub-Api-Version": _VERSION}
        self._client = Client(headers, lambda origin: origin == origin_of(self._endpoint), _wait)
        self._stopped: StoppedError | None = None
        self._answered = False
        self.affiliation = str(run.options.get("affiliation", "owner"))

    @property
    def requests(self) -> int:
        """How many requests were sent."""
        return self._client.requests

    def get(self, path: str, etag: str = "", accept: str = JSON, **query: str | int) -> Answer:
        """Return an answer with status 200, 204, 304, 404, 410 or 451. A 304 says that nothing is new since `etag`.

        Raise `UnavailableError` for another one, `StoppedError` where a limit is reached or nobody answers any more,
        and `Fail` where the token is refused, or nobody answered at all.
        """
        if self._stopped is not None:
            raise self._stopped
        url = urljoin(self._endpoint, path.removeprefix("/")) + (f"?{urlencode(query)}" if query else "")
        answer = self._client.ask("GET", url, headers={"Accept": accept} | ({"If-None-Match": etag} if etag else {}))
        if answer.status == 401 or (answer.status == 0 and not self._answered):
            raise failure(answer, WHAT)
        self._answered = True
        if (seconds := limit_wait(answer)) is not None:
            minutes = max(1, round(seconds / 60))
            raise self.stop("rate_limited", f"GitHub's limit is reached; it asks to wait about {minutes} minutes.")
        if answer.status == 0:
            raise self.stop("provider_unavailable", f"GitHub gives no answer any more: {answer.fault}.")
        if answer.status not in {200, 204, 304, 404, 410, 451}:
            raise UnavailableError(answer)
        return answer

    def stop(self, reason: str, message: str) -> StoppedError:
        """Ask no more in this run, and return what says so."""
        self._stopped = StoppedError(reason, message)
        return self._stopped

    def pages(self, path: str, etag: str = "", accept: str = JSON, **query: str | int) -> Iterator[Answer]:
        """Yield the pages of a list; each has status 200, but for the first, which may say that there is none."""
        answer = self.get(path, etag, accept, per_page=PAGE, **query)
        for _ in range(PAGES):
            yield answer
            if answer.status != 200 or not (following := next_page(answer)):
                return
            answer = self.get(following, accept=accept)
            if answer.status != 200:
                raise UnavailableError(answer)

    @cached_property
    def repositories(self) -> list[dict[str, Any]]:
        """Return the account's repositories, oldest first: what is new while pages are read comes at the end."""
        query = {"affiliation": self.affiliation, "sort": "created", "direction": "asc"}
        found: dict[int, dict[str, Any]] = {}
        for page in self.pages("user/repos", **query):
            if page.status != 200:
                raise failure(page, WHAT)
            found |= {item["id"]: item for item in items(page) if isinstance(item.get("full_name"), str)}
        return list(found.values())


@lru_cache(maxsize=1)
def api_of(run: RunContext) -> Api:
    """Return the API of a run: its streams share the token, and what was asked already."""
    return Api(run)


def repository_path(full_name: str, *more: str | int) -> str:
    """Return the path of something in a repository."""
    return "/".join(("repos", quote(full_name, safe="/"), *(quote(str(part), safe="") for part in more)))


def items(answer: Answer, inside: str = "") -> list[dict[str, Any]]:
    """Return the objects of a page that have an id; raise `UnavailableError` where the page is no list.

    `inside` names the member that has the id, where the objects themselves have none.
    """
    found = answer.json()
    if not isinstance(found, list):
        raise UnavailableError(answer)
    objects = [item for item in found if isinstance(item, dict)]
    return [item for item in objects if _is_identified(item.get(inside) if inside else item)]


def _is_identified(item: Any) -> bool:
    return isinstance(item, dict) and type(item.get("id")) is int


def next_page(answer: Answer) -> str:
    """Return the URL of the next page (RFC 8288), empty where this is the last."""
    found = _NEXT.search(answer.headers.get("Link", ""))
    with suppress(ValueError):
        return urljoin(answer.url, found[1]) if found else ""
    return ""
