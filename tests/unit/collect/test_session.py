"""The session: what a connector may say, when, and what each thing it says does."""

import json

import msgspec
import pytest

from headwater.collect.effects import Abort, Ask, Finish, Gap, Keep, Stage, Tell
from headwater.collect.session import Phase
from headwater.collect.verdict import Exit
from headwater.wire.encode import encode
from headwater.wire.messages import InteractionResponse

FAILED = "stream_collection_failed"


def told(type_: str, **members) -> str:
    """Write a message as a line of a script."""
    return json.dumps({"type": type_, **members})


ASK = told("INTERACTION", request_id="q7", kind="otp", message="The code?")


def asking(play, **members) -> str:
    return told("INTERACTION", **{"request_id": "q7", "kind": "otp", "message": "The code?", **members})


# Order.


@pytest.mark.clause("CP-145", "CP-405")
def test_start_has_its_five_members_and_no_state_on_a_first_run(play):
    """START is complete, its scope is explicit and its state is an explicit null."""
    session = play.begin("FLAT", "alpha beta")
    start = json.loads(encode(session.start()))
    assert list(start) == ["type", "run_id", "collection_mode", "scope", "state", "bindings"]
    assert start["scope"] == {"streams": [{"name": "alpha"}, {"name": "beta"}]}
    assert (start["state"], start["bindings"]) == (None, {})


@pytest.mark.clause("CP-407")
@pytest.mark.parametrize(
    "cursor",
    ['{}', '{ "a" : [null, {"b":""}] }', '{"n":9007199254740991,"d":"0.100000000000000000001","u":"é\\u00e9"}'],
)  # fmt: skip
def test_a_cursor_returns_byte_for_byte(play, cursor):
    """What STATE said is what the next START says, spelling included."""
    session = play.begin("FLAT")
    session.receive(b'{"type":"STATE","stream":"alpha","cursor":%s}' % cursor.encode())
    assert session.staged == {"alpha": cursor}
    again = play.begin("FLAT", state=session.staged)
    assert cursor.encode() in encode(again.start())


@pytest.mark.parametrize("line", [ASK, "S alpha=a1", "R alpha 1", told("PROGRESS", message="hi"), "nonsense"])
def test_a_word_before_start_breaks_the_run(play, line):
    """A connector that speaks first is ended, and nothing it says later counts."""
    session = type(play.begin("FLAT"))(play.begin("FLAT").plan)
    assert session.phase is Phase.INITIALIZING
    raw = line.encode() if line == "nonsense" else play.lines(line)[0]
    assert session.receive(raw) == Abort("before_start", "The connector wrote before START. See line 1 of its output.")
    assert session.is_over
    assert session.end(Exit(0))[0].cause == "before_start"


@pytest.mark.clause("CP-153", "CP-213")
@pytest.mark.parametrize(
    "line", ["R alpha 1", "S beta=b1", told("DONE", status="succeeded", records_emitted=0), ASK, "{}", "F beta"]
)
def test_a_word_after_done_breaks_the_run(play, line):
    """DONE is the last message; anything after it takes back what it promised."""
    done = told("DONE", status="succeeded", records_emitted=0)
    played = play("FLAT", f"S alpha=a1; {done}; {line}", "–", exit_code=0)
    assert (played.verdict.status, played.verdict.cause) == ("failed", "after_done")
    assert (played.committed, played.withheld) == ({}, {"alpha": "after_done"})


@pytest.mark.clause("CP-101", "CP-102", "CP-107", "CP-213", "CP-807")
@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("{", "not_json"),
        ("{} {}", "not_json"),
        ('{"stream":"alpha"}', "not_a_message"),
        ('{"type":5}', "not_a_message"),
        ('{"type":"NOVEL1"}', "unknown_type"),
        ('{"type":"NOVEL2","message":"?"}', "unknown_type"),
        ('{"type":"START"}', "unknown_type"),
    ],
)
def test_a_line_that_is_no_message_voids_everything_before_it(play, line, rule):
    """A certified failure with a good checkpoint commits nothing once a line is none."""
    assert play.refused("FLAT", line) == rule
    played = play("FLAT", f"S alpha=a1; F beta; {line}", "scf")
    assert (played.verdict.status, played.verdict.cause, played.committed) == ("failed", rule, {})


