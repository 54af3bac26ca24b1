"""A Matrix account that is connected once: runs ask nobody, until it is revoked."""

from collections.abc import Iterator
from typing import Any

import pytest
from connectors.connecting import configure, connect, revoke, showing
from servers.synapse import Synapse, User, synapse_in


@pytest.fixture
def configured(headwater: Any) -> Iterator[Any]:
    """A Headwater whose credentials go into a sealed file."""
    configure(headwater.place)
    yield headwater
    headwater.type("setup", "owner-stop")


def connected(headwater: Any, user: User, profile: str) -> Any:
    """Connect `matrix/me`; return how the connection is."""
    fields = {
        "token": {"access_token": user.access_token},
        "password": {"username": user.name, "password": user.password},
    }
    return connect(headwater, "matrix", user.base_url, profile, fields[profile])


@pytest.mark.parametrize("profile", ["token", "password"])
def test_connect_collect_revoke(synapse: Synapse, configured: Any, profile: str) -> None:
    """Everything is restarted, and a second run asks nobody; then the connection is revoked, and a third is refused."""
    user = synapse.register()
    user.send(user.make_room("Kitchen"), "Tea?")
    shown = connected(configured, user, profile)
    assert (shown["state"], shown["external_identity"]["subject"]) == ("ready", user.user_id)
    for _ in range(2):
        assert configured.type("collect", "matrix/me").result["status"] == "succeeded"
        configured.type("setup", "owner-stop")
    assert len(configured.keys("messages", "matrix/me")) == 1
    revoke(configured, "matrix")
    assert showing(configured.place, user.password, user.access_token) == []


def test_a_session_whose_tokens_last_a_moment_is_collected_without_a_question(
    configured: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each run finds its token expired, or sees it expire: it is renewed, and renewed once more the next time."""
    with synapse_in(tmp_path_factory.mktemp("hasty"), refreshable_access_token_lifetime="2s") as hasty:
        user = hasty.register()
        room = user.make_room("Kitchen")
        connected(configured, user, "password")
        for number in range(2):
            user.send(room, f"Number {number}")
            assert configured.type("collect", "matrix/me").result["status"] == "succeeded"
        assert len(configured.keys("messages", "matrix/me")) == 2
