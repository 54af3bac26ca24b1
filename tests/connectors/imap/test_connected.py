"""A mail account that is connected once: by the integration's hooks, in their own process, against a real Dovecot."""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from adapters.conftest import hosted, run  # noqa: F401 - a fixture among them
from connectors.connecting import configure, connect, revoke, showing
from connectors.imap.people import CONNECTOR, Person, message
from servers.dovecot import PASSWORD

from headwater.adapters.authenticating import Acting, Hooked
from headwater.connect.failures import AuthFailure
from headwater.manifest.integration import read_integration
from headwater.outbound.client import Client, Reach
from headwater.secret import Secret


def endpoint(person: Person) -> str:
    """Return the server's address as the configuration has it."""
    return f"https://127.0.0.1:{person.server.tls_port}"


@pytest.fixture
def configured(headwater: Any, person: Person) -> Iterator[Any]:
    """A Headwater whose credentials go into a sealed file, and whose operator knows the server's authority."""
    configure(headwater.place, f'[providers."imap.invalid"]\nca = """{person.server.ca}"""\n')
    yield headwater
    headwater.type("setup", "owner-stop")


@pytest.mark.clause("INT-176")
def test_connect_collect_revoke(configured: Any, person: Person) -> None:
    """Everything is restarted, and a second run asks nobody; then the connection is revoked, and a third is refused."""
    person.put(message("Kitchen", "Tea?\r\n"))
    shown = connect(configured, "imap", endpoint(person), "app_password", person.answer)
    assert (shown["state"], shown["external_identity"]["subject"]) == ("ready", person.name)
    for _ in range(2):
        ran = configured.type("collect", "imap/me", "--set", f"ca={person.server.ca}")
        assert ran.result["status"] == "succeeded"
        configured.type("setup", "owner-stop")
    assert len(configured.keys("messages", "imap/me")) == 1
    revoke(configured, "imap")
    assert showing(configured.place, PASSWORD) == []


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
