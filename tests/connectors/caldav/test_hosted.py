"""The CalDAV connector under the real host: a kill and a run that goes on, a poisoned object, the check."""

import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

from connectors.caldav.calendars import filled
from connectors.dav.account import Account
from servers.dav_relay import Asked


def test_a_killed_run_loses_nothing(account: Account, headwater: Any, tmp_path: Path) -> None:
    """Kill -9 of the host while the third page is asked for; the next run brings the rest."""
    filled(account, 130)
    reached, over, pages = threading.Event(), threading.Event(), []

    def instead(asked: Asked) -> tuple[int, str] | None:
        pages.append(asked.kind)
        if pages.count("calendar-multiget") == 3:
            reached.set()
            over.wait(60)
        return None

    account.relay.instead = instead
    words = headwater.words("collect", "caldav/me", *account.typed(tmp_path))
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    assert reached.wait(60)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    account.relay.instead = lambda _asked: None
    over.set()
    result = headwater.type("collect", "caldav/me", *account.typed(tmp_path)).result
    assert result["status"] == "succeeded"
    assert len(headwater.keys("events", "caldav/me")) == 130
    assert headwater.left_behind() == []


def test_records_fit_and_are_found(account: Account, headwater: Any, tmp_path: Path) -> None:
    """Nothing is rejected, the second run stores nothing, and search finds an event by its summary."""
    filled(account, 3)
    counts = headwater.type("collect", "caldav/me", *account.typed(tmp_path)).result["streams"]
    assert {row["stream"]: (row["accepted"], row["rejected"]) for row in counts} == {
        "calendars": (1, 0),
        "events": (3, 0),
    }
    again = headwater.type("collect", "caldav/me", *account.typed(tmp_path)).result["streams"]
    assert [row["accepted"] + row["unchanged"] for row in again] == [0, 0]
    found = headwater.type("records", "search", "Work", "--stream", "events").result["items"]
    assert len(found) == 3


def test_the_check_passes(account: Account, headwater: Any, tmp_path: Path) -> None:
    """A kill at any line, narrowed scopes, questions, no network."""
    filled(account, 4)
    packs = [word for pack in ("kill", "narrowed", "otp", "no-network") for word in ("--pack", pack)]
    words = ["connectors", "check", str(account.folder), *account.typed(tmp_path), *packs]
    result = headwater.type(*words).result
    assert result["conforms"]
    assert [row for row in result["clauses"] if row["verdict"] == "fail"] == []
    shown = {row["clause"] for row in result["clauses"] if row["verdict"] == "pass"}
    assert shown >= {"CP-410", "CP-447", "CP-515", "CP-516", "CP-317"}
