"""The session under every message in every order: what must hold of any run, kept or broken.

A failure prints the steps that led to it and the seed to play them again.
"""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headwater.collect.effects import Abort, Stage
from headwater.collect.plan import Authority, RunPlan, plan_scope
from headwater.collect.session import Phase, Session
from headwater.collect.verdict import STREAM_FAILED, Exit
from headwater.manifest.declaration import Declaration, Stream
from headwater.wire.messages import InteractionResponse

pytestmark = pytest.mark.clause("CP-213", "CP-217", "CP-404", "CP-627")

DECLARATION = Declaration(
    "c",
    "1",
    "c",
    {
        stream.name: stream
        for stream in (
            Stream("inbox", primary_key=("id",)),
            Stream("archive", primary_key=("id",)),
            Stream("people"),
            Stream("bodies", parent_streams=("inbox", "archive")),
            Stream("labels", state_stream="inbox"),
        )
    },
)
CHECKPOINTS = ("inbox", "archive", "people")
COUNTS = ("emitted", "unchanged", "gapped", "unaccounted")

streams = st.sampled_from([*DECLARATION.streams, *CHECKPOINTS, "ghost"])
checkpoints = st.sampled_from(CHECKPOINTS)
parents = st.sampled_from(["inbox", "archive"])
keys = st.lists(st.sampled_from(["1", "2"]), unique=True)
# Lines that end a run wherever they come; each is tried in few of its turns, or few runs would get far.
BROKEN = [
    b" ", b"{", b"[]", b'{"type":"NOVEL"}', b'{"type":"START"}', b'{"type":"STATE"}',
    b'{"type":"STATE","stream":"labels","cursor":{}}', b'{"type":"PROGRESS"}',
    b'{"type":"DONE","status":"succeeded","records_emitted":-1}',
    b'{"type":"DETAIL_GAP","stream":"ghost"}', b'{"type":"SKIP_RESULT","recovery_hint":{}}',
    b'{"type":"DETAIL_COVERAGE","reference_only":true,"stream":"labels","state_stream":"inbox",'
    b'"required_keys":[],"hydrated_keys":[]}',
    b'{"type":"STREAM_EVIDENCE","reference_only":true,"stream":"people","considered":0}',
]  # fmt: skip
# Lines that are good messages in their place, for the places where none is.
DECENT = [
    b'{"type":"STATE","stream":"inbox","cursor":{"at":"late"}}', b'{"type":"SKIP_RESULT"}',
    b'{"type":"RECORD","stream":"inbox","key":"1","data":{"id":"1"},"emitted_at":"2026-04-01T10:00:00Z"}',
    b'{"type":"DONE","status":"succeeded","records_emitted":0}', b'{"type":"PROGRESS","message":"late"}',
    b'{"type":"INTERACTION","request_id":"late","kind":"otp","message":"?"}',
]  # fmt: skip
rarely = st.integers(0, 19).map(lambda number: number == 11)


def collecting(machine: "Sessions") -> bool:
    """Say whether it is the connector's turn."""
    return machine.session.phase is Phase.COLLECTING


def covering(machine: "Sessions") -> bool:
    """Say whether it is the connector's turn and the run collects details."""
    return collecting(machine) and "bodies" in machine.session.plan.streams