def test_the_first_violation_stands(play):
    """A run that is broken hears nothing more: its cause and its staged map are those of the first breach."""
    played = play("FLAT", 'S alpha=a1; {"type":"NOVEL"}; S beta=b1; R alpha 1; {"stream":"alpha"}; {')
    assert [type(effect) for effect in played.effects[2:]] == [type(None)] * 5
    assert (played.verdict.cause, played.session.records_seen) == ("unknown_type", 0)
    assert list(played.session.staged) == ["alpha"]


# STATE.


@pytest.mark.clause("CP-125", "CP-213")
@pytest.mark.parametrize(
    "members",
    [
        {"stream": "alpha"},
        *({"stream": "alpha", "cursor": cursor} for cursor in (None, [], "c", 1)),
        {"cursor": {}},
        {"stream": "", "cursor": {}},
        {"stream": 3, "cursor": {}},
        {"stream": None, "cursor": {}},
    ],
)
def test_a_state_without_stream_or_cursor_is_refused(play, members):
    """STATE needs a name and an object."""
    play.refused("FLAT", told("STATE", **members))


@pytest.mark.clause("CP-126")
@pytest.mark.parametrize(
    ("manifest", "stream", "scope"),
    [("RIDER", "stamps", ""), ("SOLO", "photos", ""), ("FLAT", "gamma", "alpha beta"), ("FLAT", "ghost", "")],
)
def test_only_a_checkpoint_stream_in_scope_has_a_state(play, manifest, stream, scope):
    """A child, a stream outside the scope and an unknown one have no checkpoint to stage."""
    assert play.refused(manifest, f"S {stream}=c1", scope=scope) == "state_stream"


@pytest.mark.clause("CP-126", "CP-412", "CP-413", "CP-414")
def test_state_is_staged_and_the_latest_of_a_stream_counts(play):
    """Nothing commits while the run is on; at its end each stream has one cursor, the last, in order of arrival."""
    session = play.begin("FLAT")
    effects = [session.receive(line) for line in play.lines("S alpha=a1; S beta=b1; S alpha=a2")]
    assert effects == [
        Stage("alpha", '{"at": "a1"}'),
        Stage("beta", '{"at": "b1"}'),
        Stage("alpha", '{"at": "a2"}'),
    ]
    assert list(session.staged.items()) == [("beta", '{"at": "b1"}'), ("alpha", '{"at": "a2"}')]
    played = play("FLAT", "S alpha=a1; S beta=b1; S alpha=a2")
    assert played.decision.committed == ("beta", "alpha")
    assert played.committed == {"beta": "b1", "alpha": "a2"}


# DONE.


@pytest.mark.clause("CP-150", "CP-151", "CP-152")
@pytest.mark.parametrize(
    "members",
    [
        {"records_emitted": 0},
        {"status": "ok", "records_emitted": 0},
        {"status": None, "records_emitted": 0},
        {"status": "succeeded"},
        *({"status": "succeeded", "records_emitted": count} for count in (-1, 1.5, "3", None, True, 2**53)),
        *(
            {"status": "failed", "records_emitted": 0, "error": error}
            for error in ({}, {"message": "x"}, {"retryable": True}, {"message": 1, "retryable": True}, "x", None)
        ),
        {"status": "failed", "records_emitted": 0, "error": {"message": "x", "retryable": 0}},
    ],
)
def test_a_done_of_another_shape_is_refused(play, members):
    """Status, count and error have one shape each, and a DONE without it decides nothing."""
    play.refused("FLAT", told("DONE", **members))


@pytest.mark.clause("CP-152", "CP-832")
@pytest.mark.parametrize("error", [{}, {"error": {"message": "x", "retryable": True}}])
def test_a_failed_done_may_explain_itself(play, error):
    """An error is optional, and so are its code and its hint."""
    done = told("DONE", status="failed", records_emitted=0, **error)
    played = play("FLAT", done, "–")
    assert (played.verdict.status, played.verdict.cause) == ("failed", "connector_failed")
    assert played.session.facts.error == error.get("error")


@pytest.mark.clause("CP-220")
@pytest.mark.parametrize("terminal", ["ok", "scf", "failed", "cancelled"])
@pytest.mark.parametrize("off", [-1, 1])
def test_a_count_that_is_off_fails_any_ending(play, terminal, off):
    """Three records came; a DONE that says two or four is not believed in anything else either."""
    played = play("FLAT", "R alpha 1; S alpha=a1; R alpha 2; R beta 3; F gamma", terminal, off=off)
    assert (played.verdict.status, played.verdict.cause, played.committed) == ("failed", "wrong_count", {})


