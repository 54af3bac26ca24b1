"""Collecting for real: one live run after the other of one instance, joined to process, store and sockets.

Modules that only a run needs are imported when it starts, so that this one costs a looking command nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater import clock
from headwater.errors import HeadwaterError
from headwater.joining.programs import CollectRequest, Program, Watching
from headwater.settings import Settings

if TYPE_CHECKING:
    from headwater.collect.gaps import Turn
    from headwater.collect.plan import RunPlan
    from headwater.collect.ports import Ledger, Observer, Outcome
    from headwater.process.launch import Launch
    from headwater.secret import Secret
    from headwater.store.starting import StoreProcess


class Collecting:
    """Runs connectors for one Headwater. `store` is one that was started ahead, for the first run.

    `passphrase` asks a person for the one of a sealed file, where a connection's credential is in one.
    """

    def __init__(
        self,
        settings: Settings,
        store: StoreProcess | None = None,
        passphrase: Callable[[str], Secret] | None = None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._passphrase = passphrase

    async def collect(self, request: CollectRequest, watching: Watching) -> Outcome:
        """Run once and return how it ended.

        Gaps whose turn it is are tried again after a run that succeeded, unless that could ask the owner anew.

        Raise before anything is started where the manifest, the scope, the options or a binding do not fit, and
        `run_active` where the instance is being collected already.
        """
        from headwater.collect.gaps import Turn

        watching = await self._at_the_door(request, watching)
        wish = _plan(request, asked=watching.answers)
        async with self._kept(request.program, watching) as (ledger, spool):
            outcome = await self._run(request, await _begun(ledger, wish), ledger, spool, watching)
            asks = request.program.declaration.human_interaction - ({"credentials"} if watching.door else set())
            silent = not asks and request.authority is None
            if outcome.verdict.status != "succeeded" or not silent:
                return outcome
            retry = await _retrying(ledger, wish, Turn())
            if retry is None:
                return outcome
            try:
                return replace(outcome, retried=await self._run(request, retry, ledger, spool, watching))
            except HeadwaterError:  # what was asked for succeeded; the retry's own run tells how that one ended
                return outcome

    async def retry_gaps(self, request: CollectRequest, turn: Turn, watching: Watching) -> Outcome | None:
        """Try the gaps whose turn it is again, in one run of their own; return None where it is none's."""
        watching = await self._at_the_door(request, watching)
        wish = _plan(request, asked=watching.answers)
        async with self._kept(request.program, watching) as (ledger, spool):
            plan = await _retrying(ledger, wish, turn)
            return None if plan is None else await self._run(request, plan, ledger, spool, watching)

    async def _at_the_door(self, request: CollectRequest, watching: Watching) -> Watching:
        """Let the instance's connection answer, where it has one and the connector asks for credentials.

        Raise the refusal of a connection that cannot be used before anything is started.
        """
        if "credentials" not in request.program.declaration.human_interaction:
            return watching
        from headwater.joining.connecting import Connecting
        from headwater.joining.door import Door

        connecting = Connecting(self._settings, self._passphrase)
        if not await connecting.may_answer(request.program.name, asked=watching.answers):
            return watching
        return replace(watching, door=Door(connecting, request.program.name))

    @asynccontextmanager
    async def _kept(self, program: Program, watching: Watching) -> AsyncIterator[tuple[Ledger, Path]]:
        """Have the instance alone, its cut-off runs settled; yield its ledger, and the folder that bytes come by."""
        from headwater.collect.recovery import recover

        async with self._alone(program.name) as lock:
            with self._spool(program) as spool:
                ledger = await self._ledger(program, spool, lock)
                try:
                    for orphan in await recover(ledger):
                        watching.recovered(orphan)
                    yield ledger, spool
                finally:
                    await ledger.close()

    @asynccontextmanager
    async def _alone(self, name: str) -> AsyncIterator[int]:
        """Hold the lock of an instance, or raise `run_active` with the run that has it (INT-333)."""
        from headwater.joining.control import live_runs
        from headwater.store.locks import Locks

        async with AsyncExitStack() as stack:
            try:
                lock = await stack.enter_async_context(Locks(self._settings.locks_dir).alone_soon(name))
            except HeadwaterError as error:
                if error.code == "run_active" and (runs := live_runs(self._settings.live_dir, name)):
                    error.data["run_id"] = runs[0]
                raise
            yield lock

    async def _run(
        self, request: CollectRequest, plan: RunPlan, ledger: Ledger, spool: Path, watching: Watching
    ) -> Outcome:
        """Run a plan to its end."""
        from headwater.collect.inbox import Inbox
        from headwater.collect.runs import Run
        from headwater.collect.session import Session
        from headwater.joining.control import reachable

        inbox = Inbox()
        async with self._browsing(request.program, plan, spool, watching.observe) as equipped:
            run = Run(
                Session(equipped),
                ledger,
                _launch(request.program, equipped, spool, self._settings.private, watching.observe),
                instance=request.program.name,
                observe=watching.observe,
                respondent=watching.answering(inbox),
                deadlines=request.deadlines,
            )
            async with reachable(self._settings.live_dir, run, inbox):
                watching.started(run)
                outcome = await run.collect()
        if watching.door is not None:
            watching.door.close(outcome)
        return outcome

    @contextmanager
    def _spool(self, program: Program) -> Iterator[Path]:
        """Make the folder by which a connector's bytes come; what cut-off runs left there goes, now and at the end."""
        from headwater.store.locks import private

        spool = self._settings.spool_dir / f"{program.connector}--{program.instance}"
        shutil.rmtree(spool, ignore_errors=True)
        try:
            yield private(spool)
        finally:
            shutil.rmtree(spool, ignore_errors=True)

    @asynccontextmanager
    async def _browsing(
        self, program: Program, plan: RunPlan, spool: Path, observe: Observer
    ) -> AsyncIterator[RunPlan]:
        """Have the browser run that a run's bindings ask for, and give the plan what START tells of it.

        A profile belongs to one connector: another one of the same name does not get its logins.
        """
        from hashlib import sha256

        from headwater.collect.bindings import checked
        from headwater.events import BrowserStarted
        from headwater.process.browser import Browser, browsing

        def started(browser: Browser) -> None:
            is_confined = browser.is_confined or "filesystem" in plan.bindings
            observe(BrowserStarted(plan.run_id, browser.is_sandboxed, is_confined))

        declaration = plan.declaration
        digest = sha256(declaration.connector_id.encode()).hexdigest()[:8]
        profile = self._settings.browsers_dir / f"{program.connector}--{program.instance}--{digest}"
        async with browsing(plan.bindings, declaration.required_bindings, profile, spool, started) as bindings:
            yield replace(plan, bindings=checked(bindings))

    async def _ledger(self, program: Program, spool: Path, lock: int) -> Ledger:
        from headwater.store.apart import LedgerApart
        from headwater.store.sqlite.ledger import InstanceName
        from headwater.store.starting import StoreProcess

        name = InstanceName(program.declaration.connector_id, program.connector, program.instance)
        places = (self._settings.database_path, name, self._settings.blobs_dir, spool)
        store, self._store = self._store or StoreProcess(), None
        return await LedgerApart.open(store, *places, lock=lock)


