"""The GitHub connector under the real host: a kill, gaps that heal, and the check."""

import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

from connectors.github.account import CONNECTOR, Account


def typed(account: Account, headwater: Any, tmp_path: Path) -> list[str]:
    """Return the words that collect."""
    answers = account.answer_file(tmp_path)
    return ["collect", "github/me", "--set", f"endpoint={account.github.url}", "--answer-file", answers]


def filled(account: Account, issues: int) -> None:
    """Make three repositories."""
    for name in ("garden", "shed", "pond"):
        repository = account.world.add_repository(name)
        for number in range(issues):
            account.world.add_issue(repository, f"{name} {number}")
        account.world.add_pull_request(repository)
        account.world.add_comment(repository, 1)
        account.world.add_release(repository, "v1")


def test_a_killed_run_loses_nothing(account: Account, headwater: Any, tmp_path: Path) -> None:
    """Kill -9 of the host while the fourth page is asked for; the next run brings the rest."""
    filled(account, issues=150)
    reached, pages = threading.Event(), []

    def hold(path: str) -> None:
        pages.append(path)
        if sum(path.endswith("/issues") for path in pages) == 4:
            reached.set()
            account.github.over.wait(60)

    account.github.hold = hold
    words = headwater.words(*typed(account, headwater, tmp_path))
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    assert reached.wait(60)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    account.github.hold = lambda _path: None
    account.github.over.set()
    result = headwater.type(*typed(account, headwater, tmp_path)).result
    assert result["status"] == "succeeded"
    assert len(headwater.keys("issues", "github/me")) == 3 * 151
    assert len(headwater.keys("pull_requests", "github/me")) == 3
    assert headwater.left_behind() == []


def test_a_gap_is_healed_by_the_next_run(account: Account, headwater: Any, tmp_path: Path) -> None:
    """Though its issue did not change, and the host may not ask for a token for a gap alone."""
    filled(account, issues=1)
    account.github.faults["/shed/pulls/2"] = [502] * 3
    result = headwater.type(*typed(account, headwater, tmp_path)).result
    assert {row["stream"]: row["gaps"] for row in result["streams"]}["pull_requests"] == 1
    assert len(headwater.type("gaps", "list").result["items"]) == 1
    assert headwater.type(*typed(account, headwater, tmp_path)).result["status"] == "succeeded"
    assert len(headwater.keys("pull_requests", "github/me")) == 3
    assert headwater.type("gaps", "list").result["items"] == []


def test_the_check_passes(account: Account, headwater: Any, tmp_path: Path) -> None:
    """The packs that this connector's tests do not cover already: a kill at any line, narrowed scopes, no network."""
    filled(account, issues=2)
    answers = account.answer_file(tmp_path)
    packs = [word for pack in ("kill", "narrowed", "otp", "no-network") for word in ("--pack", pack)]
    place = ["--set", f"endpoint={account.github.url}", *packs]
    result = headwater.type("connectors", "check", str(CONNECTOR), *place, "--answer-file", answers).result
    assert result["conforms"]
    assert [row for row in result["clauses"] if row["verdict"] == "fail"] == []
    shown = {row["clause"] for row in result["clauses"] if row["verdict"] == "pass"}
    assert shown >= {"CP-410", "CP-447", "CP-515", "CP-516", "CP-317"}