@pytest.mark.clause("CP-220")
def test_every_record_that_came_is_counted(play):
    """Records outside the scope, refused ones, deletes and unreadable ones all are RECORD messages."""
    twice = (
        '{"type":"RECORD","stream":"alpha","key":"1","data":{"id":"1","id":"2"},"emitted_at":"2026-04-01T10:00:00Z"}'
    )
    at = "2026-04-01T10:00:00Z"
    other = told("RECORD", stream="alpha", key="1", data={"id": "2"}, emitted_at=at)
    gone = told("RECORD", stream="alpha", key="1", data={}, emitted_at=at, op="delete")
    played = play("FLAT", f"R alpha 1; R beta 1; {twice}; {other}; {gone}; S alpha=a1", scope="alpha")
    assert played.session.records_seen == 5
    assert played.session.out_of_scope == 1
    assert (played.verdict.status, played.committed) == ("succeeded", {"alpha": "a1"})


@pytest.mark.clause("CP-151")
def test_a_count_is_taken_by_value(play):
    """2.0 is 2, as a JavaScript connector cannot tell the two apart."""
    done = '{"type":"DONE","status":"succeeded","records_emitted":2.0}'
    assert play("FLAT", f"R alpha 1; R alpha 2; {done}", "–", exit_code=0).verdict.status == "succeeded"


# PROGRESS, and what causes no transition.


@pytest.mark.clause("CP-137")
@pytest.mark.parametrize(
    "members",
    [
        {},
        {"message": 5},
        {"message": "x", "count": "5"},
        {"message": "x", "total": True},
        {"message": "x", "stream": 1},
    ],
)
def test_progress_of_another_shape_is_refused(play, members):
    """PROGRESS needs a message, and numbers are numbers."""
    play.refused("FLAT", told("PROGRESS", **members))


@pytest.mark.clause("CP-137")
def test_progress_is_told_and_changes_nothing(play):
    """A hundred lines of progress leave records, checkpoints and outcome as they are; long ones are cut."""
    script = "R alpha 1; S alpha=a1; F beta"
    line = told("PROGRESS", message="x" * 9_000, stream="?", count=1, total=2.5)
    quiet, loud = play("FLAT", script, "scf"), play("FLAT", "; ".join([script, *[line] * 100]), "scf")
    tells = [effect for effect in loud.effects if isinstance(effect, Tell)]
    assert tells == [Tell("x" * 2_000, "?", 1.0, 2.5)] * 100
    assert [effect for effect in loud.effects if effect not in tells] == quiet.effects
    assert (loud.verdict, loud.decision) == (quiet.verdict, quiet.decision)


@pytest.mark.clause("CP-137")
def test_no_number_is_too_long_for_progress(play):
    """An integer that no float holds is a number all the same, and is shown as none."""
    line = told("PROGRESS", message="hi", count=10**400, total=3)
    assert play("FLAT", f"{line}; S alpha=a1").effects[0] == Tell("hi", None, None, 3.0)


@pytest.mark.clause("CP-132", "CP-215")
@pytest.mark.parametrize(
    "line",
    [
        "C bodies→inbox [m1 ¦ m1]",
        "G bodies→inbox m1",
        "E labels 3=1+1+1+0",
        told("PROGRESS", message="hi"),
        told("SKIP_RESULT", stream="people", reason="rate_limited"),
    ],
)
def test_a_fact_leaves_the_connector_collecting(play, line):
    """After a report, a gap, evidence, progress or a skip the run goes on as before."""
    session = play.begin("MIX")
    session.receive(play.lines(line)[0])
    assert session.phase is Phase.COLLECTING
    kept, asked = (session.receive(raw) for raw in play.lines(f"R people 1; {ASK}"))
    assert (type(kept), type(asked), session.phase) == (Keep, Ask, Phase.WAITING)


# INTERACTION.


@pytest.mark.clause("CP-700")
@pytest.mark.parametrize("missing", ["request_id", "kind", "message"])
def test_a_question_lacks_no_member(play, missing):
    """A question has an id, a kind and words."""
    members = {"request_id": "q7", "kind": "otp", "message": "The code?"}
    del members[missing]
    play.refused("FLAT", told("INTERACTION", **members))


@pytest.mark.clause("CP-700")
@pytest.mark.parametrize(
    "wrong",
    [{"kind": "captcha"}, {"schema": []}, {"timeout_seconds": "300"}, {"timeout_seconds": 0}, {"timeout_seconds": -1},
     {"timeout_seconds": True}, {"request_id": 7}, {"message": None}],
)  # fmt: skip
def test_a_question_of_another_shape_is_refused(play, wrong):
    """Nothing is asked that could not be answered in a bounded time."""
    play.refused("FLAT", asking(play, **wrong))


