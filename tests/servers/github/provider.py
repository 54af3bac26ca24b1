"""GitHub's REST API on loopback, as its description has it: tokens, pages, entity tags, limits of rate, moves."""

import gzip
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from servers.github.shapes import shaped
from servers.github.world import Item, Repository, World

_STARS = "application/vnd.github.star+json"
_PACKED_BYTES = 1_000


class Reply(NamedTuple):
    """What is answered. A list is cut into pages."""

    status: int
    content: Any = None
    location: str = ""


class GitHub:
    """The provider that runs. What goes wrong with it is set here.

    `faults` maps a part of a path to what its next requests meet: a status, `drop` for a connection that breaks off
    in the midst of a body, `garbage` for a body that is no JSON. `remaining` is how many requests the limit of rate
    allows, `reset_seconds` when it is over; `retry_after` goes with each status that is set. `elsewhere` is where the
    next page is said to be, if not here. With `is_exclusive`, `since` means later than a time. `hold` is called before
    each answer; `over` is set when the tests are.
    """

    def __init__(self, url: str, world: World) -> None:
        self.url, self.world = url, world
        self.asked: list[tuple[str, int]] = []
        self.faults: dict[str, list[int | str]] = {}
        self.remaining: int | None = None
        self.reset_seconds = 3600
        self.retry_after: int | None = None
        self.elsewhere = ""
        self.is_exclusive = False
        self.hold = lambda _path: None
        self.over = threading.Event()

    def paths(self, status: int | None = None) -> list[str]:
        """Return the paths that were asked for, in order."""
        return [path for path, answered in self.asked if status in (None, answered)]

    def fault(self, path: str) -> int | str:
        """Take what this request meets, 0 for nothing."""
        for part, waiting in self.faults.items():
            if part in path and waiting:
                return waiting.pop(0)
        return 0


def reply(world: World, path: str, query: dict[str, str], accept: str = "") -> Reply:
    """Answer a request for a path."""
    match path.strip("/").split("/"):
        case ["user"]:
            return Reply(200, world.account)
        case ["user", "repos"]:
            return Reply(200, [found.item for found in world.repositories.values()])
        case ["user", "starred"]:
            stars = list(world.stars.values())
            return Reply(200, stars if accept == _STARS else [star["repo"] for star in stars])
        case ["user", "starred", owner, name]:
            starred = any(star["repo"]["full_name"] == f"{owner}/{name}" for star in world.stars.values())
            return Reply(204) if starred else _error(404, "Not Found")
        case ["repositories", number, *rest] if number.isdecimal() and int(number) in world.repositories:
            return _inside(world.repositories[int(number)], rest, query)
        case ["repos", owner, name, *rest]:
            full_name = f"{owner}/{name}"
            for found in world.repositories.values():
                if found.item["full_name"] == full_name:
                    return _inside(found, rest, query)
            if full_name in world.former_names:
                return Reply(301, None, "/".join(["", "repositories", str(world.former_names[full_name]), *rest]))
    return _error(404, "Not Found")


def _inside(repository: Repository, rest: list[str], query: dict[str, str]) -> Reply:
    match rest:
        case []:
            return Reply(200, shaped("full-repository", **repository.item))
        case ["issues"]:
            return Reply(200, _changed(repository.issues.values(), query))
        case ["issues", "comments"]:
            return Reply(200, _changed(repository.comments.values(), query))
        case ["issues", number] if number.isdecimal() and int(number) in repository.issues:
            return Reply(200, repository.issues[int(number)])
        case ["pulls", number] if number.isdecimal() and int(number) in repository.pulls:
            return Reply(200, repository.pulls[int(number)])
        case ["releases"]:
            return Reply(200, list(repository.releases.values())[::-1])
        case ["releases", number] if number.isdecimal() and int(number) in repository.releases:
            return Reply(200, repository.releases[int(number)])
    return _error(404, "Not Found")


def changed(world: World, method: str, path: str, given: dict[str, Any]) -> Reply:
    """Answer a request that changes something."""
    _, owner, name, *rest = [*path.strip("/").split("/"), ""][:7]
    found = next((one for one in world.repositories.values() if one.item["full_name"] == f"{owner}/{name}"), None)
    match method, [part for part in rest if part]:
        case "POST", ["issues"] if found is not None and given.get("title"):
            return Reply(201, world.add_issue(found, **given))
        case "POST", ["issues", number, "comments"] if found is not None and int(number) in found.issues:
            return Reply(201, world.add_comment(found, int(number), **given))
        case "PATCH", ["issues", number] if found is not None and int(number) in found.issues:
            found.issues[int(number)] |= {**given, "updated_at": world.now()}
            return Reply(200, found.issues[int(number)])
    return _error(404 if found is None else 422, "Validation Failed")


