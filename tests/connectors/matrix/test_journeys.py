"""A Matrix account as a person collects it: with the whole host, killed in the midst, and read in the store."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from connectors.matrix.people import Account


@pytest.fixture
def words(account: Account, headwater: Any, tmp_path: Path) -> list[str]:
    """The command that collects the account."""
    path = tmp_path / "answers.json"
    path.write_text(json.dumps({"answers": [{"kind": "credentials", "data": account.answer}]}))
    place = f"endpoint={account.relay.base_url}"
    return ["collect", "matrix/me", "--set", place, "--answer-file", str(path)]


def test_two_runs_leave_versions_and_a_searchable_archive(account: Account, headwater: Any, words: list[str]) -> None:
    """The edit is the newest version, the first text the one before; the token is nowhere."""
    room = account.user.make_room("Kitchen")
    event = account.user.send(room, "Tea at four")
    gone = account.user.send(room, "A secret")
    assert headwater.type(*words).result["status"] == "succeeded"
    account.user.edit(room, event, "Coffee at five")
    account.user.redact(room, gone)
    assert headwater.type(*words).result["checkpoints"]["withheld"] == []
    history = headwater.type("records", "history", "matrix/me", "messages", event).result
    assert [row["data"]["body"] for row in history["versions"]] == ["Coffee at five", "Tea at four"]
    newest = headwater.type("records", "get", "matrix/me", "messages", gone).result["data"]
    assert (newest["redacted"], newest["body"]) == (True, None)
    found = headwater.type("records", "search", "coffee").result
    assert [row["key"] for row in found["items"]] == [event]
    told = account.user.access_token.encode()
    assert [path for path in headwater.state.rglob("*") if path.is_file() and told in path.read_bytes()] == []


def test_a_run_that_is_killed_loses_and_doubles_nothing(account: Account, headwater: Any, words: list[str]) -> None:
    """Kill -9 of the host between two pages of history."""
    account.shorten()
    room = account.user.make_room("Kitchen")
    sent = {account.user.send(room, f"Number {number}") for number in range(45)}
    started: list[subprocess.Popen[bytes]] = []

    def kill(target: str) -> None:
        if len(account.relay.paths("/messages")) == 3:
            os.kill(started[0].pid, signal.SIGKILL)

    account.relay.meddle = kill
    environment = {"HOME": str(headwater.place), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    started.append(subprocess.Popen(headwater.words(*words), env=environment, stdout=subprocess.DEVNULL))
    assert started[0].wait(60) == -signal.SIGKILL
    account.relay.meddle = lambda target: None
    assert headwater.type(*words).result["status"] == "succeeded"
    assert headwater.keys("messages", "matrix/me") == sent
    assert headwater.left_behind() == []
