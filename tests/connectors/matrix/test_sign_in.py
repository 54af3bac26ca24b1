"""Signing in to a real Synapse by the integration's hooks, in a process of their own."""

from typing import Any

import pytest
from adapters.conftest import hooked, hosted, run  # noqa: F401 - a fixture among them
from connectors.matrix.people import CONNECTOR
from servers.synapse import Refused, Synapse, User, call

from headwater.connect.envelope import Credential, Envelope
from headwater.connect.failures import AuthFailure
from headwater.manifest.integration import read_integration
from headwater.secret import Secret

METHOD = read_integration((CONNECTOR / "integration.json").read_bytes()).methods["password"]


@pytest.fixture
def ada(synapse: Synapse) -> User:
    """Somebody with a password."""
    return synapse.register()


def signed_in(adapter: Any, user: User, name: str, password: str) -> Any:
    fields = {"username": Secret(name), "password": Secret(password)}
    return hooked(adapter, user.base_url).start(METHOD, fields)


def whoami(user: User, envelope: Envelope) -> str:
    token = envelope.access_token.text()
    return str(call(user.base_url, "GET", "/_matrix/client/v3/account/whoami", token=token)["user_id"])


@pytest.mark.parametrize("whole", [False, True])
def test_a_password_gives_a_session_that_is_renewed_and_ended(hosted: Any, ada: User, whole: bool) -> None:  # noqa: F811
    """By the name or the whole address; a renewed token works, and after the end none does."""

    async def work() -> None:
        async with hosted(CONNECTOR) as adapter:
            first = await signed_in(adapter, ada, ada.user_id if whole else ada.name, ada.password)
            assert (first.account.id, first.account.kind) == (ada.user_id, "matrix.user")
            assert first.expires_at is not None
            assert whoami(ada, first) == ada.user_id
            signs = hooked(adapter, ada.base_url)
            second = await signs.refresh(METHOD, Credential(first))
            assert second.access_token.text() != first.access_token.text()
            assert whoami(ada, second) == ada.user_id
            assert (await signs.probe(METHOD, Credential(second))).account.id == ada.user_id
            with pytest.raises(AuthFailure) as failure:
                await signs.refresh(METHOD, Credential(first))
            assert failure.value.code == "credential_invalid"
            assert await signs.disconnect(METHOD, Credential(second))
            with pytest.raises(Refused):
                whoami(ada, second)
            assert await signs.disconnect(METHOD, Credential(second))

    run(work())
    assert ada.call("GET", "/_matrix/client/v3/account/whoami")["user_id"] == ada.user_id


@pytest.mark.parametrize(("name", "password"), [("", "wrong"), ("nobody-of-that-name", ""), ("@ada:else.example", "")])
def test_a_wrong_password_or_name_is_refused(hosted: Any, ada: User, name: str, password: str) -> None:  # noqa: F811
    """Which of them was wrong is not told."""

    async def work() -> None:
        async with hosted(CONNECTOR) as adapter:
            await signed_in(adapter, ada, name or ada.name, password or ada.password)

    with pytest.raises(AuthFailure) as failure:
        run(work())
    assert failure.value.code == "credential_invalid"
    assert ada.password not in str(failure.value)
