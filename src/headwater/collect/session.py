"""One run as a state machine without I/O.

    initializing ── start() ──▶ collecting ◀── answered() ── waiting
                                  │  └────── INTERACTION ──────▶┘
                                  ├── DONE ───────▶ done
                                  └── violation ──▶ broken

A line goes in through `receive` and an effect comes out; `end` turns what was seen into a verdict and the
fate of each staged checkpoint. Live runs, `connectors check` and the tests all drive this one class.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import msgspec
from msgspec import UNSET

from headwater import limits
from headwater.collect.admission import OUT_OF_SCOPE, Gate
from headwater.collect.checkpoints import Decision, Evidence, decide
from headwater.collect.coverage import CoverageBook
from headwater.collect.effects import Abort, Ask, Effect, Finish, Gap, Receipt, Reply, Stage, Tell
from headwater.collect.plan import RunPlan
from headwater.collect.verdict import STREAM_FAILED, Exit, Sight, Stop, Verdict, judge
from headwater.wire import compatibility
from headwater.wire.decode import NotAMessage, Unreadable, decode
from headwater.wire.keys import detail_key
from headwater.wire.messages import (
    DetailCoverage,
    DetailGap,
    Done,
    Interaction,
    InteractionResponse,
    Progress,
    Record,
    RecoveryDetail,
    SkipResult,
    Start,
    State,
    StreamEvidence,
    whole,
)
from headwater.wire.surroundings import OPTIONAL_SKIPS


class Phase(Enum):
    """Where a run is."""

    INITIALIZING = "initializing"
    COLLECTING = "collecting"
    WAITING = "waiting_for_interaction"
    DONE = "done"
    BROKEN = "broken"


@dataclass(frozen=True)
class Skip:
    """A SKIP_RESULT as it is kept: texts are bounded, `hint` is the action that the connector asked for."""

    stream: str | None
    reason: str | None
    message: str | None
    hint: str | None
    continuation: dict[str, Any] | None = None


@dataclass(frozen=True)
class Facts:
    """What a run says of itself beside its records: kept with the run and shown by `runs explain`.

    `violation_line` is the line of the connector's stdout, from 1, that broke the protocol. `extensions` counts the
    messages of its compatibility by type.
    """

    skips: tuple[Skip, ...] = ()
    evidence: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    coverage: tuple[Mapping[str, Any], ...] = ()
    error: Mapping[str, Any] | None = None
    violation_line: int | None = None
    extensions: Mapping[str, int] = field(default_factory=dict)


class Session:
    """The state of one run. Nothing in here waits, writes or reads a clock."""

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan
        self.phase = Phase.INITIALIZING
        self.done: Done | None = None
        self.cancelled = False
        self.staged: dict[str, str] = {}
        self.lines_seen = 0
        self.records_seen = 0
        self.out_of_scope = 0
        self._graph = plan.graph
        self._gates = {entry.name: Gate(plan.declaration.streams[entry.name], entry) for entry in plan.scope.streams}
        opted_in = OPTIONAL_SKIPS in plan.bindings
        self._coverage = CoverageBook(self._graph, frozenset(self._gates), credits_skips=opted_in)
        self._evidence: dict[str, dict[str, int]] = {}
        self._skips: list[Skip] = []
        self._failed_streams: set[str] = set()
        self._untargeted_failure = False
        self._question: Interaction | None = None
        self._stop: Stop | None = None
        self._violation_line: int | None = None
        self._extensions: Counter[str] = Counter()
        self._dispatch: dict[type, Callable[[Any], Effect | None]] = {
            State: self._state,
            Interaction: self._interaction,
            SkipResult: self._skip,
            DetailCoverage: self._report,
            DetailGap: self._gap,
            StreamEvidence: self._measure,
            Progress: self._progress,
            Done: self._done,
        }

    def start(self) -> Start:
        """Begin, and return the one START of the run."""
        self.phase = Phase.COLLECTING
        state = self.plan.state
        plain = Start(
            run_id=self.plan.run_id,
            collection_mode=self.plan.mode,
            scope=self.plan.scope,
            state=None if state is None else {name: msgspec.Raw(text.encode()) for name, text in state.items()},
            bindings=dict(self.plan.bindings),
        )
        gaps = ((str(gap.number), gap.stream, gap.key) for gap in self.plan.retries)
        return compatibility.start(self.plan.compatibility, plain, gaps)

    def receive(self, line: bytes) -> Effect | None:
        """Take a line of the connector's stdout, without its LF, and say what it asks of the host.

        A blank line asks for nothing, at any time.
        """
        self.lines_seen += 1
        if not line:
            return None
        if self.phase is not Phase.COLLECTING:
            return self._out_of_turn()
        try:
            message, members = decode(line)
            if type(message) is Record:
                self.records_seen += 1
                gate = self._gates.get(message.stream)
                if gate is None:
                    return self._outside(message.stream)
                return gate.admit(message, members["data"], line)
            if type(message) is Unreadable:
                return self._unreadable(message, line)
            return self._dispatch[type(message)](message)
        except NotAMessage as violation:
            return self._extension(line, violation)

    def receive_overlong(self) -> Effect:
        """Take a line that passed its bound, and so was not read."""
        self.lines_seen += 1
        return self._break("line_too_long", f"A line is longer than {limits.LINE_BYTES // limits.MIB} MiB.")

    def answered(self, response: InteractionResponse) -> None:
        """Note that the pending question was answered; the connector collects on. A broken run stays broken."""
        if self._question is not None and self._question.request_id == response.request_id:
            self._question = None
            if self.phase is Phase.WAITING:
                self.phase = Phase.COLLECTING

    def cancel(self) -> None:
        """Record that the owner, or a revocation, ended the run. From here on nothing can commit."""
        self.cancelled = True

    def stop(self, cause: str, message: str) -> None:
        """Record the host's own reason to end the run; the first one stands."""
        if self._stop is None:
            self._stop = Stop(cause, message)
        self.phase = Phase.BROKEN

    def end(self, exit_: Exit, *, truncated: bool = False) -> tuple[Verdict, Decision]:
        """Judge the run at the end of its process, and decide every staged checkpoint."""
        certifying = bool(self._failed_streams) and not self._untargeted_failure
        verdict = judge(
            Sight(
                exit=exit_,
                done=self.done,
                records_seen=self.records_seen,
                records_claimed=None if self.done is None else whole(self.done.records_emitted),
                cancelled=self.cancelled,
                stop=self._stop,
                truncated=truncated,
                certifying=certifying,
            )
        )
        evidence = Evidence(tuple(self.staged), self._coverage, frozenset(self._failed_streams))
        return verdict, decide(verdict, self._graph, evidence, cursorless=self.plan.cursorless)

    @property
    def is_over(self) -> bool:
        """Whether nothing the connector says can change the run any more."""
        return self.phase is Phase.BROKEN or self.cancelled

    @property
    def pending_question(self) -> Interaction | None:
        """The question that waits for its answer."""
        return self._question

    @property
    def facts(self) -> Facts:
        """What the run said of itself."""
        coverage = tuple(
            {
                "stream": stream,
                "parent": parent,
                "required": len(report.required),
                "hydrated": len(report.hydrated),
                "gaps": len(report.gaps),
                **({"skipped": len(report.skips)} if report.skips else {}),
                "unaccounted": self._coverage.unaccounted(stream, parent)[:20],
            }
            for (stream, parent), report in self._coverage.reports.items()
        )
        error = None if self.done is None or self.done.error is UNSET else _described(self.done.error)
        seen = dict(self._extensions)
        return Facts(tuple(self._skips), dict(self._evidence), coverage, error, self._violation_line, extensions=seen)

    # What each message does.

    def _state(self, message: State) -> Effect | None:
        if message.stream not in self._gates or message.stream not in self._graph.checkpoint_streams:
            if self.plan.compatibility == compatibility.PDPP_REFERENCE and message.stream in self._gates:
                self._extensions[compatibility.CHILD_STATE] += 1
                return None
            raise NotAMessage("state_stream", "A STATE names a stream that has no checkpoint in this run.")
        cursor = bytes(message.cursor).decode("utf-8")
        self.staged.pop(message.stream, None)
        self.staged[message.stream] = cursor
        return Stage(message.stream, cursor)

    def _interaction(self, message: Interaction) -> Effect:
        if message.timeout_seconds is not UNSET and not message.timeout_seconds > 0:
            raise NotAMessage("interaction_timeout", "An INTERACTION has a timeout that is not positive.")
        self._question = message
        self.phase = Phase.WAITING
        return Ask(message)

    def _skip(self, message: SkipResult) -> Effect | None:
        stream = None if message.stream is UNSET else message.stream
        if message.reason == STREAM_FAILED:
            if stream in self._gates:
                self._failed_streams.add(stream)
            else:
                self._untargeted_failure = True
        if len(self._skips) < limits.SKIPS_PER_RUN:
            continuation = message.continuation
            self._skips.append(
                Skip(
                    stream,
                    _text(message.reason),
                    _text(message.message),
                    _action(message.recovery_hint),
                    None if continuation is UNSET else msgspec.structs.asdict(continuation),
                )
            )
        return None

    def _report(self, message: DetailCoverage) -> None:
        self._coverage.report(message)

    def _gap(self, message: DetailGap) -> Effect:
        if message.stream not in self._gates:
            raise NotAMessage("gap_scope", "A DETAIL_GAP names a stream outside the scope of the run.")
        if len(self._coverage.gaps) >= limits.GAPS_PER_RUN:
            raise NotAMessage("too_many_gaps", f"The run reported more than {limits.GAPS_PER_RUN:,} gaps.")
        named = None if message.parent_stream is UNSET else message.parent_stream
        parent = self._coverage.boundary_of_gap(message.stream, named)
        key = None if message.record_key is UNSET else detail_key(message.record_key)
        self._coverage.gap(message.stream, parent, key)
        reason = _text(message.reason) or "unknown"
        locator, error = _json(message.detail_locator), _bounded(message.last_error)
        return Gap(message.stream, parent, key, reason, message.retryable is not False, locator, error)

    def _measure(self, message: StreamEvidence) -> None:
        stream, outcomes = message.stream, message.outcomes
        if message.reference_only is not True:
            raise NotAMessage("evidence_reference_only", "A STREAM_EVIDENCE lacks reference_only: true.")
        if stream not in self._gates or self._graph.streams[stream].state_stream is None:
            raise NotAMessage("evidence_stream", "A STREAM_EVIDENCE names no state_stream child of this run.")
        if stream in self._evidence:
            raise NotAMessage("evidence_twice", "A stream sent STREAM_EVIDENCE twice.")
        parts = {name: whole(getattr(outcomes, name)) for name in ("emitted", "unchanged", "gapped", "unaccounted")}
        counts = {name: count for name, count in parts.items() if count is not None}
        considered = whole(message.considered)
        if considered is None or len(counts) < len(parts) or sum(counts.values()) != considered:
            raise NotAMessage("evidence_counts", "The counts of a STREAM_EVIDENCE do not add up.")
        self._evidence[stream] = {"considered": considered, **counts}

    def _progress(self, message: Progress) -> Effect:
        stream = None if message.stream is UNSET else message.stream
        return Tell(message.message[: limits.TEXT_CHARACTERS], stream, _amount(message.count), _amount(message.total))

    def _done(self, message: Done) -> Effect:
        if whole(message.records_emitted) is None:
            raise NotAMessage("done_count", "A DONE has a records_emitted that is no count.")
        self.done = message
        self.phase = Phase.DONE
        return Finish(message)

    def _extension(self, line: bytes, violation: NotAMessage) -> Effect | None:
        """Take a message of the connector's compatibility; anything else breaks the protocol as it was found to."""
        said = None
        if violation.rule == "unknown_type":
            try:
                said = compatibility.read_extension(self.plan.compatibility, line)
            except NotAMessage as malformed:
                violation = malformed
        if said is None:
            return self._break(violation.rule, violation.message)
        self._extensions[said.kind] += 1
        if said.answer is not None:
            return Reply(said.answer)
        return None if said.shown is None else Tell(said.shown[: limits.TEXT_CHARACTERS], None, None, None)

    # What is not a message in its place.

    def _out_of_turn(self) -> Effect | None:
        match self.phase:
            case Phase.WAITING:
                return self._break("spoke_while_waiting", "The connector wrote while its question was open.")
            case Phase.DONE:
                return self._break("after_done", "The connector wrote after DONE.")
            case Phase.INITIALIZING:
                return self._break("before_start", "The connector wrote before START.")
        return None

    def _outside(self, stream: str) -> Effect:
        self.out_of_scope += 1
        declared = stream if stream in self.plan.declaration.streams else "?"
        return Receipt(declared, OUT_OF_SCOPE, "The record's stream is not in the scope of the run.", None, None)

    def _unreadable(self, record: Unreadable, line: bytes) -> Effect:
        self.records_seen += 1
        gate = self._gates.get(record.stream)
        if gate is None:
            return self._outside(record.stream)
        words = {
            "repeated_member": "names a member twice",
            "lone_surrogate": "holds half of a surrogate pair",
            "nested_too_deep": f"is nested deeper than {limits.NESTING_LEVELS} levels",
            "unreadable_value": "holds a value that cannot be read exactly",
        }
        # Whether a narrowed scope has this record cannot be told, so its bytes are not kept.
        return gate.refuse(record.reason, f"The record {words[record.reason]}.", None, None if gate.narrowed else line)

    def _break(self, rule: str, message: str) -> Effect:
        """End the run for what a line is. The message names the line, and never what stands in it."""
        self._violation_line = self.lines_seen
        message = f"{message} See line {self.lines_seen:,} of its output."
        self.stop(rule, message)
        return Abort(rule, message)


def _text(value: Any) -> str | None:
    return value[: limits.TEXT_CHARACTERS] if isinstance(value, str) else None


def _json(value: Any) -> str | None:
    return None if value is UNSET else msgspec.json.encode(value).decode()


def _bounded(value: Any) -> str | None:
    """Return an object as JSON text; one that is too long for a message as a JSON string of its beginning."""
    text = _json(value)
    return text if text is None or len(text) <= limits.TEXT_CHARACTERS else _json(text[: limits.TEXT_CHARACTERS])


def _amount(value: Any) -> float | None:
    """Return a number for people, None where none came or it has more digits than a float can hold."""
    try:
        return None if value is UNSET else float(value)
    except OverflowError:
        return None


def _action(hint: Any) -> str | None:
    if isinstance(hint, RecoveryDetail):
        return hint.action
    return None if hint is UNSET else hint


def _described(error: Any) -> dict[str, Any]:
    described = {"message": _text(error.message), "retryable": error.retryable, "code": _text(error.code)}
    described["hint"] = _action(error.recovery_hint)
    return {name: value for name, value in described.items() if value is not None}
