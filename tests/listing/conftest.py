"""The example integration and its real service; and lists of hooks that misbehave, in the same real program."""

import importlib.util
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import indent
from threading import Thread
from typing import Any

import pytest
from owner.conftest import Machine

from headwater.sdk.testing import Transcript, collect

EXAMPLE = Path(__file__).parents[2] / "examples" / "integrations" / "acme-tickets"
PROGRAM = """
import os, runpy, sys
os.chdir(os.path.dirname(sys.argv[1]))
runpy.run_module("headwater.listing", run_name="__main__")
"""
ANSWER = {"access_token": "token-of-ada"}
CODE = """
import json, time
from headwater.sdk.integration import Account, Context, Envelope, Integration, Page, Refused

class Guest(Integration):
    def start_auth(self, ctx, method, fields):
        return Envelope(fields["token"])

    def get_account(self, ctx):
        return Account("ada", "acme.user")
"""


LISTS = {
    "events": "return Page([], None, True)",
    "groups": 'return Page([{"id": "g1", "name": "Town hall"}], None, True)',
    "ticket_inventory": "return Page([], None, True)",
}


def event(name: str) -> dict[str, Any]:
    """Return an event as the example's schema has it."""
    return {"id": name, "name": name.title(), "starts_at": "2027-05-01T19:30:00Z"}


def _service() -> Any:
    spec = importlib.util.spec_from_file_location("acme_provider", EXAMPLE / "provider.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Acme()


@pytest.fixture
def service() -> Iterator[Any]:
    """The service of the example, on a free port."""
    with _service() as running:
        Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture
def copied(tmp_path: Path) -> Callable[..., Path]:
    """Copy the example, with other code for its lists (events, groups, tickets) where that is given."""

    def copy(*codes: str) -> Path:
        folder = tmp_path / "acme-tickets"
        shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        if codes:
            lists = {**LISTS, **dict(zip(LISTS, codes, strict=False))}
            hooks = (
                f"    def list_{name}(self, ctx, cursor):\n{indent(code, ' ' * 8)}\n" for name, code in lists.items()
            )
            (folder / "integration.py").write_text("\n".join([CODE, *hooks]))
        return folder

    return copy


def listed(folder: Path, **more: Any) -> Transcript:
    """Run the lists of a folder bare: START in, messages out."""
    return collect(folder, **{"program": (sys.executable, "-c", PROGRAM), "answers": [ANSWER], **more})


class Ada(Machine):
    """A person with an account at the example's service, whose credentials are in a sealed file."""

    def __init__(self, home: Path, folder: Path, endpoint: str) -> None:
        super().__init__(home)
        self.code, self.entry, key = folder, home / "entry", home / "key"
        self.protected(key, "0123456789abcdef" * 6)
        custody = f'[custody]\nbinding = "sealed_file"\nfile = "{home / "vault"}"\nkey_file = "{key}"\n'
        self.protected(self.config.with_name("collect.toml"), f'format = "headwater-collect/1"\n\n{custody}')
        self.type("instances", "add", "acme-tickets/me", "--from", str(folder))
        self.type("connectors", "enable", "acme-tickets")
        self.connect(endpoint)

    def protected(self, path: Path, text: str) -> None:
        path.touch(0o600)
        path.write_text(text)

    def connect(self, endpoint: str) -> None:
        self.protected(self.entry, json.dumps({"token": "token-of-ada"}))
        told = ["--endpoint", endpoint, "--credential-file", str(self.entry)]
        self.type("connections", "connect", "acme-tickets/me", *told)

    def reconnect(self) -> None:
        (row,) = self.type("connections", "list", "acme-tickets/me")["connections"]
        seen = ["--expected-revision", str(row["revision"]), "--credential-file", str(self.entry)]
        self.type("connections", "reconnect", "acme-tickets/me", *seen)

    def refresh(self, status: int = 0) -> dict[str, Any]:
        return self.type("connections", "refresh", "acme-tickets/me", status=status)

    def stored(self, stream: str = "events") -> list[str]:
        page = self.type("records", "list", "acme-tickets/me", stream, "--limit", "1000")
        return sorted(row["key"] for row in page["items"])

    def events(self, body: str) -> None:
        """Give the integration other code for its events."""
        path = self.code / "integration.py"
        known = 'return self._page(ctx, "events", cursor)\n'
        assert known in path.read_text()
        lines = "".join(f"        {line}\n" for line in body.splitlines()).lstrip()
        path.write_text("from headwater.sdk.integration import Refused\n" + path.read_text().replace(known, lines))

    def manifest(self, **members: Any) -> None:
        path = self.code / "integration.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **members}))


@pytest.fixture
def ada(tmp_path: Path, service: Any, copied: Callable[..., Path]) -> Iterator[Ada]:
    made = Ada(tmp_path, copied(), service.endpoint)
    yield made
    made.close()