class Sessions(RuleBasedStateMachine):
    """One run, and its twin that is told everything but evidence."""

    @initialize(
        scope=st.sampled_from([(), ("inbox", "archive", "people"), ("inbox", "bodies", "labels"), ("people",)]),
        grant=st.sampled_from([None, "G1"]),
        single_use=st.sampled_from([False, False, False, True]),
    )
    def begin(self, scope: tuple[str, ...], grant: str | None, single_use: bool) -> None:
        authority = Authority(grant, single_use=single_use)
        plan = RunPlan("run_1", DECLARATION, plan_scope(DECLARATION, names=scope), authority=authority)
        self.session, self.twin = Session(plan), Session(plan)
        self.session.start()
        self.twin.start()
        self.staged: dict[str, str] = {}
        self.reported: set[str] = set()
        self.agreeing = 0
        self.broken = self.stopped = False

    def tell(self, message: Any, *, twin: bool = True) -> None:
        """Send a message, and hold the session to one effect, once for all, where it is refused."""
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        effect = self.session.receive(line)
        told = self.twin.receive(line if twin else b"")
        assert not twin or told == effect
        if self.broken or self.stopped:
            assert effect is None
        if isinstance(effect, Abort):
            self.broken = True
        if isinstance(effect, Stage):
            self.staged[effect.stream] = effect.cursor

    @precondition(collecting)
    @rule(stream=checkpoints, cursor=st.integers(0, 3))
    def state(self, stream: str, cursor: int) -> None:
        if stream in self.session.plan.streams:
            self.tell({"type": "STATE", "stream": stream, "cursor": {"at": cursor}})

    @precondition(collecting)
    @rule(stream=streams, key=st.sampled_from(["1", "2"]), own=st.sampled_from(["1", "2"]))
    def record(self, stream: str, key: str, own: str) -> None:
        at = "2026-04-01T10:00:00Z"
        self.tell({"type": "RECORD", "stream": stream, "key": key, "data": {"id": own}, "emitted_at": at})

    @precondition(collecting)
    @rule(stream=checkpoints, reason=st.sampled_from([STREAM_FAILED] * 3 + ["rate_limited"]))
    def skip(self, stream: str, reason: str) -> None:
        if stream in self.session.plan.streams:
            self.tell({"type": "SKIP_RESULT", "stream": stream, "reason": reason})

    @precondition(covering)
    @rule(parent=parents, required=keys, hydrated=keys)
    def cover(self, parent: str, required: list[str], hydrated: list[str]) -> None:
        if parent in self.reported or parent not in self.session.plan.streams:
            return
        self.reported.add(parent)
        hydrated = [key for key in hydrated if key in required]
        gaps = [key for key in required if key not in hydrated]
        sets = {"required_keys": required, "hydrated_keys": hydrated, "gap_keys": gaps}
        self.tell(
            {"type": "DETAIL_COVERAGE", "stream": "bodies", "state_stream": parent, "reference_only": True, **sets}
        )

    @precondition(covering)
    @rule(parent=st.sampled_from(["inbox", "archive", None]), key=st.sampled_from(["1", "2"]))
    def gap(self, parent: str | None, key: str) -> None:
        named = {} if parent is None else {"parent_stream": parent}
        self.tell({"type": "DETAIL_GAP", "stream": "bodies", "record_key": key, **named})

    @precondition(lambda machine: "labels" in machine.session.plan.streams and collecting(machine))
    @rule(counts=st.tuples(*[st.integers(0, 9)] * 4))
    def evidence(self, counts: tuple[int, ...]) -> None:
        if "labels" in self.session.facts.evidence:
            return
        outcomes = dict(zip(COUNTS, counts, strict=True))
        message = {"stream": "labels", "reference_only": True, "considered": sum(counts), "outcomes": outcomes}
        self.tell({"type": "STREAM_EVIDENCE", **message}, twin=False)

    @precondition(collecting)
    @rule(ignored=rarely)
    def ask(self, ignored: bool) -> None:
        self.tell({"type": "INTERACTION", "request_id": "q", "kind": "otp", "message": "?"})
        if not ignored:
            for session in (self.session, self.twin):
                session.answered(InteractionResponse("q", "success", {}))

    @precondition(lambda machine: collecting(machine) and machine.staged)
    @rule(
        status=st.sampled_from(["succeeded", "failed", "failed", "cancelled"]),
        code=st.sampled_from([STREAM_FAILED] * 4 + ["auth_failed"]),
        off=rarely,
    )
    def done(self, status: str, code: str, off: bool) -> None:
        error = {} if status != "failed" else {"error": {"message": "x", "retryable": False, "code": code}}
        seen = self.session.records_seen
        self.tell({"type": "DONE", "status": status, "records_emitted": seen + off, **error})
        if not off:
            self.agreeing = {"succeeded": 1, "failed": 2 if code == STREAM_FAILED else 0}.get(status, 0)

    @rule(line=st.sampled_from(DECENT), rare=rarely)
    @precondition(lambda machine: not collecting(machine))
    def speak_out_of_turn(self, line: bytes, rare: bool) -> None:
        if rare:
            self.tell(line)

    @rule(line=st.sampled_from(BROKEN), rare=rarely)
    def break_a_rule(self, line: bytes, rare: bool) -> None:
        if rare:
            self.tell(line)

    @rule(rare=rarely, cancel=st.booleans())
    def end_from_outside(self, rare: bool, cancel: bool) -> None:
        if rare:
            for session in (self.session, self.twin):
                if cancel:
                    session.cancel()
                else:
                    session.stop("idle", "The connector was silent.")
            self.stopped |= not cancel

    def facts_hold_back(self) -> bool:
        """Say whether anything the run said could withhold a checkpoint of a success."""
        return "bodies" in self.session.plan.streams or bool(self.session.facts.skips)

    @invariant()
    def every_ending_is_sound(self) -> None:
        """Look at the run as if it ended here, with each exit: ending it changes nothing of it."""
        session = getattr(self, "session", None)
        if session is None:
            return
        assert session.staged == self.staged
        for exit_ in (Exit(0), Exit(1), Exit(signal=9)):
            verdict, decision = session.end(exit_)
            event(f"{verdict.cause}, committed: {len(decision.committed)}")
            committed, withheld = decision.committed, [one.stream for one in decision.withheld]
            assert sorted([*committed, *withheld]) == sorted(self.staged)
            assert (verdict, decision) == self.twin.end(exit_)
            agrees = self.agreeing == (1 if exit_.is_success else 2)
            voided = self.broken or self.stopped or session.cancelled or session.plan.authority.single_use
            if voided or not agrees:
                assert committed == ()
            assert not set(committed) & {one.stream for one in session.facts.skips if one.reason == STREAM_FAILED}
            if not voided and agrees and verdict.status == "succeeded" and not self.facts_hold_back():
                assert set(committed) == set(self.staged)
            if session.cancelled:
                assert verdict.status == "cancelled"
            elif self.broken or self.stopped:
                assert verdict.status == "failed"


