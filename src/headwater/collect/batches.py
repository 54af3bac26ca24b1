"""The writes of a run on their way to the ledger: one batch fills while the one before it is stored."""

import asyncio
from collections.abc import Mapping

from headwater import clock, limits
from headwater.collect.effects import Write
from headwater.collect.ports import Ledger
from headwater.events import Tally


class Batches:
    """At most two batches are held: `filling`, and the one that is being stored. They are stored in their order."""

    def __init__(self, ledger: Ledger) -> None:
        self.filling: list[Write] = []
        self.held_bytes = 0
        self._ledger = ledger
        self._handed_over_at = clock.monotonic()
        self._storing: asyncio.Task[Mapping[str, Tally]] | None = None

    @property
    def are_open(self) -> bool:
        """Whether anything is not known to be durable yet."""
        return bool(self.filling) or self._storing is not None

    @property
    def is_due(self) -> bool:
        """Whether the batch is large, or old: a slow connector's records do not wait for a fast one's size."""
        large = self.held_bytes >= limits.BATCH_BYTES or len(self.filling) >= limits.BATCH_EFFECTS
        return large or clock.monotonic() - self._handed_over_at >= limits.BATCH_WAIT_SECONDS

    async def hand_over(self, *, ended: bool = False) -> Mapping[str, Tally] | None:
        """Have the batch stored, once the one before it is; return what became of that one's records, if there was one.

        Raise what the ledger raised for the one before; the batch is dropped then, for it must not come without it.
        """
        batch, self.filling, self.held_bytes = self.filling, [], 0
        self._handed_over_at = clock.monotonic()
        before = await self.settle()
        if batch or ended:
            self._storing = asyncio.create_task(self._ledger.write(batch, ended=ended))
            await asyncio.sleep(0)  # it is on its way before the next line is read
        return before

    async def settle(self) -> Mapping[str, Tally] | None:
        """Wait until what was handed over is durable; return what became of its records, None where all was already."""
        storing, self._storing = self._storing, None
        return None if storing is None else await storing
