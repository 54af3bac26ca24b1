"""A shop with accounts, and a Headwater that is configured for it: real HTTP, a real sealed file, real processes."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from connect.commands import Commands
from connect.world import Clock, World
from journeys.conftest import Answer, Headwater

from headwater import clock as machine
from headwater.errors import HeadwaterError

SHOP = Path(__file__).parents[1] / "guests" / "shop"


class Shop:
    """A provider: who has which token, how it answers, and what it was asked."""

    def __init__(self) -> None:
        self.accounts = {"token-of-anna": "anna", "second-of-anna": "anna", "token-of-bert": "bert"}
        self.status = 200
        self.asked: Counter[str] = Counter()
        self.orders = [{"number": "1", "item": "tea"}]
        self.url = ""

    def answer(self, path: str, authorization: str) -> tuple[int, object]:
        """Answer one request."""
        self.asked[path] += 1
        account = self.accounts.get(authorization.removeprefix("Bearer "))
        if self.status != 200 or account is None:
            return (self.status if self.status != 200 else 401), {"secret": "said by the provider"}
        return 200, {"/whoami": {"id": account, "name": account.title()}, "/orders": self.orders}[path]


@contextmanager
def serving(shop: Shop) -> Iterator[Shop]:
    """Serve a shop on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = shop.answer(self.path, self.headers.get("Authorization", ""))
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    shop.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield shop
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def shop() -> Iterator[Shop]:
    with serving(Shop()) as shop:
        yield shop


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """Start the server of commands."""
    server = Commands(tmp_path_factory.mktemp("commands"))
    yield server
    server.close()


@dataclass(frozen=True)
class Connected(Headwater):
    """A Headwater with the instance `shop/me`. Its commands about connections come quickly."""

    commands: Commands | None = None

    def run(self, words: Sequence[str], stdin: str) -> Answer:
        """See `Headwater.run`."""
        if "connections" not in words or stdin:
            return super().run(words, stdin)
        status, _ = self.commands.run([*words[3:]])
        return Answer(status, *self.commands.printed, self.state)

    def write(self, name: str, content: str) -> Path:
        """Write a file that only its owner can read."""
        path = self.place / name
        path.touch(mode=0o600)
        path.write_text(content)
        return path

    def configure(self, body: str) -> None:
        """Write config.toml."""
        head = f'format = "connectors-local/5"\nowner_uid = {os.geteuid()}\ndefault_instance = "shop/me"\n[adapters]\n'
        self.write("config.toml", head + body)

    def entry(self, **fields: str) -> list[str]:
        """Return the flag that enters a credential by a protected file."""
        return ["--credential-file", str(self.write("entry.json", json.dumps(fields)))]

    def connect(self, token: str = "token-of-anna", *words: str) -> Answer:
        """Connect shop/me."""
        return self.type("connections", "connect", "shop/me", *self.entry(token=token), *words)

    def connection(self, *words: str) -> dict:
        """Describe the connection."""
        return self.type("connections", "describe", *words).result["connection"]


@pytest.fixture
def headwater(tmp_path: Path, shop: Shop, commands: Commands) -> Connected:
    """A Headwater whose credentials go into a sealed file, with one instance of the shop."""
    headwater = Connected(tmp_path, commands=commands)
    set_up(headwater, shop)
    return headwater


def set_up(headwater: Connected, shop: Shop) -> None:
    """Configure an instance of the shop, and a sealed file for its credential."""
    key = headwater.write("key", "k" * 43)
    sealed = f'binding = "sealed_file"\nfile = "{headwater.place}/custody.sealed"\nkey_file = "{key}"\n'
    folder = f'[instances."shop/me"]\nfolder = "{SHOP}"\n'
    headwater.write("collect.toml", f'format = "headwater-collect/1"\n[custody]\n{sealed}{folder}')
    headwater.configure(f'[connectors.shop.instances.me]\nendpoint = "{shop.url}"\n')


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that stands still."""
    still = Clock()
    monkeypatch.setattr(machine, "now", still.now)
    return still


@pytest.fixture
def world(tmp_path: Path, clock: Clock) -> Iterator[World]:
    """A world in which nothing is connected yet."""
    world = World(tmp_path, clock)
    yield world
    world.registry.close()


@contextmanager
def refused(code: str, next_action: str | None = None, stage: str | None = None, **data: object) -> Iterator[None]:
    """Expect a refusal, and that it is exactly this one."""
    with pytest.raises(HeadwaterError) as caught:
        yield
    error = caught.value
    assert error.code == code
    assert next_action in (None, error.next_action)
    assert stage in (None, error.stage)
    assert data.items() <= error.data.items()
