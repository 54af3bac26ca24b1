"""Whose turn it is at an instance: lock files, let go by the system when their holder dies."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from headwater import clock, limits
from headwater.errors import HeadwaterError, refuse
from headwater.store.locks import exclusive


class ConnectionTurns:
    """Fills the port `Turns`, in a folder of its own beside the locks of runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def connecting(self, instance_id: str) -> Iterator[bool]:
        """See `Turns.connecting`."""
        with ExitStack() as stack:
            yield self._taken(stack, f"{instance_id}+connect")  # no instance id has a plus

    @asynccontextmanager
    async def publishing(self, instance_id: str) -> AsyncIterator[None]:
        """See `Turns.publishing`."""
        busy = "Another process is busy with the instance's connection."
        async with self._soon(instance_id, clock.monotonic() + limits.CONNECTION_TURN_SECONDS, busy):
            yield

    @asynccontextmanager
    async def writing(self, instance_id: str, until: float) -> AsyncIterator[None]:
        """Be the one that writes at an instance. Raise `timeout` where the turn does not come in time."""
        async with self._soon(f"{instance_id}+write", until, "Another process writes at the instance."):
            yield

    @asynccontextmanager
    async def _soon(self, name: str, until: float, busy: str) -> AsyncIterator[None]:
        with ExitStack() as stack:
            while not self._taken(stack, name):
                if clock.monotonic() >= until:
                    raise refuse("timeout", busy, safe="Nothing was changed.")
                await asyncio.sleep(limits.LOCK_LOOK_SECONDS)
            yield

    def _taken(self, stack: ExitStack, name: str) -> bool:
        try:
            stack.enter_context(exclusive(self._folder / f"{name}.lock"))
        except HeadwaterError as error:
            if error.code == "run_active":
                return False
            raise
        return True