def _offered(program: Program, *, asked: bool) -> dict[str, dict[str, Any]]:
    """Return the bindings this host offers: its own, and those that the instance's configuration adds.

    `interactive` is one only where questions will be answered (CP-057).
    """
    from headwater.process.browser import AUTOMATION, PROFILE, find_browser
    from headwater.wire.surroundings import OPTIONAL_SKIPS

    offered = {name: dict(descriptor) for name, descriptor in program.bindings.items()}
    offered.update({name: {} for name in ("network", "filesystem", "loopback_listen", PROFILE, OPTIONAL_SKIPS)})
    if find_browser() is not None:
        offered[AUTOMATION] = {}
    return {**offered, "interactive": {}} if asked else offered


def _plan(request: CollectRequest, *, asked: bool) -> RunPlan:
    """Plan the run that was asked for, or raise where it does not fit."""
    from headwater.collect.plan import PROACTIVE, RunPlan, match_bindings, plan_mode, plan_scope

    declaration = request.program.declaration
    scope = plan_scope(declaration, request.scope, request.streams or request.program.streams)
    mode = plan_mode(declaration, scope, request.mode)
    bindings = match_bindings(declaration, _offered(request.program, asked=asked))
    plan = RunPlan(clock.identifier("run"), declaration, scope, mode, request.authority or PROACTIVE, bindings=bindings)
    return replace(plan, compatibility=request.program.compatibility)


async def _begun(ledger: Ledger, plan: RunPlan) -> RunPlan:
    """Give a plan the cursors that START carries: those of the scope, None for a first or single-use run.

    (CP-403, CP-405.) A full refresh starts without any.
    """
    if plan.namespace is None or plan.mode == "full_refresh":
        return plan
    cursors = await ledger.cursors(plan.namespace)
    known = {stream: cursor for stream, cursor in cursors.items() if stream in plan.streams}
    return replace(plan, state=known if cursors else None)


async def _retrying(ledger: Ledger, plan: RunPlan, turn: Turn) -> RunPlan | None:
    """Narrow a plan to the gaps whose turn it is; None where it is none's."""
    from headwater.collect.gaps import page_of, scope_of
    from headwater.collect.plan import plan_scope

    gaps = [gap for gap in await ledger.open_gaps(turn) if gap.stream in plan.declaration.streams]
    if not gaps:
        return None
    page = page_of(gaps)
    scope = plan_scope(plan.declaration, scope_of(page))
    run_id = clock.identifier("run")
    return replace(plan, run_id=run_id, scope=scope, mode="full_refresh", retries=tuple(page))


def _launch(program: Program, plan: RunPlan, spool: Path, hidden: Sequence[Path], observe: Observer) -> Launch:
    import sys

    import msgspec

    from headwater.events import Unconfined
    from headwater.process.launch import Launch
    from headwater.wire.surroundings import OPTIONS_VARIABLE

    command = list(program.command)
    if program.folder is not None and command[0] == "python":
        command[0] = sys.executable
    return Launch(
        command,
        program.folder,
        spool,
        plan.bindings,
        hidden,
        {**program.variables, OPTIONS_VARIABLE: msgspec.json.encode(program.options).decode()},
        program.environment,
        loose=lambda names: observe(Unconfined(plan.run_id, tuple(names))),
        certificates=program.certificates,
    )