@pytest.mark.clause("CP-704")
def test_an_answer_sends_the_connector_back_to_collecting(play):
    """What follows the answer is collected and committed; an answer to another question changes nothing."""
    session = play.begin("FLAT")
    asked = session.receive(play.lines(ASK)[0])
    assert asked.question.request_id == "q7"
    session.answered(InteractionResponse("q8", "success", {}))
    assert (session.phase, session.pending_question) == (Phase.WAITING, asked.question)
    session.answered(InteractionResponse("q7", "success", {"code": "1"}))
    assert (session.phase, session.pending_question) == (Phase.COLLECTING, None)
    done = told("DONE", status="succeeded", records_emitted=1)
    kept, staged, finish = (session.receive(raw) for raw in play.lines(f"R alpha 1; S alpha=a1; {done}"))
    assert (type(kept), type(staged), type(finish)) == (Keep, Stage, Finish)
    verdict, decision = session.end(Exit(0))
    assert (verdict.status, decision.committed) == ("succeeded", ("alpha",))


@pytest.mark.clause("CP-702", "CP-703")
@pytest.mark.parametrize("line", [ASK, asking(None, request_id="q8"), "R alpha 1", "S beta=b1", "{", "F beta"])
def test_a_word_while_waiting_breaks_the_run(play, line):
    """A connector whose question is open writes nothing, and a second question least of all."""
    played = play("FLAT", f"S alpha=a1; {ASK}; {line}")
    assert (played.verdict.status, played.verdict.cause) == ("failed", "spoke_while_waiting")
    assert (played.committed, played.withheld) == ({}, {"alpha": "spoke_while_waiting"})


@pytest.mark.clause("CP-207")
def test_an_answer_revives_no_broken_run(play):
    """The owner may answer just as the run is ended; what the connector then says is not heard."""
    session = play.begin("FLAT")
    for raw in play.lines(f"S alpha=a1; {ASK}; S beta=b1"):
        session.receive(raw)
    session.answered(InteractionResponse("q7", "success", {}))
    assert (session.phase, session.is_over) == (Phase.BROKEN, True)
    assert session.receive(play.lines("S beta=b1")[0]) is None
    assert list(session.staged) == ["alpha"]


@pytest.mark.clause("CP-705")
def test_an_answer_has_data_only_with_success():
    """Success carries data, a refusal and a timeout do not."""
    lines = [
        msgspec.json.decode(encode(InteractionResponse("q7", "success", {"code": "1"}))),
        msgspec.json.decode(encode(InteractionResponse("q7", "cancelled"))),
        msgspec.json.decode(encode(InteractionResponse("q7", "timeout"))),
    ]
    assert ["data" in line for line in lines] == [True, False, False]


@pytest.mark.clause("CP-217")
def test_a_cancelled_run_ends_from_a_question_too(play):
    """Waiting for the owner, the owner cancels: nothing commits."""
    played = play("FLAT", f"S alpha=a1; {ASK}", "–", cancel=True)
    assert (played.verdict.status, played.committed) == ("cancelled", {})
    assert played.session.is_over


# Host reasons.


@pytest.mark.clause("CP-207")
@pytest.mark.parametrize("before", ["", ASK, "R alpha 1"])
def test_the_hosts_own_reason_ends_a_run_as_failed(play, before):
    """A limit that is reached while collecting or waiting is the cause, and the first cause stands."""
    session = play.begin("FLAT")
    for raw in play.lines(f"S alpha=a1; {before}"):
        session.receive(raw)
    session.stop("idle", "The connector was silent.")
    session.stop("run_time", "The run took too long.")
    verdict, decision = session.end(Exit(signal=15))
    assert (verdict.status, verdict.cause, decision.committed) == ("failed", "idle", ())


def test_a_gap_is_noted_with_what_it_says(play):
    """The store is told the boundary, the canonical key, a bounded reason and the locator as JSON."""
    session = play.begin("DUAL")
    members = {"stream": "bodies", "record_key": 7.0, "reason": "x" * 9_000, "detail_locator": {"a": 1}}
    gap = session.receive(told("DETAIL_GAP", retryable=False, **members).encode())
    assert gap == Gap("bodies", None, "7", "x" * 2_000, False, '{"a":1}')
    assert session.receive(play.lines("G bodies→archive m1")[0]) == Gap("bodies", "archive", "m1", "later", True, None)
