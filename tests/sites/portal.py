"""A web portal on loopback, as portals are: a login form, a one-time code, a session in a cookie, a table in pages."""

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

ORDERS = [(f"A-{n:03}", f"2026-01-{n:02}", f"Book {n} & more", str(n * 995)) for n in range(1, 26)]
PAGE_ROWS = 10

_LOGIN = """<form method="post" action="/login">
<input id="username" name="username"><input id="password" name="password" type="password"><button>Sign in</button>
</form>"""
_CODE = '<form method="post" action="/code"><input id="code" name="code"><button>Go on</button></form>'


@dataclass
class Portal:
    """The portal's only user, and what it has seen.

    `started` holds who has given the password and owes the code. The table waits while its event is not set.
    """

    username: str
    password: str
    code: str
    address: str = ""
    started: set[str] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)
    seen: list[str] = field(default_factory=list)
    table: threading.Event = field(default_factory=threading.Event)
    _turn: threading.Condition = field(default_factory=threading.Condition)

    def note(self, request: str) -> None:
        """Note a request."""
        with self._turn:
            self.seen.append(request)
            self._turn.notify_all()

    def was_asked(self, request: str) -> bool:
        """Wait for a request; False where none came."""
        with self._turn:
            return self._turn.wait_for(lambda: request in self.seen, timeout=30)

    def expire(self) -> None:
        """Forget every session, as portals do after a while."""
        self.sessions.clear()


@contextmanager
def serving(portal: Portal) -> Iterator[Portal]:
    """Serve a portal at a free port of loopback."""
    handler = type("Handler", (_Handler,), {"portal": portal})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    portal.address = f"http://127.0.0.1:{server.server_port}"
    portal.table.set()
    try:
        yield portal
    finally:
        portal.table.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    portal: Portal

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.portal.note(f"GET {url.path}")
        if url.path == "/orders" and self._cookie("session") in self.portal.sessions:
            self.portal.table.wait(60)
            self._page(200, _orders(int(parse_qs(url.query).get("page", ["1"])[0])))
        elif url.path == "/code" and self._cookie("started") in self.portal.started:
            self._page(200, _CODE)
        elif url.path == "/login":
            self._page(200, _LOGIN)
        elif url.path in ("/orders", "/code"):
            self._redirect("/login")
        else:
            self._page(404, "There is no such page.")

    def do_POST(self) -> None:
        self.portal.note(f"POST {self.path}")
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        given = {name: values[0] for name, values in form.items()}
        if self.path == "/login":
            self._log_in(given)
        elif self._cookie("started") in self.portal.started:
            self._check(given)
        else:
            self._redirect("/login")

    def _log_in(self, given: dict[str, str]) -> None:
        if given != {"username": self.portal.username, "password": self.portal.password}:
            self._page(403, f"<p class=error>Wrong user name or password.</p>{_LOGIN}")
            return
        token = secrets.token_hex()
        self.portal.started.add(token)
        self._redirect("/code", f"started={token}; HttpOnly; SameSite=Strict")

    def _check(self, given: dict[str, str]) -> None:
        if given != {"code": self.portal.code}:
            self._page(403, f"<p class=error>Wrong code.</p>{_CODE}")
            return
        token = secrets.token_hex()
        self.portal.started.discard(self._cookie("started"))
        self.portal.sessions.add(token)
        self._redirect("/orders", f"session={token}; HttpOnly; SameSite=Strict; Max-Age=86400")

    def _cookie(self, name: str) -> str:
        cookies = SimpleCookie(self.headers.get("Cookie", ""))
        return cookies[name].value if name in cookies else ""

    def _redirect(self, path: str, cookie: str | None = None) -> None:
        self.send_response(303)
        self.send_header("Location", path)
        if cookie is not None:
            self.send_header("Set-Cookie", cookie)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _page(self, status: int, body: str) -> None:
        content = f"<!doctype html><meta charset=utf-8><title>Portal</title><link rel=icon href=data:,>{body}".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""


def _orders(page: int) -> str:
    first = (page - 1) * PAGE_ROWS
    cells = [[f"<td>{escape(cell)}</td>" for cell in row] for row in ORDERS[first : first + PAGE_ROWS]]
    rows = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
    link = f"<a rel=next href='/orders?page={page + 1}'>Older</a>" if first + PAGE_ROWS < len(ORDERS) else ""
    return f"<table id=orders><thead><tr><th>Number</th></tr></thead><tbody>{rows}</tbody></table>{link}"
