"""Mutated lines by the thousand through decode and the session: no accident, no effect that there is not, no leak.

HEADWATER_FUZZ says how many lines there are (30,000), HEADWATER_SEED makes them the same again.
"""

import gc
import json
import os
import resource
import tracemalloc
from typing import Any

import pytest
from fuzz.corpus import Spoiler
from vectors.notation import declared

from headwater.collect.effects import Abort, Ask, Finish, Gap, Keep, Receipt, Stage, Tell
from headwater.collect.plan import RunPlan, plan_scope
from headwater.collect.session import Session
from headwater.collect.verdict import Exit
from headwater.wire.decode import NotAMessage, Unreadable, decode
from headwater.wire.messages import InteractionResponse

LINES = int(os.environ.get("HEADWATER_FUZZ", "30000"))
SEED = os.environ["HEADWATER_SEED"]
LANES = 4
EFFECTS = (Abort, Ask, Finish, Gap, Keep, Receipt, Stage, Tell)
PLANS = {
    name: RunPlan("run_1", declared(name), plan_scope(declared(name)))
    for name in ("FLAT", "RIDER", "SOLO", "DUAL", "MIX", "TWINS", "COMBO")
}


class Repeated(ValueError):
    """An object names a member twice."""


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise Repeated
    return dict(pairs)


def strictly(line: bytes) -> Any:
    """Read a line with the library's own reader, held to the grammar; raise ValueError for what is not exact."""

    def refuse(_name: str) -> None:
        raise ValueError

    value = json.loads(line.decode(), object_pairs_hook=once, parse_constant=refuse, parse_int=number)
    json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair has no bytes
    return value


def number(digits: str) -> int:
    return int(digits) if len(digits) < 4_300 else 0


def read_or_refused(line: bytes) -> Any:
    try:
        return decode(line)
    except NotAMessage as refused:
        return refused


def hold_to_the_reference(line: bytes) -> None:
    """Hold the decoder to the strict reader: what it accepts reads the same there, and it accepts nothing inexact."""
    try:
        expected = strictly(line)
    except RecursionError:
        expected = RecursionError
    except ValueError as error:
        expected = Repeated if isinstance(error, Repeated) else ValueError
    read = read_or_refused(line)
    if isinstance(read, NotAMessage):
        if read.rule in ("not_json", "not_utf8"):
            assert expected in (ValueError, Repeated, RecursionError), line[:300]
        return
    message, members = read
    if isinstance(message, Unreadable):
        assert message.reason in {"repeated_member", "lone_surrogate", "nested_too_deep", "unreadable_value"}
        if message.reason == "repeated_member":
            assert expected in (Repeated, ValueError), line[:300]
        return
    assert type(expected) is dict, (expected, line[:300])
    assert members == expected
    assert members["type"] == type(message).__struct_config__.tag


def play(manifest: str, lines: list[bytes]) -> None:
    """Play lines over one session after the other, a new one where one is over, and hold each effect to the laws."""
    session, staged = begun(manifest), {}
    for line in lines:
        hold_to_the_reference(line)
        effect = session.receive(line)
        assert effect is None or type(effect) in EFFECTS
        if isinstance(effect, Ask):
            session.answered(InteractionResponse(effect.question.request_id, "cancelled"))
        elif isinstance(effect, Stage):
            staged[effect.stream] = effect.cursor
        elif isinstance(effect, Keep):
            assert effect.stream in session.plan.streams
            assert effect.data is None or effect.data.encode() in line
        if session.is_over:
            assert session.receive(line) is None
            hold_the_end(session, staged)
            session, staged = begun(manifest), {}
    hold_the_end(session, staged)


def begun(manifest: str) -> Session:
    session = Session(PLANS[manifest])
    session.start()
    return session


def hold_the_end(session: Session, staged: dict[str, str]) -> None:
    """Hold a session to committing nothing but what was staged, and nothing at all where it broke."""
    verdict, decision = session.end(Exit(0))
    assert session.staged == staged
    assert set(decision.committed) <= set(staged)
    if session.is_over or session.done is None:
        assert decision.committed == ()
    json.dumps([verdict.message, str(session.facts)]).encode()


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("lane", range(LANES))
def test_no_line_is_an_accident(lane):
    """Spoiled transcripts end in a verdict, each line in one effect of the closed set, and memory stays level."""
    spoiler = Spoiler(f"{SEED}:{lane}")
    left, level, marks = LINES // LANES, 0, 0
    while left > 0:
        manifest, lines = spoiler.transcript()
        try:
            play(manifest, lines)
        except Exception as error:
            raise AssertionError(f"{manifest} {lines!r}"[:4_000]) from error
        left -= len(lines)
        marks += 1
        if marks == 200:
            level = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if level:
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - level < 48 * 1024


def test_a_broken_session_keeps_nothing_of_what_it_goes_on_to_hear():
    """Ten thousand spoiled lines after a violation leave no trace in memory."""
    spoiler = Spoiler(SEED)
    session = begun("FLAT")
    session.receive(b"junk")
    spoilt = [line for _ in range(600) for line in spoiler.transcript()[1]]
    tracemalloc.start()
    for line in spoilt:
        assert session.receive(line) is None
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 64 * 1024
