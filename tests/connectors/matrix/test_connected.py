"""A Matrix account that is connected once: runs ask nobody, until it is revoked."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.synapse import Synapse, User, synapse_in

PAIR = ("--connector", "matrix", "--instance", "me")


def written(place: Path, name: str, content: str) -> Path:
    """Write a file that only its owner can read."""
    path = place / name
    path.touch(mode=0o600)
    path.write_text(content)
    return path


@pytest.fixture
def configured(headwater: Any) -> Iterator[Any]:
    """A Headwater whose credentials go into a sealed file."""
    place = headwater.place
    key = written(place, "key", "k" * 43)
    custody = f'[custody]\nbinding = "sealed_file"\nfile = "{place}/custody.sealed"\nkey_file = "{key}"\n'
    written(place, "collect.toml", f'format = "headwater-collect/1"\n{custody}')
    written(place, "config.toml", f'format = "connectors-local/5"\nowner_uid = {os.geteuid()}\n')
    yield headwater
    headwater.type("setup", "owner-stop")


def connect(headwater: Any, user: User, profile: str) -> Any:
    """Connect `matrix/me` by a protected file, which is gone afterwards; return how the connection is."""
    fields = {
        "token": {"access_token": user.access_token},
        "password": {"username": user.name, "password": user.password},
    }
    entry = written(headwater.place, "entry.json", json.dumps(fields[profile]))
    how = ["--endpoint", user.base_url, "--profile", profile, "--credential-file", str(entry)]
    assert headwater.type("connections", "connect", "matrix/me", *how).result["instance"] == "me"
    entry.unlink()
    return headwater.type("connections", "describe", *PAIR).result["connection"]


@pytest.mark.parametrize("profile", ["token", "password"])
def test_connect_collect_revoke(synapse: Synapse, configured: Any, profile: str) -> None:
    """Everything is restarted, and a second run asks nobody; then the connection is revoked, and a third is refused."""
    user = synapse.register()
    user.send(user.make_room("Kitchen"), "Tea?")
    shown = connect(configured, user, profile)
    assert (shown["state"], shown["external_identity"]["subject"]) == ("ready", user.user_id)
    for _ in range(2):
        assert configured.type("collect", "matrix/me").result["status"] == "succeeded"
        configured.type("setup", "owner-stop")
    assert len(configured.keys("messages", "matrix/me")) == 1
    gone = configured.type("connections", "revoke", *PAIR, "--expected-revision", "1").result
    assert gone["local_state"] == "revoked"
    assert configured.type("collect", "matrix/me").failure["code"] == "revoked"
    secrets = (user.password.encode(), user.access_token.encode())
    files = [path for path in configured.place.rglob("*") if path.is_file()]
    assert [path for path in files if any(secret in path.read_bytes() for secret in secrets)] == []


def test_a_session_whose_tokens_last_a_moment_is_collected_without_a_question(
    configured: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each run finds its token expired, or sees it expire: it is renewed, and renewed once more the next time."""
    with synapse_in(tmp_path_factory.mktemp("hasty"), refreshable_access_token_lifetime="2s") as hasty:
        user = hasty.register()
        room = user.make_room("Kitchen")
        connect(configured, user, "password")
        for number in range(2):
            user.send(room, f"Number {number}")
            assert configured.type("collect", "matrix/me").result["status"] == "succeeded"
        assert len(configured.keys("messages", "matrix/me")) == 2
