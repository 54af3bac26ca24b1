"""Checking a connector: real runs of its real program, without a store.

It joins the process and the in-memory ledger to collecting as `host.py` does for live runs.
"""

import asyncio
import contextlib
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from headwater import clock
from headwater.catalog.folders import ConnectorFolder
from headwater.collect.certification import Finding, Trial, Trials, certify
from headwater.collect.effects import Stage, Write
from headwater.collect.plan import RunPlan, plan_scope
from headwater.collect.ports import Guest, Respondent
from headwater.collect.runs import Deadlines, Run
from headwater.collect.session import Session
from headwater.events import Tally
from headwater.process.child import Child
from headwater.process.environment import child_environment
from headwater.store.memory import MemoryLedger
from headwater.wire.messages import CollectionScope, CollectionStream
from headwater.wire.surroundings import OPTIONS_VARIABLE, SPOOL_VARIABLE

_DEADLINES = Deadlines(idle=60.0, run=600.0)
_SILENCE_SECONDS = 0.5


class _Counting(MemoryLedger):
    """A ledger that also counts the cursors each stream sent."""

    def __init__(self) -> None:
        super().__init__()
        self.states: Counter[str] = Counter()

    async def write(self, effects: Sequence[Write], *, ended: bool = False) -> Mapping[str, Tally]:
        self.states.update(effect.stream for effect in effects if isinstance(effect, Stage))
        return await super().write(effects, ended=ended)


@dataclass(frozen=True)
class Bench:
    """A connector that is ready to be tried."""

    folder: ConnectorFolder
    options: Mapping[str, Any]
    spool: Path
    answers: Callable[[], Respondent] | None

    async def launch(self) -> Guest:
        """Start its program."""
        command = list(self.folder.package.command)
        if command[0] == "python":
            command[0] = sys.executable
        ours = {OPTIONS_VARIABLE: msgspec.json.encode(self.options).decode(), SPOOL_VARIABLE: str(self.spool)}
        environment = child_environment(ours, self.folder.package.environment)
        return await Child.spawn(command, folder=self.folder.path, environment=environment)

    async def trial(self, plan: RunPlan) -> tuple[Trial, Mapping[str, str]]:
        """Run once; return the trial and the cursors that it committed."""
        ledger = _Counting()
        run = Run(
            Session(replace(plan, run_id=clock.identifier("run"))),
            ledger,
            self.launch,
            instance=self.folder.name,
            observe=lambda _event: None,
            respondent=self.answers() if self.answers is not None else None,
            deadlines=_DEADLINES,
        )
        outcome = await run.collect()
        return Trial(outcome, ledger.receipts, dict(ledger.states)), await ledger.cursors("global")


async def check(
    folder: ConnectorFolder, options: Mapping[str, Any], answers: Callable[[], Respondent] | None = None
) -> list[Finding]:
    """Run a connector whole, resumed and narrowed, and return what that shows, a finding a clause."""
    declaration = folder.declaration
    with tempfile.TemporaryDirectory(prefix="headwater-check-") as spool:
        bench = Bench(folder, options, Path(spool), answers)
        bindings: dict[str, dict[str, Any]] = {name: {} for name in declaration.bindings}
        plan = RunPlan("", declaration, plan_scope(declaration), bindings=bindings)
        spoke_early = await _speaks_before_start(bench)
        whole, cursors = await bench.trial(plan)
        if whole.outcome.verdict.status != "succeeded":
            return certify(declaration, Trials(whole, spoke_early=spoke_early))
        resumed = (await bench.trial(replace(plan, state=cursors)))[0] if cursors else None
        strange, _ = await bench.trial(replace(plan, bindings={**bindings, "example.com/strange": {"a": 1}}))
        one, _ = await bench.trial(replace(plan, scope=CollectionScope(plan.scope.streams[:1])))
        few, _ = await bench.trial(replace(plan, scope=_few_fields(plan)))
        return certify(declaration, Trials(whole, resumed, one, few, strange, spoke_early))


def _few_fields(plan: RunPlan) -> CollectionScope:
    streams = plan.declaration.streams
    return plan_scope(
        plan.declaration,
        CollectionScope(
            [CollectionStream(name, fields=sorted(stream.essential_fields)) for name, stream in streams.items()]
        ),
    )


async def _speaks_before_start(bench: Bench) -> bool:
    guest = await bench.launch()
    try:
        return bool((await guest.read(_SILENCE_SECONDS)).lines)
    finally:
        with contextlib.suppress(asyncio.CancelledError):
            await guest.stop()
