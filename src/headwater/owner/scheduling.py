"""The schedules, run by the owner for as long as nobody else runs them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

from headwater import limits
from headwater.errors import HeadwaterError
from headwater.host import Host
from headwater.scheduler import News, Scheduler


class Scheduling:
    """Keeps the schedules of one Headwater; a scheduler in the foreground goes first."""

    def __init__(self, host: Host) -> None:
        self._host = host

    @property
    def is_needed(self) -> bool:
        """Whether an instance has a schedule that is not paused: then the owner does not end by itself."""
        try:
            instances = self._host.instances.all().values()
        except HeadwaterError:  # a file that is being edited says nothing of an end
            return True
        return any(one.schedule is not None and not one.schedule.get("paused") for one in instances)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the schedules while the context is open; runs that are under way are cancelled at its end."""
        keeping = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    async def _keep(self) -> None:
        while True:
            if self.is_needed:
                with ExitStack() as turn, contextlib.suppress(HeadwaterError):
                    turn.enter_context(self._host.scheduling())
                    await self._kept()
            await asyncio.sleep(limits.SCHEDULE_TICK_SECONDS)

    async def _kept(self) -> None:
        """Run what is due, until cancelled: then what runs is ended as any cancelled run is."""
        scheduler = Scheduler(self._host, _unheard)
        keeping = asyncio.create_task(scheduler.keep())
        try:
            await asyncio.shield(keeping)
        finally:
            scheduler.stop()
            await asyncio.gather(keeping, return_exceptions=True)


def _unheard(_news: News) -> None:
    """The runs tell what became of them."""
