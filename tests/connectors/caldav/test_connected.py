"""A calendar account that is connected once by its app password: runs ask nobody, until it is revoked."""

from typing import Any

from connectors.caldav.calendars import filled
from connectors.connecting import configure, connect, revoke, showing
from connectors.dav.account import Account


def test_connect_collect_revoke(account: Account, headwater: Any) -> None:
    """Two runs without a question; then the connection is revoked, and the third is refused."""
    owner = account.owner
    configure(headwater.place)
    filled(account)
    fields = {"username": owner.name, "password": owner.password}
    assert connect(headwater, "caldav", owner.endpoint, "app_password", fields)["state"] == "ready"
    for _ in range(2):
        assert headwater.type("collect", "caldav/me").result["status"] == "succeeded"
    assert len(headwater.keys("events", "caldav/me")) == 3
    revoke(headwater, "caldav")
    assert showing(headwater.place, owner.password) == []
