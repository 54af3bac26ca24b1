"""The bench: where a connector that is checked is run, again and again, each time into a ledger in memory."""

import asyncio
import contextlib
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from headwater import clock, limits
from headwater.catalog.folders import ConnectorFolder
from headwater.checking.watching import Listened, Place, Watched, WatchedLedger
from headwater.collect.effects import Receipt
from headwater.collect.plan import RunPlan, plan_scope
from headwater.collect.ports import Guest, Outcome, Respondent
from headwater.collect.runs import Deadlines, Run
from headwater.events import Event
from headwater.manifest.declaration import Declaration
from headwater.process.browser import browsing
from headwater.process.child import Child
from headwater.process.launch import Launch
from headwater.store.blobs import BlobFolder
from headwater.wire.surroundings import OPTIONS_VARIABLE

_DEADLINES = Deadlines(idle=limits.CHECK_IDLE_SECONDS, run=limits.CHECK_RUN_SECONDS)

Trouble = Callable[[Child], Guest]


@dataclass(frozen=True)
class Trial:
    """One run of a connector that is checked.

    `present` are the records that its ledger held at the end, `sent` those that this run sent, `times` their consent
    times in microseconds.
    `troubled` says that the run was disturbed so that its end shows nothing of the connector.
    """

    pack: str
    outcome: Outcome
    session: Watched
    present: frozenset[Place]
    sent: frozenset[Place]
    times: Mapping[Place, int]
    receipts: Sequence[Receipt]
    states: Counter[str]
    cursors: Mapping[str, str]
    questions: int
    repeats_on_stderr: bool
    troubled: bool = False

    @property
    def cause(self) -> str:
        """The cause of the run's end."""
        return self.outcome.verdict.cause

    @property
    def succeeded(self) -> bool:
        """Whether the run ended well."""
        return self.outcome.verdict.status == "succeeded"

    @property
    def ended_in_order(self) -> bool:
        """Whether DONE and exit said how the run ended, whatever it was."""
        said = ("succeeded", "connector_failed", "connector_cancelled", "stream_collection_failed")
        return self.cause in said

    @property
    def message(self) -> str:
        """How the run ended, in a sentence; with what DONE said of it or, where there is none, the end of stderr."""
        error, last = self.outcome.facts.error or {}, self.outcome.stderr_tail.strip().rpartition("\n")[2]
        words = last if self.cause in ("no_done", "truncated") else error.get("message", "")
        said = f" Its last words: {words[:_WORDS_CHARACTERS]}" if words else ""
        return self.outcome.verdict.message + said

    def seen(self, stream: str) -> int:
        """Return how many records of a stream came."""
        return self.outcome.tallies[stream].seen if stream in self.outcome.tallies else 0

    @property
    def total(self) -> int:
        """All the records that came."""
        return sum(tally.seen for tally in self.outcome.tallies.values())


@dataclass
class Bench:
    """A connector that is ready to be tried. It keeps every trial.

    `place` is a folder for the check, where each run has a spool of its own, as live runs have. `hidden` is what no
    connector may see.
    """

    folder: ConnectorFolder
    options: Mapping[str, Any]
    place: Path
    answers: Callable[[], Respondent] | None
    seed: int
    hidden: Sequence[Path]
    trials: list[Trial] = field(default_factory=list)

    @property
    def declaration(self) -> Declaration:
        """What the connector declares."""
        return self.folder.declaration

    @property
    def plan(self) -> RunPlan:
        """A whole run: every stream, no cursor, every binding that the connector declares."""
        bindings: dict[str, dict[str, Any]] = {name: {} for name in self.declaration.bindings}
        scope, compatibility = plan_scope(self.declaration), self.folder.package.compatibility
        return RunPlan("", self.declaration, scope, bindings=bindings, compatibility=compatibility)

    def lots(self, pack: str) -> random.Random:
        """Return the lots that a pack draws: the same ones for the same seed."""
        return random.Random(f"{self.seed}/{pack}")  # noqa: S311 - which line to kill at is no secret

    @contextlib.contextmanager
    def spool(self) -> Iterator[Path]:
        """Make the spool of one run; what the run left in it goes with it, or at last with `place`.

        A program that is killed inside a confinement may write for a moment longer than its outside is there.
        """
        with tempfile.TemporaryDirectory(dir=self.place, prefix="run-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)

    def launch(self, bindings: Mapping[str, Mapping[str, Any]], spool: Path) -> Launch:
        """Return the connector's program, held to some bindings."""
        command, package = list(self.folder.command), self.folder.package
        if command[0] == "python":
            command[0] = sys.executable
        told = {OPTIONS_VARIABLE: msgspec.json.encode(self.options).decode()}
        variables = {**package.filled_variables(self.options), **told}
        return Launch(command, self.folder.path, spool, bindings, self.hidden, variables, package.environment)

    async def trial(
        self,
        pack: str,
        plan: RunPlan,
        *,
        trouble: Trouble | None = None,
        ledger: WatchedLedger | None = None,
        respondent: Respondent | None = None,
        network: bool = True,
        cancel: bool = False,
        troubled: bool = False,
    ) -> Trial:
        """Run once and return what was seen.

        `trouble` wraps the child in a fault, `ledger` holds what earlier runs brought, `respondent` answers in the
        place of the prepared answers, and `cancel` ends the run at its first line, as its owner could. `troubled`
        says that the end of the run shows nothing of the connector.
        """
        ledger = ledger or WatchedLedger()
        received = len(ledger.receipts)
        listened = Listened(respondent or (self.answers() if self.answers is not None else None))
        children: list[Child] = []

        async def launch() -> Guest:
            given = {name: bindings[name] for name in bindings if network or name != "network"}
            children.append(await self.launch(given, spool)())
            return trouble(children[0]) if trouble is not None else children[0]

        async with AsyncExitStack() as stack:
            spool = stack.enter_context(self.spool())
            ledger.blobs = BlobFolder(self.place / "blobs", spool)
            wanted = browsing(plan.bindings, self.declaration.required_bindings, self.place / "browser", spool)
            bindings = await stack.enter_async_context(wanted)
            session = Watched(replace(plan, run_id=clock.identifier("run"), bindings=bindings), listened)
            run = Run(
                session,
                ledger,
                launch,
                instance=self.folder.name,
                observe=_unobserved,
                respondent=listened,
                deadlines=_DEADLINES,
            )
            session.on_line = run.cancel if cancel else None
            outcome = await run.collect()
        trial = Trial(
            pack,
            outcome,
            session,
            ledger.present,
            frozenset(ledger.sent),
            dict(ledger.times),
            ledger.receipts[received:],
            ledger.states,
            await ledger.cursors(plan.namespace or ""),
            listened.questions,
            listened.is_repeated_in(children[0].stderr_tail.encode()),
            troubled=troubled,
        )
        self.trials.append(trial)
        return trial

    async def speaks_early(self) -> bool:
        """Say whether the connector writes anything before START."""
        with self.spool() as spool:
            child = await self.launch(self.plan.bindings, spool)()
            try:
                return bool((await child.read(_SILENCE_SECONDS)).lines)
            finally:
                with contextlib.suppress(asyncio.CancelledError):
                    await child.stop()


_SILENCE_SECONDS = 0.5
_WORDS_CHARACTERS = 200


def _unobserved(_event: Event) -> None:
    pass
