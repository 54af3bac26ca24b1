"""A real provider on this machine, and integrations in real processes."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from headwater.adapters.authenticating import Acting, Hooked
from headwater.adapters.hosting import Adapter, running
from headwater.manifest.integration import read_integration
from headwater.outbound.client import Client, Reach

GUESTS = Path(__file__).parents[1] / "guests"
ACME = GUESTS / "acme_tickets"


class Acme(ThreadingHTTPServer):
    """The provider: one account, a password, a code by mail, tokens that are exchanged. It counts what it is asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Door)
        self.asked: list[str] = []
        self.tokens = {"token-of-ada": "ada"}
        self.renewals = {"renewal-of-ada": "ada"}
        self.statuses: dict[str, int] = {}

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Door(BaseHTTPRequestHandler):
    server: Acme

    def do_GET(self) -> None:
        self.server.asked.append(f"GET {self.path}")
        who = self.server.tokens.get(self.headers.get("authorization", "").removeprefix("Bearer "))
        if who is None:
            self.answer(401, {"error": "no such token"})
        elif self.path == "/me":
            self.answer(200, {"id": who, "name": who.title()})
        else:
            self.answer(200, {"items": [{"id": "1"}], "next": None})

    def do_POST(self) -> None:
        self.server.asked.append(f"POST {self.path}")
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if self.path in self.server.statuses:
            self.answer(self.server.statuses[self.path], {})
        elif self.path == "/sign-in/password":
            right = body == {"user": "ada", "password": "correct horse"}
            self.answer(200 if right else 401, self.fresh("ada") if right else {"said": body})
        elif self.path == "/sign-in/code":
            self.answer(200, {"challenge": "c-1", "target": "a***@example.com"})
        elif self.path == "/code":
            right = body == {"challenge": "c-1", "code": "123456"}
            self.answer(200 if right else 401, self.fresh("ada") if right else {})
        elif self.path == "/refresh":
            who = self.server.renewals.pop(body.get("refresh_token"), None)
            self.answer(200 if who else 401, self.fresh(who) if who else {})
        else:
            self.answer(200, {})

    def fresh(self, who: str) -> dict[str, Any]:
        number = len(self.server.tokens)
        self.server.tokens[f"token-{number}"], self.server.renewals[f"renewal-{number}"] = who, who
        return {"token": f"token-{number}", "renewal": f"renewal-{number}", "expires_in": 3600}

    def answer(self, status: int, body: Any) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def acme() -> Iterator[Acme]:
    with Acme() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def hosted(tmp_path: Path) -> Callable[[Path], AbstractAsyncContextManager[Adapter]]:
    """Start the integration of a folder in a process of its own."""

    def start(folder: Path = ACME) -> AbstractAsyncContextManager[Adapter]:
        integration = read_integration((folder / "integration.json").read_bytes())
        return running(folder, integration, hidden=(tmp_path,))

    return start


def hooked(adapter: Adapter, endpoint: str, count: Any = None) -> Hooked:
    """Return what signs in by an adapter's hooks, at an endpoint of this machine."""

    async def nothing() -> None:
        return None

    client = Client(Reach(hosts=frozenset({"127.0.0.1"}), private=True))
    acting = Acting("1000", "1000", "1000", "tickets.acme.example", endpoint, {"client_secret": "of-the-app"})
    return Hooked(lambda: nullcontext(adapter), client, acting, count or nothing)


def run(work: Any) -> Any:
    return asyncio.run(work)
