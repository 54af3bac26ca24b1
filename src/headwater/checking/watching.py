"""Watching a run: the Session and the ledger of live runs, with an eye on every line."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from headwater import limits
from headwater.collect.checkpoints import Decision
from headwater.collect.effects import Abort, Effect, Keep, Receipt, Stage, Write
from headwater.collect.plan import RunPlan
from headwater.collect.ports import Respondent
from headwater.collect.session import Session
from headwater.collect.verdict import Exit, Verdict
from headwater.events import Tally
from headwater.store.blobs import BlobFolder
from headwater.store.memory import MemoryLedger
from headwater.wire.messages import Interaction
from headwater.wire.questions import secret_texts

Place = tuple[str, str]
"""A record: its stream and its canonical key."""


@dataclass(frozen=True)
class Sighting:
    """Something on a line of the connector's stdout, in a message of type `kind`."""

    line: int
    kind: str
    text: str


class Watched(Session):
    """A session that notes where things came: the line that broke a rule, the records that were refused."""

    def __init__(self, plan: RunPlan, listened: "Listened") -> None:
        super().__init__(plan)
        self.lines = 0
        self.kinds: Counter[str] = Counter()
        self.broken: Sighting | None = None
        self.refused: dict[str, Sighting] = {}
        self.state_lines: list[int] = []
        self.leaks: dict[str, Sighting] = {}
        self.exit: Exit | None = None
        self._listened = listened
        self.on_line: Callable[[], None] | None = None

    def receive(self, line: bytes) -> Effect | None:
        """Take a line, and note what it was. A connector that says too much for a check is stopped."""
        self.lines += 1
        kind = kind_of(line)
        self.kinds[kind] += 1
        if self._listened.is_repeated_in(line):
            self.leaks.setdefault(kind, Sighting(self.lines, kind, f"The answer stands in a {kind or 'line'}."))
        effect = super().receive(line)
        if isinstance(effect, Abort) and self.broken is None:
            self.broken = Sighting(self.lines, kind, effect.message)
        elif isinstance(effect, Receipt):
            self.refused.setdefault(effect.reason, Sighting(self.lines, kind, effect.message))
        elif isinstance(effect, Stage):
            self.state_lines.append(self.lines)
        if self.lines >= limits.CHECK_LINES:
            lines = f"{limits.CHECK_LINES:,} lines"
            self.stop("too_long", f"It wrote more than {lines}; check it against a smaller source.")
        elif self.kinds["INTERACTION"] > limits.CHECK_QUESTIONS:
            self.stop("asks_for_ever", f"It asked more than {limits.CHECK_QUESTIONS} questions.")
        if self.on_line is not None:
            self.on_line()
        return effect

    def end(self, exit_: Exit, *, truncated: bool = False) -> tuple[Verdict, Decision]:
        """Judge the run, and note the exit."""
        self.exit = exit_
        return super().end(exit_, truncated=truncated)


class WatchedLedger(MemoryLedger):
    """A ledger that also knows the consent time of each record; and of the latest run, what it sent and saved.

    `blobs` is where that run's bytes come to; a record whose bytes did not come is refused, as a live ledger does.
    """

    def __init__(self) -> None:
        super().__init__()
        self.blobs: BlobFolder | None = None
        self.times: dict[Place, int] = {}
        self.sent: set[Place] = set()
        self.states: Counter[str] = Counter()

    async def begin(self, plan: RunPlan) -> None:
        """See `Ledger.begin`."""
        self.sent, self.states = set(), Counter()
        await super().begin(plan)

    async def write(self, effects: Sequence[Write], *, ended: bool = False) -> Mapping[str, Tally]:
        """See `Ledger.write`."""
        kept = [self._without_bytes(effect) or effect for effect in effects]
        for effect in kept:
            if isinstance(effect, Stage):
                self.states[effect.stream] += 1
            elif isinstance(effect, Keep):
                self.sent.add((effect.stream, effect.key))
                if effect.time is not None:
                    self.times[effect.stream, effect.key] = effect.time
        return await super().write(kept, ended=ended)

    def _without_bytes(self, effect: Write) -> Receipt | None:
        if not isinstance(effect, Keep) or effect.blob is None or self.blobs is None:
            return None
        if self.blobs.adopt(effect.blob) is not None:
            return None
        return Receipt(effect.stream, "blob_missing", "The bytes did not come, or are others.", effect.key, None)

    @property
    def present(self) -> frozenset[Place]:
        """The records that are there, and not deleted."""
        return frozenset(place for place, data in self.records.items() if data is not None)


# A shorter text would be found by chance.
_SECRET_CHARACTERS = 4


class Listened:
    """A respondent whose questions are counted and whose answers are remembered, to be looked for."""

    def __init__(self, respondent: Respondent | None = None) -> None:
        self._respondent = respondent
        self._secrets: re.Pattern[bytes] | None = None
        self._texts: set[str] = set()
        self.questions = 0

    async def answer(self, question: Interaction) -> Mapping[str, Any] | None:
        """See `Respondent.answer`."""
        self.questions += 1
        data = await self._respondent.answer(question) if self._respondent is not None else None
        found = secret_texts(question, data) if data is not None else set()
        if texts := {text for text in found if len(text) >= _SECRET_CHARACTERS}:
            self._texts |= texts
            either = "|".join(re.escape(text) for text in sorted(self._texts))
            self._secrets = re.compile(rf"(?<![0-9A-Za-z])(?:{either})(?![0-9A-Za-z])".encode())
        return data

    def is_repeated_in(self, text: bytes) -> bool:
        """Say whether a secret of an answer stands in a text, as a word of its own."""
        return self._secrets is not None and self._secrets.search(text) is not None


def kind_of(line: bytes) -> str:
    """Return the type that a line names, empty where it names none."""
    try:
        return _kind(line).type
    except (msgspec.DecodeError, RecursionError):
        return ""


class _Typed(msgspec.Struct):
    type: str


_kind = msgspec.json.Decoder(_Typed).decode
