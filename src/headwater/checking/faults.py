"""Faults on purpose: hosts that kill their connector, or read slowly. Each wraps the guest that it troubles."""

import asyncio

from headwater import limits
from headwater.collect.ports import Lines
from headwater.collect.verdict import Exit
from headwater.process.child import Child


class Troubled:
    """A guest that behaves as it is; the faults below differ in one thing each."""

    def __init__(self, child: Child) -> None:
        self._child = child

    async def read(self, timeout_seconds: float) -> Lines:
        """See `Guest.read`."""
        return await self._child.read(timeout_seconds)

    async def send(self, line: bytes) -> None:
        """See `Guest.send`."""
        await self._child.send(line)

    async def close_input(self) -> None:
        """See `Guest.close_input`."""
        await self._child.close_input()

    async def stop(self) -> Exit:
        """See `Guest.stop`."""
        return await self._child.stop()

    async def wait(self, timeout_seconds: float) -> Exit | None:
        """See `Guest.wait`."""
        return await self._child.wait(timeout_seconds)

    @property
    def stderr_tail(self) -> str:
        """See `Guest.stderr_tail`."""
        return self._child.stderr_tail


class Killed(Troubled):
    """Its process is killed behind a line, and nothing that follows is seen."""

    def __init__(self, child: Child, line: int) -> None:
        super().__init__(child)
        self._left = line

    async def read(self, timeout_seconds: float) -> Lines:
        """Return the lines up to the one that it is killed behind."""
        read = await self._child.read(timeout_seconds)
        lines = read.lines[: self._left]
        self._left -= len(lines)
        if self._left > 0 or not (read.lines or read.ended):
            return Lines(lines, read.ended, read.truncated)
        self._child.kill()
        return Lines(lines, ended=True)


class SlowlyRead(Troubled):
    """A host with a small pipe that waits before each read, for a while."""

    def __init__(self, child: Child) -> None:
        super().__init__(child)
        self._left_seconds = limits.CHECK_SLOW_SECONDS
        child.narrow(limits.CHECK_PIPE_BYTES)

    async def read(self, timeout_seconds: float) -> Lines:
        """Wait, then read."""
        if self._left_seconds > 0:
            wait = min(self._left_seconds, limits.CHECK_SLOW_SECONDS / 10, timeout_seconds)
            self._left_seconds -= wait
            await asyncio.sleep(wait)
        return await self._child.read(timeout_seconds)
