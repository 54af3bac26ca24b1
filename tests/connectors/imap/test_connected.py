"""A mail account that is connected once: by the integration's hooks, in their own process, against a real Dovecot."""

import json
import os
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from adapters.conftest import hosted, run  # noqa: F401 - a fixture among them
from connectors.imap.people import CONNECTOR, Person, message
from servers.dovecot import PASSWORD

from headwater.adapters.authenticating import Acting, Hooked
from headwater.connect.failures import AuthFailure
from headwater.manifest.integration import read_integration
from headwater.outbound.client import Client, Reach
from headwater.secret import Secret

PAIR = ("--connector", "imap", "--instance", "me")


def endpoint(person: Person) -> str:
    """Return the server's address as the configuration has it."""
    return f"https://127.0.0.1:{person.server.tls_port}"


def written(place: Path, name: str, content: str) -> Path:
    """Write a file that only its owner can read."""
    path = place / name
    path.touch(mode=0o600)
    path.write_text(content)
    return path


@pytest.fixture
def configured(headwater: Any, person: Person) -> Iterator[Any]:
    """A Headwater whose credentials go into a sealed file, and whose operator knows the server's authority."""
    place = headwater.place
    key = written(place, "key", "k" * 43)
    custody = f'[custody]\nbinding = "sealed_file"\nfile = "{place}/custody.sealed"\nkey_file = "{key}"\n'
    provider = f'[providers."imap.invalid"]\nca = """{person.server.ca}"""\n'
    written(place, "collect.toml", f'format = "headwater-collect/1"\n{custody}{provider}')
    written(place, "config.toml", f'format = "connectors-local/5"\nowner_uid = {os.geteuid()}\n')
    yield headwater
    headwater.type("setup", "owner-stop")


@pytest.mark.clause("INT-176")
def test_connect_collect_revoke(configured: Any, person: Person) -> None:
    """Everything is restarted, and a second run asks nobody; then the connection is revoked, and a third is refused."""
    person.put(message("Kitchen", "Tea?\r\n"))
    entry = written(configured.place, "entry.json", json.dumps(person.answer))
    how = ["--endpoint", endpoint(person), "--profile", "app_password", "--credential-file", str(entry)]
    assert configured.type("connections", "connect", "imap/me", *how).result["instance"] == "me"
    entry.unlink()
    shown = configured.type("connections", "describe", *PAIR).result["connection"]
    assert (shown["state"], shown["external_identity"]["subject"]) == ("ready", person.name)
    for _ in range(2):
        ran = configured.type("collect", "imap/me", "--set", f"ca={person.server.ca}")
        assert ran.result["status"] == "succeeded"
        configured.type("setup", "owner-stop")
    assert len(configured.keys("messages", "imap/me")) == 1
    gone = configured.type("connections", "revoke", *PAIR, "--expected-revision", "1").result
    assert gone["local_state"] == "revoked"
    assert configured.type("collect", "imap/me").failure["code"] == "revoked"
    files = [path for path in configured.place.rglob("*") if path.is_file()]
    assert [path for path in files if PASSWORD.encode() in path.read_bytes()] == []


async def uncounted() -> None:
    """Count no attempt."""


@pytest.mark.parametrize(
    ("password", "port", "code"),
    [
        ("wrong battery", None, "credential_invalid"),
        ("a\0b", None, "credential_invalid"),
        (PASSWORD, 9, "provider_unavailable"),
    ],
)
def test_what_cannot_sign_in_is_refused(
    hosted: Any,  # noqa: F811
    person: Person,
    password: str,
    port: int | None,
    code: str,
) -> None:
    """By a code of the closed list, and the password is not told."""
    method = read_integration((CONNECTOR / "integration.json").read_bytes()).methods["app_password"]
    fields = {"username": Secret(person.name), "password": Secret(password)}
    place = endpoint(person) if port is None else f"https://127.0.0.1:{port}"

    async def work() -> None:
        async with hosted(CONNECTOR) as adapter:
            acting = Acting("1000", "1000", "1000", "imap.invalid", place, {"ca": person.server.ca})
            await Hooked(lambda: nullcontext(adapter), Client(Reach()), acting, uncounted).start(method, fields)

    with pytest.raises(AuthFailure) as failure:
        run(work())
    assert failure.value.code == code
    assert password not in str(failure.value)
