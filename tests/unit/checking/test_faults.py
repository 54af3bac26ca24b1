"""The faults themselves: a kill that is one, a reader that is slow, and runs that share nothing."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from headwater import clock, limits
from headwater.catalog.folders import folder_at
from headwater.checking import check
from headwater.checking.faults import Killed, SlowlyRead
from headwater.process.child import Child
from headwater.process.environment import child_environment

WAITS = "import time; print('one\\ntwo\\nthree', flush=True); time.sleep(600)"
WRITES = "import sys; sys.stdout.write(('x' * 99 + '\\n') * 400)"


def with_child(code: str, use: Any) -> Any:
    """Start a program, use it, and leave no process behind."""

    async def going() -> Any:
        child = await Child.spawn([sys.executable, "-c", code], folder=None, environment=child_environment({}))
        try:
            return await use(child)
        finally:
            await child.stop()

    return asyncio.run(going())


def test_a_kill_leaves_the_process_no_time() -> None:
    """The lines up to the one that was drawn are seen, and none after; the process died of signal 9."""

    async def use(child: Child) -> Any:
        guest = Killed(child, 2)
        read = await guest.read(20)
        return list(read.lines), read.ended, await guest.wait(20)

    lines, ended, exit_ = with_child(WAITS, use)
    assert (lines, ended) == ([b"one", b"two"], True)
    assert exit_.signal == 9


def test_a_slow_reader_loses_nothing_and_takes_its_time(monkeypatch: Any) -> None:
    """The pipe holds a tenth of what is written, so the writer waits; then everything is there."""
    monkeypatch.setattr(limits, "CHECK_SLOW_SECONDS", 0.2)

    async def use(child: Child) -> Any:
        guest, lines, began = SlowlyRead(child), [], clock.monotonic()
        while True:
            read = await guest.read(20)
            lines += read.lines
            if read.ended:
                return lines, clock.monotonic() - began

    lines, seconds = with_child(WRITES, use)
    assert len(lines) == 400
    assert seconds >= 0.2


def test_runs_share_no_folder() -> None:
    """What a connector left among its bytes or its temporary files is gone in the next run, as in live runs."""
    folder = folder_at(Path(__file__).parents[2] / "guests" / "sins")
    report = asyncio.run(
        check(folder, {"sin": "remembers_in_its_folders"}, None, packs=["kill", "determinism"], seed=7)
    )
    assert report.conforms
