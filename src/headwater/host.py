"""The host: the one place that chooses adapters and joins them to the verbs. Every face calls this.

Modules that only collecting needs are imported when it starts, so that looking at what is stored stays quick.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater import clock, limits
from headwater.errors import OperationalError, refuse
from headwater.settings import Settings

if TYPE_CHECKING:
    from headwater.catalog.folders import Catalog, ConnectorFolder
    from headwater.catalog.installing import Shelf
    from headwater.catalog.instances import Instance, Instances
    from headwater.checking import Report
    from headwater.collect.gaps import Turn
    from headwater.collect.inbox import Inbox
    from headwater.collect.plan import Authority, RunPlan
    from headwater.collect.ports import Ledger, Observer, Outcome, Respondent
    from headwater.collect.recovery import Recovered
    from headwater.collect.runs import Deadlines, Run
    from headwater.collect.schedules import PastRun
    from headwater.control import Question
    from headwater.manifest.declaration import Declaration
    from headwater.process.launch import Launch
    from headwater.readiness import Readiness
    from headwater.store.sqlite.reading import Reader
    from headwater.store.sqlite.undo import Undone
    from headwater.wire.messages import CollectionMode, CollectionScope

ADHOC = "adhoc"


@dataclass(frozen=True)
class Program:
    """A connector that is ready to be started: what it declares and the command that runs it."""

    declaration: Declaration
    command: Sequence[str]
    connector: str
    instance: str
    folder: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    environment: Sequence[str] = ()
    streams: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    compatibility: str = ""

    @property
    def name(self) -> str:
        """The instance, as `<connector>/<instance>`."""
        return f"{self.connector}/{self.instance}"

    @property
    def all(self) -> Sequence[str]:
        """The streams that are collected where nothing else is asked for."""
        return self.streams or tuple(self.declaration.streams)


@dataclass(frozen=True)
class CollectRequest:
    """What to collect. Without `scope` and `streams` it is every stream the connector declares."""

    program: Program
    scope: CollectionScope | None = None
    streams: Sequence[str] = ()
    mode: CollectionMode | None = None
    authority: Authority | None = None
    deadlines: Deadlines | None = None


@dataclass(frozen=True)
class Watching:
    """Who follows a run. `started` gets it, to cancel it; `recovered` gets each run that was cut off before.

    Questions go to the `respondent`, and with `inbox` also to whoever looks there.
    """

    observe: Observer
    respondent: Respondent | None = None
    started: Callable[[Run], None] = lambda _run: None
    recovered: Callable[[Recovered], None] = lambda _orphan: None
    inbox: bool = False

    @property
    def answers(self) -> bool:
        """Whether questions will be answered (CP-057)."""
        return self.inbox or self.respondent is not None

    def answering(self, inbox: Inbox) -> Respondent | None:
        """Return who answers a run's questions."""
        from headwater.collect.inbox import Several

        if not self.inbox:
            return self.respondent
        return inbox if self.respondent is None else Several([self.respondent, inbox])


