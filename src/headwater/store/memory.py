"""A ledger in memory: for connectors that are checked, and for tests that need no disk. Nothing is durable."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from headwater.collect.effects import Gap, Keep, Receipt, Stage, Write
from headwater.collect.gaps import OpenGap, Turn
from headwater.collect.plan import RunPlan
from headwater.collect.ports import Commit, Conclusion, Orphan
from headwater.events import Tally


class MemoryLedger:
    """Holds what one instance's runs write. It fills the `Ledger` port and keeps its laws, but for durability."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str], str | None] = {}
        self.receipts: list[Receipt] = []
        self.gaps: list[Gap] = []
        self.committed: dict[str, dict[str, str]] = defaultdict(dict)
        self.conclusions: list[Conclusion] = []
        self._staged: dict[str, str] = {}
        self._namespace = ""

    async def begin(self, plan: RunPlan) -> None:
        """See `Ledger.begin`."""
        self._namespace, self._staged = plan.namespace or "", {}

    async def write(self, effects: Sequence[Write], *, ended: bool = False) -> Mapping[str, Tally]:
        """See `Ledger.write`."""
        tallies: defaultdict[str, Tally] = defaultdict(Tally)
        for effect in effects:
            match effect:
                case Keep():
                    tallies[effect.stream] += self._keep(effect)
                case Receipt():
                    self.receipts.append(effect)
                    tallies[effect.stream] += Tally(rejected=1)
                case Gap():
                    self.gaps.append(effect)
                    tallies[effect.stream] += Tally(gaps=1)
                case Stage(stream, cursor):
                    self._staged[stream] = cursor
        return tallies

    def _keep(self, keep: Keep) -> Tally:
        place = keep.stream, keep.key
        if self.records.get(place) == keep.data:
            return Tally(unchanged=1)
        self.records[place] = keep.data
        return Tally(deleted=1) if keep.data is None else Tally(accepted=1)

    async def note_cancelled(self) -> None:
        """See `Ledger.note_cancelled`."""

    async def conclude(self, conclusion: Conclusion, *, run_id: str | None = None) -> Commit:
        """See `Ledger.conclude`."""
        self.conclusions.append(conclusion)
        for stream in conclusion.decision.committed:
            self.committed[self._namespace][stream] = self._staged[stream]
        self._staged = {}
        return Commit(conclusion.decision.committed)

    async def cursors(self, namespace: str) -> Mapping[str, str]:
        """See `Ledger.cursors`."""
        return dict(self.committed[namespace])

    async def open_gaps(self, turn: Turn) -> Sequence[OpenGap]:
        """See `Ledger.open_gaps`: nobody tries a gap in memory again."""
        return ()

    async def orphans(self) -> Sequence[Orphan]:
        """See `Ledger.orphans`: nothing in memory outlives its process."""
        return ()

    async def close(self) -> None:
        """See `Ledger.close`."""
