"""What collecting needs of the world, by noun. The host fills each port with one adapter."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from headwater.collect.checkpoints import Decision
from headwater.collect.effects import Write
from headwater.collect.gaps import OpenGap, Turn
from headwater.collect.plan import Authority, RunPlan
from headwater.collect.session import Facts
from headwater.collect.verdict import Exit, Verdict
from headwater.events import Event, Tally
from headwater.manifest.graph import CheckpointGraph
from headwater.wire.messages import Interaction


@dataclass(frozen=True)
class Conclusion:
    """The end of a run, as it is kept: verdict, fate of the checkpoints, facts, and the end of stderr."""

    verdict: Verdict
    decision: Decision
    facts: Facts
    stderr_tail: str = ""


@dataclass(frozen=True)
class Commit:
    """What a store made of a decision. `failed` names the checkpoint whose write failed, if one did (CP-452)."""

    committed: tuple[str, ...] = ()
    failed: str | None = None


@dataclass(frozen=True)
class Orphan:
    """A run that is marked as running though nobody runs it. The graph is that of its own manifest (CP-465)."""

    run_id: str
    authority: Authority
    graph: CheckpointGraph
    staged: tuple[str, ...]
    gapped: frozenset[str]
    connector_ended: bool
    cancelled: bool


class Ledger(Protocol):
    """The durable side of one run. Calls come one at a time, in the order of the run, and each is atomic."""

    async def begin(self, plan: RunPlan) -> None:
        """Note that the run starts. Called once, before its process exists."""
        ...

    async def write(self, effects: Sequence[Write], *, ended: bool = False) -> Mapping[str, Tally]:
        """Make a batch durable: records, receipts, gaps and staged cursors in one transaction.

        `ended` notes with it that the connector reported its end. Return what became of each stream's records.
        Raise `storage_failed` where nothing of the batch was kept.
        """
        ...

    async def note_cancelled(self) -> None:
        """Make it durable that the owner ended the run: from now on none of its cursors may commit (CP-465)."""
        ...

    async def conclude(self, conclusion: Conclusion, *, run_id: str | None = None) -> Commit:
        """Commit the eligible checkpoints together with a run's end, in one transaction. Called once a run.

        `run_id` names an orphan; without it the run is the one that began. Where one checkpoint cannot be
        written, keep those before it, end the run as failed, and name it.
        """
        ...

    async def cursors(self, namespace: str) -> Mapping[str, str]:
        """Return the committed cursors of a namespace, as JSON text by stream."""
        ...

    async def open_gaps(self, turn: Turn) -> Sequence[OpenGap]:
        """Return the gaps of the global namespace whose turn it is, at most what one retry takes."""
        ...

    async def orphans(self) -> Sequence[Orphan]:
        """Return the runs of the instance that are marked as running."""
        ...

    async def close(self) -> None:
        """Let go of the store. May be called twice."""
        ...


@dataclass(frozen=True)
class Lines:
    """Some lines of a child's stdout, blank ones too, since each has its number.

    `ended` says that no more will come, `truncated` that the last was cut off.
    """

    lines: Sequence[bytes] = ()
    ended: bool = False
    truncated: bool = False


class Guest(Protocol):
    """A connector's process. One reader, one writer."""

    async def read(self, timeout_seconds: float) -> Lines:
        """Wait for lines. An empty answer that has not `ended` means that the time passed.

        Raise `LineTooLong` where a line passes its bound. Unread output waits in the child's pipe.
        """
        ...

    async def send(self, line: bytes) -> None:
        """Write to the child's stdin; a child that is gone is not an error."""
        ...

    async def close_input(self) -> None:
        """End the child's stdin. May be called twice."""
        ...

    async def stop(self) -> Exit:
        """End the whole process group: asked first, forced after `limits.STOP_SECONDS`. May be called twice."""
        ...

    async def wait(self, timeout_seconds: float) -> Exit | None:
        """Wait for the exit; None when the time passed."""
        ...

    @property
    def stderr_tail(self) -> str:
        """The end of what the child wrote to stderr, as text."""
        ...


class Respondent(Protocol):
    """Somebody who may answer the connector's questions."""

    async def answer(self, question: Interaction) -> Mapping[str, Any] | None:
        """Return the answer's data, or None where the owner declines. Cancelled when the time is over."""
        ...


Observer = Callable[[Event], None]
"""Somebody who watches. Called often; must not wait."""


@dataclass(frozen=True)
class Outcome:
    """A finished run, for its caller. `retried` is the retry of due gaps that followed it, if one did."""

    run_id: str
    verdict: Verdict
    decision: Decision
    tallies: Mapping[str, Tally]
    facts: Facts
    stderr_tail: str = ""
    tried: int = 0
    retried: "Outcome | None" = None

    @property
    def healed(self) -> int:
        """How many gaps the run closed."""
        return sum(tally.healed for tally in self.tallies.values())