def _changed(items: Any, query: dict[str, str]) -> list[Item]:
    since = query.get("since", "") + query.get("exclusive", "")
    key = "updated_at" if query.get("sort") == "updated" else "created_at"
    found = sorted((item for item in items if str(item["updated_at"]) >= since), key=lambda item: str(item[key]))
    return found if query.get("direction") == "asc" else found[::-1]


def _error(status: int, message: str) -> Reply:
    return Reply(status, shaped("basic-error", message=message, documentation_url="https://docs.github.invalid"))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 64 * 1024
    disable_nagle_algorithm = True
    github: GitHub

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer, or meet the fault that is set."""
        parts = urlsplit(self.path)
        path, query = unquote(parts.path), {name: values[-1] for name, values in parse_qs(parts.query).items()}
        self.github.hold(path)
        fault, sent = self.github.fault(path), self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if isinstance(fault, int) and fault:
            answer = _error(fault, "A fault of the tests")
        elif self.headers.get("Authorization") != f"Bearer {self.github.world.token}":
            answer = _error(401, "Bad credentials")
        elif self.github.remaining is not None and self.github.remaining <= 0:
            answer = _error(403, "API rate limit exceeded for user ID 1.")
        else:
            # Any text behind a time sorts after it.
            asked = query | ({"exclusive": "~"} if self.github.is_exclusive and "since" in query else {})
            answer = reply(self.github.world, path, asked, self.headers.get("Accept", ""))
            if self.command != "GET":
                answer = changed(self.github.world, self.command, path, json.loads(sent))
        self._send(answer, parts.path, query, fault)

    def do_POST(self) -> None:
        """Answer as for any request."""
        self.do_GET()

    def do_PATCH(self) -> None:
        """Answer as for any request."""
        self.do_GET()

    def _send(self, answer: Reply, path: str, query: dict[str, str], fault: int | str) -> None:
        content, headers = answer.content, {"Location": answer.location} if answer.location else {}
        if answer.status == 301:
            content = {"message": "Moved Permanently", "url": answer.location}
        if isinstance(content, list):
            content, headers["Link"] = _page(content, (self.github.elsewhere or self.github.url) + path, query)
        body = b"" if content is None else b"{garbage" if fault == "garbage" else json.dumps(content).encode()
        status, tag = answer.status, f'W/"{hashlib.sha256(body).hexdigest()}"'
        if status == 200 and self.headers.get("If-None-Match") == tag:
            status, body = 304, b""
        if fault and self.github.retry_after is not None:
            headers["Retry-After"] = str(self.github.retry_after)
        if self.github.remaining is not None:
            self.github.remaining -= status != 304 and self.github.remaining > 0
            headers |= {"X-RateLimit-Remaining": str(self.github.remaining)}
            headers |= {"X-RateLimit-Reset": str(int(time.time()) + self.github.reset_seconds)}
        if len(body) > _PACKED_BYTES and "gzip" in self.headers.get("Accept-Encoding", ""):
            body, headers["Content-Encoding"] = gzip.compress(body, 1), "gzip"
        self.github.asked.append((path, status))
        self.send_response(status)
        for name, value in (headers | {"ETag": tag, "Content-Type": "application/json; charset=utf-8"}).items():
            if value:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if status != 204 else 0))
        self.end_headers()
        self._write(body, fault)

    def _write(self, body: bytes, fault: int | str) -> None:
        self.wfile.write(body[: len(body) // 2] if fault == "drop" else body)
        if fault == "drop":
            self.close_connection = True


def _page(items: list[Item], url: str, query: dict[str, str]) -> tuple[list[Item], str]:
    """Cut a page out of a list, and say where the next one is (RFC 8288)."""
    size, number = min(int(query.get("per_page", 30)), 100), int(query.get("page", 1))
    following = f"{url}?{urlencode({**query, 'page': number + 1})}"
    link = f'<{following}>; rel="next"' if len(items) > size * number else ""
    return items[size * (number - 1) : size * number], link


@contextmanager
def github_of(world: World) -> Iterator[GitHub]:
    """Run the provider for a world."""
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    provider = handler.github = GitHub(f"http://127.0.0.1:{server.server_port}", world)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield provider
    finally:
        provider.over.set()
        server.shutdown()
        server.server_close()
