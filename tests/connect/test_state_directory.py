"""A state directory that others may change: nothing of a connection is done there, and nobody is asked."""

import asyncio
import os

import pytest

from headwater.joining.connecting import Connecting
from headwater.settings import Settings

REVISION = ("--expected-revision", "1")


def refusal(answer) -> tuple[str, str, str]:
    told = answer.failure
    assert told["command"] == f"chmod 700 {answer.state}"
    return told["code"], told["stage"], told["next_action"]


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
@pytest.mark.parametrize("command", ["connect", "reconnect", "revalidate", "revoke", "collect"])
def test_a_directory_that_others_may_write_is_refused_before_anything_is_asked(headwater, shop, mode, command):
    """Who may write there could put another database in its place."""
    if command != "connect":
        assert headwater.connect().status == 0
    headwater.state.mkdir(exist_ok=True)
    headwater.state.chmod(mode)
    before = sorted(path.name for path in headwater.state.iterdir())
    shop.asked.clear()
    typed = {
        "connect": ("connections", "connect", "shop/me", *headwater.entry(token="token-of-anna")),
        "reconnect": ("connections", "reconnect", "shop/me", *REVISION, *headwater.entry(token="second-of-anna")),
        "revalidate": ("connections", "revalidate", "shop/me", *REVISION),
        "revoke": ("connections", "revoke", "shop/me", *REVISION),
        "collect": ("collect", "shop/me"),
    }[command]
    assert refusal(headwater.type(*typed)) == ("forbidden", "admission", "check_configuration")
    assert not shop.asked
    assert sorted(path.name for path in headwater.state.iterdir()) == before
    headwater.state.chmod(0o755)  # others may look; `setup check` tells of that
    assert headwater.type(*typed).status == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_directory_of_somebody_else_is_refused(headwater, shop):
    headwater.state.mkdir()
    os.chown(headwater.state, 12345, 12345)
    assert refusal(headwater.connect()) == ("forbidden", "admission", "check_configuration")
    assert not shop.asked


def test_who_only_looks_is_answered(headwater):
    assert headwater.connect().status == 0
    headwater.state.chmod(0o777)
    assert headwater.connection()["state"] == "ready"
    assert len(headwater.type("connections", "list", "shop/me").result["connections"]) == 1


def test_a_run_without_a_connection_goes_on(headwater):
    """No credential is kept there for it."""
    assert headwater.connect().status == 0
    assert headwater.type("connections", "revoke", "shop/me", *REVISION).status == 0
    headwater.state.chmod(0o777)
    connecting = Connecting(Settings(headwater.place / "config.toml", headwater.state))
    assert asyncio.run(connecting.credential_for("shop/me")) is None
