"""A connector that speaks otherwise: only by name, counted, and without a word in what may commit."""

import json
from dataclasses import replace

import pytest

from headwater.collect.effects import Abort, Reply, Tell
from headwater.collect.gaps import OpenGap
from headwater.collect.session import Session
from headwater.collect.verdict import Exit
from headwater.wire.encode import encode

ASSISTANCE = b'{"type":"ASSISTANCE","message":"Approve on your phone"}'
PAGE = b'{"type":"DETAIL_GAPS_PAGE_REQUEST","reference_only":true,"request_id":"p1"}'
RECOVERED = b'{"type":"DETAIL_GAP_RECOVERED","stream":"alpha","gap_id":"1"}'


def begun(play, compatibility: str = "pdpp-reference/1", **members: object) -> Session:
    """A run of a connector that speaks so, after its START."""
    plan = play.begin("FLAT", "alpha").plan
    session = Session(replace(plan, compatibility=compatibility, **members))
    session.start()
    return session


@pytest.mark.clause("CP-107")
@pytest.mark.parametrize("line", [ASSISTANCE, PAGE, RECOVERED])
def test_without_the_name_each_of_them_ends_the_run(play, line):
    """Fail closed: an unknown type is a violation."""
    effect = begun(play, compatibility="").receive(line)
    assert isinstance(effect, Abort)
    assert effect.rule == "unknown_type"


def test_assistance_is_shown_and_counted(play):
    """Nothing waits for it, and it has no part in the verdict."""
    session = begun(play)
    assert session.receive(ASSISTANCE) == Tell("Approve on your phone", None, None, None)
    assert session.receive(ASSISTANCE) is not None
    session.receive(b'{"type":"STATE","stream":"alpha","cursor":{}}')
    session.receive(b'{"type":"DONE","status":"succeeded","records_emitted":0}')
    verdict, decision = session.end(Exit(0))
    assert (verdict.status, decision.committed) == ("succeeded", ("alpha",))
    assert session.facts.extensions == {"ASSISTANCE": 2}


def test_a_request_for_gaps_is_answered(play):
    """With an empty page: those of the run stood in its START."""
    effect = begun(play).receive(PAGE)
    assert isinstance(effect, Reply)
    answer = {"type": "DETAIL_GAPS_PAGE_RESPONSE", "request_id": "p1", "detail_gaps": [], "reference_only": True}
    assert json.loads(encode(effect.message)) == answer


def test_a_word_of_recovery_heals_nothing_by_itself(play):
    """It is counted, and no gap is accounted for by it."""
    session = begun(play)
    assert session.receive(RECOVERED) is None
    assert session.facts.extensions == {"DETAIL_GAP_RECOVERED": 1}


def test_the_cursor_of_a_child_is_counted_and_not_kept(play):
    """Only its parent's cursor covers a state_stream child; without the name the same STATE ends the run."""
    plan = play.begin("RIDER").plan
    state = b'{"type":"STATE","stream":"stamps","cursor":{"n":1}}'
    session = Session(replace(plan, compatibility="pdpp-reference/1"))
    session.start()
    assert session.receive(state) is None
    assert session.staged == {}
    assert session.facts.extensions == {"STATE of a state_stream child": 1}
    assert isinstance(session.receive(state.replace(b"stamps", b"nowhere")), Abort)
    closed = play.begin("RIDER")
    assert isinstance(closed.receive(state), Abort)


@pytest.mark.parametrize("line", [b'{"type":"NOVEL"}', b'{"type":"ASSISTANCE"}', b"nonsense"])
def test_what_it_does_not_have_still_ends_the_run(play, line):
    """The name opens a closed list."""
    assert isinstance(begun(play).receive(line), Abort)


def test_it_speaks_in_its_turn_only(play):
    """After DONE nothing is heard, whatever the compatibility."""
    session = begun(play)
    session.receive(b'{"type":"DONE","status":"succeeded","records_emitted":0}')
    effect = session.receive(ASSISTANCE)
    assert isinstance(effect, Abort)
    assert effect.rule == "after_done"


def test_its_start_hands_out_the_gaps_of_a_retry(play):
    """One member more than the profile's START; without the name there is none."""
    gaps = (OpenGap(7, "alpha", "k1", 0),)
    start = json.loads(encode(begun(play, retries=gaps).start()))
    gap = {"gap_id": "7", "stream": "alpha", "record_key": "k1", "status": "pending", "reference_only": True}
    assert start["type"] == "START"
    assert start["detail_gaps"] == [gap]
    assert "detail_gaps" not in json.loads(encode(begun(play, compatibility="", retries=gaps).start()))
    assert json.loads(encode(begun(play).start()))["detail_gaps"] == []
