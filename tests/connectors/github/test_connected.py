"""A GitHub account that is connected once by its token: runs ask nobody, until it is revoked."""

from typing import Any

from connectors.connecting import configure, connect, revoke, showing
from connectors.github.account import Account


def test_connect_collect_revoke(account: Account, headwater: Any) -> None:
    """Two runs without a question; then the connection is revoked, and the third is refused."""
    token = account.world.token
    configure(headwater.place)
    account.world.add_issue(account.world.add_repository("garden"), "Water the beans")
    shown = connect(headwater, "github", account.github.url, "token", {"token": token})
    assert (shown["state"], shown["external_identity"]) == ("ready", {"kind": "github.user", "subject": "1"})
    for _ in range(2):
        assert headwater.type("collect", "github/me").result["status"] == "succeeded"
    assert len(headwater.keys("issues", "github/me")) == 1
    revoke(headwater, "github")
    assert showing(headwater.place, token) == []