@pytest.mark.clause("CP-204", "CP-807")
@given(
    spoken=st.lists(st.sampled_from(DECENT[:-3]), max_size=6),
    bad=st.sampled_from([*BROKEN, None]),
    place=st.integers(0, 7),
    certified=st.booleans(),
    fate=st.sampled_from(["kept", "kept", "single_use", "cancelled"]),
)
@settings(max_examples=300, deadline=None)
def test_one_bad_line_anywhere_voids_a_good_run(
    spoken: list[bytes], bad: bytes | None, place: int, certified: bool, fate: str
) -> None:
    """A run of good lines commits its checkpoint; one bad line, a single use or a cancellation, and it does not."""
    failed = [json.dumps({"type": "SKIP_RESULT", "stream": "archive", "reason": STREAM_FAILED}).encode()]
    script = [b'{"type":"STATE","stream":"inbox","cursor":{}}', *spoken, *(failed if certified else [])]
    if bad is not None:
        script.insert(place, bad)
    scope = plan_scope(DECLARATION, names=("inbox", "archive", "labels"))
    session = Session(RunPlan("run_1", DECLARATION, scope, authority=Authority(single_use=fate == "single_use")))
    session.start()
    for line in script:
        session.receive(line)
    ending: dict[str, Any] = {"status": "failed" if certified else "succeeded", "records_emitted": session.records_seen}
    if certified:
        ending["error"] = {"message": "x", "retryable": False, "code": STREAM_FAILED}
    session.receive(json.dumps({"type": "DONE", **ending}).encode())
    if fate == "cancelled":
        session.cancel()
    verdict, decision = session.end(Exit(int(certified)))
    assert decision.committed == (("inbox",) if bad is None and fate == "kept" else ())
    ended = "succeeded" if bad is None and not certified else "failed"
    assert verdict.status == ("cancelled" if fate == "cancelled" else ended)


TestSessions = Sessions.TestCase
TestSessions.settings = settings(
    max_examples=500, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
