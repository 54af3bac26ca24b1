"""A Matrix account that is connected once: runs ask nobody, until it is revoked."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from connectors.matrix.people import Account


def written(place: Path, name: str, content: str) -> Path:
    """Write a file that only its owner can read."""
    path = place / name
    path.touch(mode=0o600)
    path.write_text(content)
    return path


@pytest.fixture
def configured(account: Account, headwater: Any) -> Any:
    """A Headwater with the instance `matrix/me`, whose credentials go into a sealed file."""
    place = headwater.place
    key = written(place, "key", "k" * 43)
    custody = f'[custody]\nbinding = "sealed_file"\nfile = "{place}/custody.sealed"\nkey_file = "{key}"\n'
    written(place, "collect.toml", f'format = "headwater-collect/1"\n{custody}')
    written(place, "config.toml", f'format = "connectors-local/5"\nowner_uid = {os.geteuid()}\n')
    account.user.send(account.user.make_room("Kitchen"), "Tea?")
    return headwater


@pytest.mark.parametrize("profile", ["token"])
def test_connect_collect_revoke(account: Account, configured: Any, profile: str) -> None:
    """Two runs without a question; then the connection is revoked, and the third is refused."""
    user = account.user
    entries = {"token": account.answer, "password": {"username": user.name, "password": user.password}}
    entry = written(configured.place, "entry.json", json.dumps(entries[profile]))
    endpoint = ["--endpoint", account.relay.base_url]
    connect = ["connections", "connect", "matrix/me", *endpoint, "--profile", profile, "--credential-file", str(entry)]
    made = configured.type(*connect).result
    assert made["instance"] == "me"
    entry.unlink()
    shown = configured.type("connections", "describe", "--connector", "matrix", "--instance", "me").result["connection"]
    assert (shown["state"], shown["external_identity"]["subject"]) == ("ready", user.user_id)
    for _ in range(2):
        assert configured.type("collect", "matrix/me").result["status"] == "succeeded"
    assert len(configured.keys("messages", "matrix/me")) == 1
    revoke = ["connections", "revoke", "--connector", "matrix", "--instance", "me", "--expected-revision", "1"]
    assert configured.type(*revoke).result["local_state"] == "revoked"
    assert configured.type("collect", "matrix/me").failure["code"] == "revoked"
    secrets = (user.password.encode(), user.access_token.encode())
    files = [path for path in configured.place.rglob("*") if path.is_file() and path.parent.name != "synapse"]
    assert [path for path in files if any(secret in path.read_bytes() for secret in secrets)] == []
