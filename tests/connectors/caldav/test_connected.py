"""A calendar account that is connected once by its app password: runs ask nobody, until it is revoked."""

import json
import os
from pathlib import Path
from typing import Any

from connectors.caldav.calendars import filled
from connectors.dav.account import Account


def written(place: Path, name: str, content: str) -> Path:
    """Write a file that only its owner can read."""
    path = place / name
    path.touch(mode=0o600)
    path.write_text(content)
    return path


def test_connect_collect_revoke(account: Account, headwater: Any) -> None:
    """Two runs without a question; then the connection is revoked, and the third is refused."""
    place, owner = headwater.place, account.owner
    key = written(place, "key", "k" * 43)
    custody = f'[custody]\nbinding = "sealed_file"\nfile = "{place}/custody.sealed"\nkey_file = "{key}"\n'
    written(place, "collect.toml", f'format = "headwater-collect/1"\n{custody}')
    written(place, "config.toml", f'format = "connectors-local/5"\nowner_uid = {os.geteuid()}\n')
    filled(account)
    entry = written(place, "entry.json", json.dumps({"username": owner.name, "password": owner.password}))
    place_of = ["--endpoint", owner.endpoint, "--credential-file", str(entry)]
    made = headwater.type("connections", "connect", "caldav/me", "--profile", "app_password", *place_of)
    assert made.result["instance"] == "me"
    entry.unlink()
    for _ in range(2):
        assert headwater.type("collect", "caldav/me").result["status"] == "succeeded"
    assert len(headwater.keys("events", "caldav/me")) == 3
    revoke = ["connections", "revoke", "--connector", "caldav", "--instance", "me", "--expected-revision", "1"]
    assert headwater.type(*revoke).result["local_state"] == "revoked"
    assert headwater.type("collect", "caldav/me").failure["code"] == "revoked"
    files = [path for path in place.rglob("*") if path.is_file()]
    assert [path for path in files if owner.password.encode() in path.read_bytes()] == []