class Host:
    """One Headwater on one machine."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def readiness(self) -> Readiness:
        """Look at what this machine has, and change nothing."""
        from headwater.readiness import readiness

        return readiness(self.settings)

    # What can be run.

    @property
    def catalog(self) -> Catalog:
        """The connectors of this machine."""
        from headwater.catalog.folders import Catalog

        return Catalog(self.settings.connectors_dir)

    @contextmanager
    def shelf(self, name: str | None = None) -> Iterator[Shelf]:
        """Open the added connectors for a change, one at a time; `name` is refused while a run of it is active."""
        from headwater.catalog.installing import Shelf
        from headwater.store.locks import exclusive

        _made(self.settings.state_dir)
        shelf = Shelf(self.settings.connectors_dir)
        with ExitStack() as locks:
            locks.enter_context(exclusive(self.settings.locks_dir / "connectors.lock", "Another change is under way."))
            if name is not None:
                shelf.find(name)
                for lock in sorted(self.settings.locks_dir.glob(f"{name}--*.lock")):
                    locks.enter_context(exclusive(lock, "A run of this connector is active."))
            yield shelf

    @property
    def instances(self) -> Instances:
        """The instances that were set up."""
        from headwater.catalog.instances import Instances

        return Instances(self.settings.collect_path)

    def set_up(self, name: str, settings: Sequence[str], folder: Path | None = None) -> Instance:
        """Make an instance from `option=value` texts, over what is remembered of it, and remember it.

        Raise `invalid_options` with every fault; nothing is remembered then.
        """
        from headwater.catalog.instances import Instance, valid_name

        known = self.instances.all().get(valid_name(name), Instance(name))
        instance = replace(known, folder=folder.resolve()) if folder is not None else known
        options = self._folder_of(instance).checked_options(instance.options, settings)
        instance = replace(instance, options=options)
        if instance != known or name not in self.instances.all():
            self.instances.add(instance)
        return instance

    def program(self, instance: Instance) -> Program:
        """Return the program of an instance. Raise `connector_changed` where an added connector is not as it was."""
        folder = self._folder_of(instance)
        folder.verify()
        connector, _, name = instance.name.partition("/")
        package = folder.package
        options, environment = dict(instance.options), package.environment
        told = (options, environment, instance.streams, package.filled_variables(options), package.compatibility)
        return Program(folder.declaration, folder.command, connector, name, folder.path, *told)

    def program_of(self, manifest: bytes, command: Sequence[str]) -> Program:
        """Return an ad hoc program: any command that speaks the profile, under a manifest."""
        from headwater.manifest.reading import read

        declaration = read(manifest)
        return Program(declaration, command, declaration.short_name, ADHOC)

    def _folder_of(self, instance: Instance) -> ConnectorFolder:
        from headwater.catalog.folders import folder_at

        return folder_at(instance.folder) if instance.folder is not None else self.catalog.find(instance.connector)

    async def check(
        self,
        path: Path,
        settings: Sequence[str],
        answers: Callable[[], Respondent] | None = None,
        *,
        packs: Sequence[str] = (),
        seed: int | None = None,
    ) -> Report:
        """Try a connector folder without storing anything; return what that shows, a finding a clause.

        Options come from `fixtures/options.json` in the folder, then from `option=value` texts. `answers` makes
        the respondent of each run. `packs` are all of them by default; `seed` is drawn where none is given.
        """
        from headwater.catalog.folders import folder_at
        from headwater.checking import check

        folder = folder_at(path)
        options = folder.checked_options(folder.fixture("options"), settings)
        drawn, hidden = clock.seed() if seed is None else seed, self.settings.private
        return await check(folder, options, answers, packs=packs, seed=drawn, hidden=hidden)

    # Collecting.

    async def collect(
        self,
        request: CollectRequest,
        *,
        observe: Observer,
        respondent: Respondent | None = None,
        started: Callable[[Run], None] = lambda _run: None,
        recovered: Callable[[Recovered], None] = lambda _orphan: None,
        inbox: bool = False,
    ) -> Outcome:
        """Run once and return how it ended. See `Watching` for who follows it.

        Gaps whose turn it is are tried again after a run that succeeded, unless that could ask the owner anew.

        Raise before anything is started where the manifest, the scope, the options or a binding do not fit, and
        `run_active` where the instance is being collected already.
        """
        from headwater.collect.gaps import Turn

        watching = Watching(observe, respondent, started, recovered, inbox)
        wish = _plan(request, asked=watching.answers)
        async with self._kept(request.program, watching) as (ledger, spool):
            outcome = await self._run(request, await _begun(ledger, wish), ledger, spool, watching)
            silent = not request.program.declaration.human_interaction and request.authority is None
            if outcome.verdict.status != "succeeded" or not silent:
                return outcome
            retry = await _retrying(ledger, wish, Turn())
            if retry is None:
                return outcome
            return replace(outcome, retried=await self._run(request, retry, ledger, spool, watching))

    async def retry_gaps(self, request: CollectRequest, turn: Turn, watching: Watching) -> Outcome | None:
        """Try the gaps whose turn it is again, in one run of their own; return None where it is none's."""
        wish = _plan(request, asked=watching.answers)
        async with self._kept(request.program, watching) as (ledger, spool):
            plan = await _retrying(ledger, wish, turn)
            return None if plan is None else await self._run(request, plan, ledger, spool, watching)

    @asynccontextmanager
    async def _kept(self, program: Program, watching: Watching) -> AsyncIterator[tuple[Ledger, Path]]:
        """Have the instance alone, its cut-off runs settled; yield its ledger, and the folder that bytes come by."""
        from headwater.collect.recovery import recover

        async with self._alone_soon(program.name) as lock:
            with self._spool(program) as spool:
                ledger = await self._ledger(program, spool, lock)
                try:
                    for orphan in await recover(ledger):
                        watching.recovered(orphan)
                    yield ledger, spool
                finally:
                    await ledger.close()

    async def _run(
        self, request: CollectRequest, plan: RunPlan, ledger: Ledger, spool: Path, watching: Watching
    ) -> Outcome:
        """Run a plan to its end."""
        from headwater.collect.inbox import Inbox
        from headwater.collect.runs import Run
        from headwater.collect.session import Session
        from headwater.control import reachable

        inbox = Inbox()
        async with self._browsing(request.program, plan, spool) as equipped:
            run = Run(
                Session(equipped),
                ledger,
                _launch(request.program, equipped, spool, self.settings.private, watching.observe),
                instance=request.program.name,
                observe=watching.observe,
                respondent=watching.answering(inbox),
                deadlines=request.deadlines,
            )
            async with reachable(self.settings.live_dir, run, inbox):
                watching.started(run)
                return await run.collect()

    def questions(self) -> list[Question]:
        """Return the questions that live runs wait with."""
        from headwater.control import questions

        return questions(self.settings.live_dir)

    def answer(self, question_id: str, data: Mapping[str, Any] | None) -> bool:
        """Answer an open question, or decline it with None; False where it is not open any more (CP-708)."""
        from headwater.control import answer

        return answer(self.settings.live_dir, question_id, data)

    def cancel(self, run_id: str) -> bool:
        """End a live run as cancelled; False where it is not live."""
        from headwater.control import cancel

        return cancel(self.settings.live_dir, run_id)

    def undo(self, run_id: str, *, rehearse: bool = False) -> Undone:
        """Bring back the records and cursors that a run changed, or raise where a later run built on them.

        With `rehearse`, say what that would bring back and change nothing.
        """
        from headwater.store.blobs import BlobFolder
        from headwater.store.sqlite.database import open_database
        from headwater.store.sqlite.ledger import InstanceName
        from headwater.store.sqlite.undo import undo

        with self.reading() as reader:
            run = reader.run(run_id)
        instance = InstanceName(run["connector_id"], *run["instance"].split("/"))
        with self._alone(instance.chosen):
            connection = open_database(self.settings.database_path)
            try:
                blobs = BlobFolder(self.settings.blobs_dir, self.settings.spool_dir)
                return undo(connection, blobs, run["run_id"], rehearse=rehearse)
            finally:
                connection.close()

    def _lock_of(self, name: str) -> Path:
        return self.settings.locks_dir / f"{name.replace('/', '--')}.lock"

    @contextmanager
    def _alone(self, name: str) -> Iterator[int]:
        """Hold the lock of the instance with a name: its cursors have one writer. Yield the lock's descriptor."""
        from headwater.store.locks import exclusive

        _made(self.settings.state_dir)
        with exclusive(self._lock_of(name)) as lock:
            yield lock

    @asynccontextmanager
    async def _alone_soon(self, name: str) -> AsyncIterator[int]:
        """As `_alone`; the store of a host that was killed gets the time to end."""
        import asyncio

        from headwater.store.locks import is_held_alive

        until = clock.monotonic() + limits.LOCK_SECONDS
        with ExitStack() as stack:
            while True:
                try:
                    lock = stack.enter_context(self._alone(name))
                    break
                except OperationalError as error:
                    held = error.code == "run_active" and not is_held_alive(self._lock_of(name))
                    if not held or clock.monotonic() >= until:
                        raise
                await asyncio.sleep(limits.LOCK_LOOK_SECONDS)
            yield lock

    @contextmanager
    def _spool(self, program: Program) -> Iterator[Path]:
        """Make the folder by which a connector's bytes come; what cut-off runs left there goes, now and at the end."""
        spool = self.settings.spool_dir / f"{program.connector}--{program.instance}"
        shutil.rmtree(spool, ignore_errors=True)
        try:
            yield _made(spool)
        finally:
            shutil.rmtree(spool, ignore_errors=True)

    @asynccontextmanager
    async def _browsing(self, program: Program, plan: RunPlan, spool: Path) -> AsyncIterator[RunPlan]:
        """Have the browser run that a run's bindings ask for, and give the plan what START tells of it.

        A profile belongs to one connector: another one of the same name does not get its logins.
        """
        from hashlib import sha256

        from headwater.process.browser import browsing

        declaration = plan.declaration
        digest = sha256(declaration.connector_id.encode()).hexdigest()[:8]
        profile = self.settings.browsers_dir / f"{program.connector}--{program.instance}--{digest}"
        async with browsing(plan.bindings, declaration.required_bindings, profile, spool) as bindings:
            yield replace(plan, bindings=bindings)

    async def _ledger(self, program: Program, spool: Path, lock: int) -> Ledger:
        from headwater.store.apart import LedgerApart
        from headwater.store.sqlite.ledger import InstanceName

        name = InstanceName(program.declaration.connector_id, program.connector, program.instance)
        return await LedgerApart.open(self.settings.database_path, name, self.settings.blobs_dir, spool, lock)

    @contextmanager
    def scheduling(self) -> Iterator[None]:
        """Be the one scheduler of this state directory, or raise `run_active`; the database is there then."""
        from headwater.store.locks import exclusive
        from headwater.store.sqlite.database import open_database

        _made(self.settings.state_dir)
        with exclusive(self.settings.locks_dir / "scheduler.lock", "Another scheduler is active here."):
            open_database(self.settings.database_path).close()
            yield

    # Looking.

    def past_runs(self, programs: Sequence[Program]) -> list[list[PastRun]]:
        """Return the latest whole runs of each program's instance, newest first."""
        if not self.settings.database_path.exists():
            return [[] for _ in programs]
        with self.reading() as reader:
            return [reader.past_runs(one.declaration.connector_id, one.name, one.all) for one in programs]

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Open the store for looking at it."""
        from headwater.store.sqlite.database import reading
        from headwater.store.sqlite.reading import Reader

        with reading(self.settings.database_path) as connection:
            yield Reader(connection)


def _made(folder: Path) -> Path:
    """Make a folder that only its owner may enter, or raise `metadata_unavailable`."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        message = "The state directory cannot be written."
        raise refuse("metadata_unavailable", message, safe="Nothing was started.") from error
    return folder


def _offered(*, asked: bool) -> dict[str, dict[str, Any]]:
    """Return the bindings this host offers: `interactive` only where questions will be answered (CP-057)."""
    from headwater.process.browser import AUTOMATION, PROFILE, find_browser
    from headwater.wire.surroundings import OPTIONAL_SKIPS

    offered: dict[str, dict[str, Any]] = {"network": {}, "filesystem": {}, "loopback_listen": {}, PROFILE: {}}
    offered[OPTIONAL_SKIPS] = {}
    if find_browser() is not None:
        offered[AUTOMATION] = {}
    return {**offered, "interactive": {}} if asked else offered


def _plan(request: CollectRequest, *, asked: bool) -> RunPlan:
    """Plan the run that was asked for, or raise where it does not fit."""
    from headwater.collect.plan import PROACTIVE, RunPlan, match_bindings, plan_mode, plan_scope

    declaration = request.program.declaration
    scope = plan_scope(declaration, request.scope, request.streams or request.program.streams)
    mode = plan_mode(declaration, scope, request.mode)
    bindings = match_bindings(declaration, _offered(asked=asked))
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
    )
