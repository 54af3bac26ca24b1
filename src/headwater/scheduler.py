"""The scheduler: starts what is due, a few at a time, until it is stopped.

What is due is decided anew at each look from `collect.toml`, the runs in the store and the clock, so a restart
forgets nothing. It waits on the monotonic clock and looks at the wall clock at each tick: a machine that slept or
a clock that was set is noticed within one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from headwater import clock, limits
from headwater.catalog.instances import Instance
from headwater.catalog.schedules import read_schedule
from headwater.collect.ports import Outcome
from headwater.collect.schedules import Due, PastRun, Schedule, back_off, next_due, repaired
from headwater.errors import HeadwaterError
from headwater.events import Event
from headwater.host import Host
from headwater.joining.programs import CollectRequest, Program, Watching

if TYPE_CHECKING:
    from headwater.collect.runs import Run


@dataclass(frozen=True)
class Standing:
    """A scheduled instance and how it stands. `members` are those of its schedule, as they were written.

    `fault` is why a scheduler cannot start it, if it cannot; `last` is its latest whole run. `is_connected` says that
    it has a connection which may be used.
    """

    name: str
    members: Mapping[str, Any]
    schedule: Schedule | None = None
    program: Program | None = None
    due: Due | None = None
    last: PastRun | None = None
    fault: HeadwaterError | None = None
    is_connected: bool = False

    def is_owed(self, now: datetime) -> bool:
        """Whether a run may start now, but for a fault. Where a fault hides what is due, it is owed unless paused."""
        if self.due is not None:
            return self.due.at <= now
        return self.fault is not None and (self.schedule is None or not self.schedule.paused)


@dataclass(frozen=True)
class Began:
    """A run begins, for an occurrence."""

    instance: str
    due: Due


@dataclass(frozen=True)
class Ended:
    """A run ended."""

    instance: str
    outcome: Outcome


@dataclass(frozen=True)
class Refused:
    """A run could not be started, or `collect.toml` cannot be used (then `instance` is empty)."""

    instance: str
    error: HeadwaterError


News = Began | Ended | Refused


def standings(host: Host, now: datetime) -> list[Standing]:
    """Return how each instance with a schedule stands, by what is due first.

    Where the database cannot be read, nothing can be said to be due, and that is each one's fault.
    """
    found = [_read(host, item) for item in host.instances.all().values() if item.schedule is not None]
    programs = [standing.program for standing in found if standing.program is not None]
    try:
        pasts = dict(zip([program.name for program in programs], host.past_runs(programs), strict=True))
    except HeadwaterError as error:
        return [replace(standing, fault=standing.fault or error) for standing in found]
    stood = [_stood(standing, pasts.get(standing.name, []), now) for standing in found]
    latest = datetime.max.replace(tzinfo=now.tzinfo)
    return sorted(stood, key=lambda standing: (latest if standing.due is None else standing.due.at, standing.name))


def _read(host: Host, instance: Instance) -> Standing:
    members = instance.schedule or {}
    schedule = program = None
    try:
        schedule = read_schedule(members)
        program = host.program(instance)
        asks = "credentials" in program.declaration.human_interaction
        is_connected = asks and host.connecting.is_connected(instance.name)
    except HeadwaterError as error:
        return Standing(instance.name, members, schedule, program, fault=error)
    return Standing(instance.name, members, schedule, program, is_connected=is_connected)


def _stood(standing: Standing, past: Sequence[PastRun], now: datetime) -> Standing:
    if standing.schedule is None:
        return standing
    counted = repaired(past) if standing.is_connected else past
    due = next_due(standing.name, standing.schedule, counted, now)
    return replace(standing, due=due, last=past[0] if past else None)


class Scheduler:
    """Runs what is due, `at_once` runs at a time at most. What happens is told; telling must not wait."""

    def __init__(self, host: Host, tell: Callable[[News], None], at_once: int = limits.SCHEDULE_AT_ONCE) -> None:
        self._host = host
        self._tell = tell
        self._at_once = at_once
        self._stopping = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._runs: dict[str, Run] = {}
        self._refusals: dict[str, int] = {}
        self._held_until: dict[str, float] = {}
        self._said: dict[str, str] = {}

    def stop(self) -> None:
        """Start nothing more, and cancel what runs."""
        self._stopping.set()
        for run in self._runs.values():
            run.cancel()

    async def keep(self) -> None:
        """Start what is due whenever it is, until `stop`. Return when the last run has ended."""
        while not self._stopping.is_set():
            found = await self._look()
            for standing in found:
                self._start(standing)
            await self._wait(self._seconds_to_next(found))
        await self._finish()

    async def once(self) -> None:
        """Start what is due now, each instance once. Return when the last run has ended."""
        for standing in await self._look():
            while len(self._tasks) >= self._at_once and not self._stopping.is_set():
                await self._wait(limits.SCHEDULE_TICK_SECONDS)
            self._start(standing)
        await self._finish()

    async def _look(self) -> Sequence[Standing]:
        """Return how things stand; nothing where they cannot be read now. A fault that keeps a run is told once."""
        now = clock.now()
        try:
            found = await asyncio.to_thread(standings, self._host, now)
        except HeadwaterError as error:
            self._tell_once("", error)
            return []
        self._said.pop("", None)
        for standing in found:
            if standing.fault is not None:
                self._held_until.pop(standing.name, None)  # it is paused: what it waits for is its repair
                if standing.is_owed(now):
                    self._tell_once(standing.name, standing.fault)
        return found

    def _start(self, standing: Standing) -> None:
        """Start a run, unless it is not due, held back, or over the bound."""
        name, due, program = standing.name, standing.due, standing.program
        if due is None or program is None or standing.fault is not None or not standing.is_owed(clock.now()):
            return
        held = self._held_until.get(name, 0.0) > clock.monotonic()
        if name in self._tasks or held or len(self._tasks) >= self._at_once or self._stopping.is_set():
            return
        self._tasks[name] = asyncio.create_task(self._collect(name, due, program))

    async def _collect(self, name: str, due: Due, program: Program) -> None:
        def started(run: Run) -> None:
            if name not in self._runs:
                self._tell(Began(name, due))
            self._runs[name] = run
            if self._stopping.is_set():
                run.cancel()

        try:
            watching = Watching(_unseen, started=started, inbox=True)
            outcome = await self._host.collect(CollectRequest(program), watching)
        except HeadwaterError as error:
            self._hold(name, error)
        else:
            self._refusals.pop(name, None)
            self._said.pop(name, None)
            self._held_until[name] = clock.monotonic() + limits.SCHEDULE_TICK_SECONDS
            self._tell(Ended(name, outcome))
        finally:
            self._runs.pop(name, None)

    def _hold(self, name: str, error: HeadwaterError) -> None:
        """Wait before a run that was refused is tried again: an active one ends soon, anything else takes longer."""
        if error.code == "run_active":
            seconds = limits.SCHEDULE_BUSY_SECONDS
        else:
            self._refusals[name] = self._refusals.get(name, 0) + 1
            seconds = back_off(self._refusals[name])
        self._held_until[name] = clock.monotonic() + seconds
        self._tell_once(name, error)

    def _tell_once(self, name: str, error: HeadwaterError) -> None:
        if self._said.get(name) != error.message:
            self._said[name] = error.message
            self._tell(Refused(name, error))

    def _seconds_to_next(self, found: Sequence[Standing]) -> float:
        now = clock.now()
        ahead = [(standing.due.at - now).total_seconds() for standing in found if standing.due is not None]
        return min([limits.SCHEDULE_TICK_SECONDS, *(seconds for seconds in ahead if seconds > 0)])

    async def _wait(self, seconds: float) -> None:
        """Wait for a while, for the end of a run, or for `stop`; then forget the runs that ended."""
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait({stopping, *self._tasks.values()}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        for name in [name for name, task in self._tasks.items() if task.done()]:
            self._tasks.pop(name).result()

    async def _finish(self) -> None:
        await asyncio.gather(*self._tasks.values())


def _unseen(_event: Event) -> None:
    """Watch without a display."""
