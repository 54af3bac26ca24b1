"""Asking the owner: silence until the answer comes, and an end when it cannot."""

from typing import Any

import pytest

from headwater.sdk.testing import collect

ASKS = """
@stream("alpha")
def alpha(s):
    s.emit({"id": "before"})
    answer = s.run.ask("otp", "The code?", {"type": "object"}, timeout_seconds=300)
    s.emit({"id": answer["code"]})
    s.save({"n": 1})
"""
ANSWER = {"type": "INTERACTION_RESPONSE", "request_id": "q1", "status": "success", "data": {"code": "123456"}}


@pytest.mark.clause("CP-701")
def test_nothing_is_written_while_a_question_is_open(written: Any, launched: Any) -> None:
    """A thread that emits all the while waits for the answer; what it had written comes before the question."""
    code = """
import threading
@stream("alpha")
def alpha(s):
    asked, stop = threading.Event(), threading.Event()
    def chatter():
        while not stop.wait(0.001):
            s.emit({"id": "chatter"})
            asked.set()
    thread = threading.Thread(target=chatter)
    thread.start()
    asked.wait()
    s.run.ask("manual_action", "Tap the button")
    stop.set()
    thread.join()
    s.emit({"id": "last"})
"""
    child = launched(written(code))
    child.start("alpha")
    before = 0
    while (message := child.line())["type"] != "INTERACTION":
        before += message["type"] == "RECORD"
    assert child.rest == b""
    assert not child.says_within(1)
    child.send({**ANSWER, "data": {}})
    messages, _, status = child.end()
    assert status == 0
    records = before + sum(message["type"] == "RECORD" for message in messages)
    assert (messages[-1]["type"], messages[-1]["records_emitted"]) == ("DONE", records)
    assert messages[-2]["data"] == {"id": "last"}


def test_an_answer_is_used_and_never_repeated(written: Any, launched: Any) -> None:
    """The question carries what was asked; the run goes on with the answer, which is in no message of the SDK's own."""
    child = launched(written(ASKS.replace('answer["code"]', 'str(len(answer["code"]))')))
    child.start("alpha")
    assert child.line()["data"] == {"id": "before"}
    assert child.line() == {
        "type": "INTERACTION",
        "request_id": "q1",
        "kind": "otp",
        "message": "The code?",
        "schema": {"type": "object"},
        "timeout_seconds": 300,
    }
    child.send(ANSWER)
    messages, errors, status = child.end()
    assert [message["type"] for message in messages] == ["RECORD", "STATE", "DONE"]
    assert messages[0]["data"] == {"id": "6"}
    assert "123456" not in f"{messages} {errors}"
    assert status == 0


@pytest.mark.parametrize("status", ["cancelled", "timeout"])
def test_a_declined_question_fails_the_run(written: Any, launched: Any, status: str) -> None:
    """DONE says what the owner did, and asks for a manual action."""
    child = launched(written(ASKS))
    child.start("alpha")
    assert [child.line()["type"] for _ in range(2)] == ["RECORD", "INTERACTION"]
    child.send({"type": "INTERACTION_RESPONSE", "request_id": "q1", "status": status})
    (done,), _, exit_status = child.end()
    assert (done["status"], done["error"]["recovery_hint"]) == ("failed", "manual_action_required")
    assert status in done["error"]["message"]
    assert exit_status == 1


def test_a_connector_may_live_with_a_declined_question(written: Any, launched: Any) -> None:
    """`Declined` can be caught, and the next question has an id of its own."""
    code = """
@stream("alpha")
def alpha(s):
    try:
        s.run.ask("otp", "The code?")
    except Declined:
        s.emit({"id": s.run.ask("otp", "Again?")["code"]})
"""
    child = launched(written(code))
    child.start("alpha")
    assert child.line()["request_id"] == "q1"
    child.send({"type": "INTERACTION_RESPONSE", "request_id": "q1", "status": "timeout"})
    assert child.line()["request_id"] == "q2"
    child.send({**ANSWER, "request_id": "q2"})
    messages, _, status = child.end()
    assert ([message["type"] for message in messages], status) == (["RECORD", "DONE"], 0)


@pytest.mark.clause("CP-202")
def test_start_instead_of_an_answer_is_fatal(written: Any, launched: Any) -> None:
    """The connector ends with a word on stderr, and no record follows."""
    child = launched(written(ASKS))
    child.start("alpha")
    assert [child.line()["type"] for _ in range(2)] == ["RECORD", "INTERACTION"]
    child.start("alpha")
    messages, errors, status = child.end()
    assert (messages, status) == ([], 70)
    assert "the host sent START" in errors


@pytest.mark.clause("CP-710")
def test_a_second_answer_is_fatal(written: Any, launched: Any) -> None:
    """One question has one answer."""
    code = ASKS.replace('s.save({"n": 1})', "s.progress('got it'); __import__('time').sleep(60)")
    child = launched(written(code))
    child.start("alpha")
    assert [child.line()["type"] for _ in range(2)] == ["RECORD", "INTERACTION"]
    child.send(ANSWER)
    assert [child.line()["type"] for _ in range(2)] == ["RECORD", "PROGRESS"]
    child.send(ANSWER)
    messages, errors, status = child.end()
    assert (messages, status) == ([], 70)
    assert "while none was due" in errors


def test_a_question_with_nobody_left_to_answer_ends_the_run(written: Any) -> None:
    """A host that closed stdin will never answer: the connector says so and does not wait for ever."""
    transcript = collect(
        written("import time" + ASKS.replace("answer =", "time.sleep(0.2); answer =")), timeout_seconds=20
    )
    assert [message["type"] for message in transcript.messages] == ["RECORD", "INTERACTION", "DONE"]
    assert transcript.done["error"]["message"] == "The host closed the conversation."
    assert transcript.exit_status == 1


def test_a_test_answers_question_by_question(written: Any) -> None:
    """The first answer is taken, and a second question is declined: there is none for it."""
    transcript = collect(written(ASKS + "    s.run.ask('otp', 'Once more?')\n"), answers=[ANSWER["data"]])
    kinds = ["RECORD", "INTERACTION", "RECORD", "STATE", "INTERACTION", "DONE"]
    assert [message["type"] for message in transcript.messages if message["type"] in kinds] == kinds
    assert transcript.done["error"]["message"] == "The owner's answer was: cancelled."


@pytest.mark.clause("CP-707")
def test_a_host_that_never_answers_is_not_waited_for_without_end(written: Any, launched: Any) -> None:
    """It owes an answer when the time is over; the connector gives it a while longer, and fails."""
    patience = "import headwater.sdk.channel\nheadwater.sdk.channel._GRACE_SECONDS = 0.1\n"
    child = launched(written(patience + ASKS.replace("300", "0.1")))
    child.start("alpha")
    assert [child.line()["type"] for _ in range(3)] == ["RECORD", "INTERACTION", "DONE"]
    assert child.process.wait(30) == 1


def test_a_host_that_leaves_during_a_question_ends_the_run(written: Any, launched: Any) -> None:
    """So does one that closes stdin while the question is open."""
    child = launched(written(ASKS))
    child.start("alpha")
    assert [child.line()["type"] for _ in range(2)] == ["RECORD", "INTERACTION"]
    (done,), _, status = child.end()
    assert (done["type"], done["status"], status) == ("DONE", "failed", 1)
