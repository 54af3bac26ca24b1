"""Signing in to a real Radicale by the integrations' hooks, in a process of their own."""

from pathlib import Path
from typing import Any

import pytest
from adapters.conftest import hooked, hosted, run  # noqa: F401 - a fixture among them
from servers.radicale import Owner, Radicale

import headwater.connectors
from headwater.connect.envelope import Credential
from headwater.connect.failures import AuthFailure
from headwater.manifest.integration import read_integration
from headwater.secret import Secret

BUNDLED = Path(headwater.connectors.__path__[0])


@pytest.fixture(params=["caldav", "carddav"])
def folder(request: pytest.FixtureRequest) -> Path:
    """The folder of each connector."""
    return BUNDLED / str(request.param)


@pytest.fixture
def ada(radicale: Radicale) -> Owner:
    """Somebody with a password."""
    return radicale.register("päss:word")


def start(adapter: Any, folder: Path, owner: Owner, password: str) -> Any:
    """Begin, which is all that there is to do."""
    method = read_integration((folder / "integration.json").read_bytes()).methods["app_password"]
    fields = {"username": Secret(owner.name), "password": Secret(password)}
    return hooked(adapter, owner.endpoint).start(method, fields)


def test_a_password_is_the_credential(hosted: Any, folder: Path, ada: Owner) -> None:  # noqa: F811
    """The account is the principal; the same credential tells it again later."""
    method = read_integration((folder / "integration.json").read_bytes()).methods["app_password"]

    async def work() -> None:
        async with hosted(folder) as adapter:
            envelope = await start(adapter, folder, ada, ada.password)
            assert envelope.account.id == f"/{ada.name}/"
            assert envelope.account.kind == f"{folder.name}.principal"
            probed = await hooked(adapter, ada.endpoint).probe(method, Credential(envelope))
            assert probed.account.id == envelope.account.id

    run(work())


def test_a_wrong_password_is_refused(hosted: Any, folder: Path, ada: Owner) -> None:  # noqa: F811
    """And not told."""

    async def work() -> None:
        async with hosted(folder) as adapter:
            await start(adapter, folder, ada, "wrong battery")

    with pytest.raises(AuthFailure) as failure:
        run(work())
    assert failure.value.code == "credential_invalid"
    assert "wrong battery" not in str(failure.value)
