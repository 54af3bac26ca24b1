"""A GitHub account that is connected once by its token: runs ask nobody, until it is revoked."""

import json
import os
from pathlib import Path
from typing import Any

from connectors.github.account import Account


def written(place: Path, name: str, content: str) -> Path:
    """Write a file that only its owner can read."""
    path = place / name
    path.touch(mode=0o600)
    path.write_text(content)
    return path


def test_connect_collect_revoke(account: Account, headwater: Any) -> None:
    """Two runs without a question; then the connection is revoked, and the third is refused."""
    place, token = headwater.place, account.world.token
    key = written(place, "key", "k" * 43)
    custody = f'[custody]\nbinding = "sealed_file"\nfile = "{place}/custody.sealed"\nkey_file = "{key}"\n'
    written(place, "collect.toml", f'format = "headwater-collect/1"\n{custody}')
    written(place, "config.toml", f'format = "connectors-local/5"\nowner_uid = {os.geteuid()}\n')
    account.world.add_issue(account.world.add_repository("garden"), "Water the beans")
    entry = written(place, "entry.json", json.dumps({"token": token}))
    endpoint = ["--endpoint", account.github.url]
    connect = ["connections", "connect", "github/me", *endpoint, "--profile", "token", "--credential-file", str(entry)]
    assert headwater.type(*connect).result["instance"] == "me"
    entry.unlink()
    shown = headwater.type("connections", "describe", "--connector", "github", "--instance", "me").result["connection"]
    assert (shown["state"], shown["external_identity"]) == ("ready", {"kind": "github.user", "subject": "1"})
    for _ in range(2):
        assert headwater.type("collect", "github/me").result["status"] == "succeeded"
    assert len(headwater.keys("issues", "github/me")) == 1
    revoke = ["connections", "revoke", "--connector", "github", "--instance", "me", "--expected-revision", "1"]
    assert headwater.type(*revoke).result["local_state"] == "revoked"
    assert headwater.type("collect", "github/me").failure["code"] == "revoked"
    files = [path for path in place.rglob("*") if path.is_file()]
    assert [path for path in files if token.encode() in path.read_bytes()] == []
