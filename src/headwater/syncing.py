"""Runs that a face starts and does not wait for: each is a collection run like any other, and is looked at as one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from headwater import limits
from headwater.errors import HeadwaterError, refuse
from headwater.events import Event, RunStarted
from headwater.host import Host
from headwater.joining.programs import CollectRequest, Watching

if TYPE_CHECKING:
    from headwater.collect.runs import Run


class Syncs:
    """The runs of one face: one of an instance at a time, and a few at once. Its own end cancels them."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._runs: dict[str, Run] = {}
        self._hinted: set[str] = set()
        self._is_stopping = False

    async def start(self, name: str) -> str:
        """Start a run of an instance, and return its id once the run is stored and its connector runs.

        Raise what refuses the run; `run_active` where the instance is being collected, `capacity` where too much is.
        """
        if name in self._tasks:
            run = self._runs.get(name)
            raise refuse("run_active") if run is None else refuse("run_active", run_id=run.run_id)
        if self._is_stopping or len(self._tasks) >= limits.SERVER_SYNCS:
            message = "As many runs as the server has at once are under way."
            raise refuse("capacity", message, safe="Nothing was started.")
        task, began = self._begin(name)
        either: set[asyncio.Future[Any]] = {task, began}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not began.done():
            await task
        return await began

    def hint(self, name: str) -> None:
        """Have an instance collected soon: hints before a run begins are one, those while it runs are one more."""
        self._hinted.add(name)
        self._follow()

    async def stop(self) -> None:
        """Start nothing more, cancel what runs, and wait for its end."""
        self._is_stopping = True
        for run in self._runs.values():
            run.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _begin(self, name: str) -> tuple[asyncio.Task[None], asyncio.Future[str]]:
        began: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        task = self._tasks[name] = asyncio.create_task(self._collect(name, began))
        task.add_done_callback(lambda _: self._ended(name, task))
        return task, began

    def _follow(self) -> None:
        """Begin what was hinted at, as far as there is room."""
        for name in sorted(self._hinted - self._tasks.keys()):
            if not self._is_stopping and len(self._tasks) < limits.SERVER_SYNCS:
                self._begin(name)

    async def _collect(self, name: str, began: asyncio.Future[str]) -> None:
        def started(run: Run) -> None:
            self._runs[name] = run
            if self._is_stopping:
                run.cancel()

        def observe(event: Event) -> None:
            if isinstance(event, RunStarted) and not began.done():
                began.set_result(event.run_id)
                self._hinted.discard(name)

        program = await asyncio.to_thread(lambda: self._host.program(self._host.set_up(name, ())))
        await self._host.collect(CollectRequest(program), Watching(observe, started=started, inbox=True))

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        """Forget a run that ended. What became of it is in its row; what nobody foresaw is noted.

        A hint waits for a run of somebody else, and is forgotten where something else refuses the run.
        """
        self._tasks.pop(name, None)
        self._runs.pop(name, None)
        error = None if task.cancelled() else task.exception()
        is_busy = isinstance(error, HeadwaterError) and error.code == "run_active"
        if error is not None and not is_busy:
            self._hinted.discard(name)
        if error is not None and not isinstance(error, HeadwaterError):
            self._host.note_crash(error)
        task.get_loop().call_later(limits.WEBHOOK_BUSY_SECONDS if is_busy else 0, self._follow)
