"""Killing a collection in its midst: host and connector at once, when a cursor waits for the end of the run."""

import os
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from typing import Any


def killed_in_the_midst(headwater: Any, stream: str, *words: str) -> None:
    """Collect, and kill -9 both once the store has a cursor of a stream; nothing of them is left behind."""
    environment = {"HOME": str(headwater.place), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    with subprocess.Popen(
        headwater.words("collect", *words),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        until = time.monotonic() + 60
        while not _is_staged(headwater, stream):
            assert process.poll() is None, "the run came to its end"
            assert time.monotonic() < until
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    assert headwater.left_behind() == []


def _is_staged(headwater: Any, stream: str) -> bool:
    try:
        with closing(sqlite3.connect(f"file:{headwater.state}/headwater.db?mode=ro", uri=True)) as database:
            return database.execute("SELECT 1 FROM staged WHERE stream = ?", (stream,)).fetchone() is not None
    except sqlite3.Error:
        return False
