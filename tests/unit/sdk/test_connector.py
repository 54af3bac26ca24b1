"""A connector's life: nothing before START, DONE whatever happens, and an exit status that agrees with it."""

import signal
from typing import Any

import pytest

from headwater import limits
from headwater.sdk.testing import collect

ONE = """
@stream("alpha")
def alpha(s):
    yield {"id": "1"}
"""

DEEP = b'{"type":"START","x":' + b'{"x":' * 5_000


def kinds(transcript: Any) -> list[str]:
    """Return the types of the messages, in order."""
    return [message["type"] for message in transcript.messages]


# Before START, and START out of place


@pytest.mark.clause("CP-200")
def test_nothing_is_written_before_start(written: Any, launched: Any) -> None:
    """The pipe stays silent until START comes; then the messages flow."""
    child = launched(written("import sys; print('early'); print('ready', file=sys.stderr, flush=True)" + ONE))
    assert child.process.stderr.readline() == b"ready\n"
    assert not child.says_within(0.5)
    child.start("alpha")
    assert child.line()["type"] == "RECORD"
    assert child.line()["type"] == "DONE"


@pytest.mark.parametrize(
    "line",
    [
        b"hello",
        b"\xff",
        DEEP,
        b'{"type":"INTERACTION_RESPONSE","request_id":"q1","status":"success"}',
        b'{"type":"START"}',
    ],
)
def test_a_first_line_that_is_not_start_is_fatal(written: Any, launched: Any, line: bytes) -> None:
    """The connector says so on stderr, writes nothing to stdout and exits non-zero."""
    child = launched(written(ONE))
    child.send(line)
    messages, errors, status = child.end()
    assert (messages, status) == ([], 70)
    assert "connector: the first line is not START" in errors


def test_a_closed_stdin_instead_of_start_is_fatal(written: Any, launched: Any) -> None:
    """Nobody is there to collect for."""
    messages, errors, status = launched(written(ONE)).end()
    assert (messages, status) == ([], 70)
    assert "stdin closed before START" in errors


WAITS = """
@stream("alpha")
def alpha(s):
    import time
    s.emit({"id": "1"})
    s.progress("halfway")
    time.sleep(60)
    s.emit({"id": "2"})
"""


@pytest.mark.clause("CP-202")
def test_a_second_start_is_fatal(written: Any, launched: Any) -> None:
    """It ends the process with a word on stderr, and no record follows."""
    child = launched(written(WAITS))
    child.start("alpha")
    assert [child.line()["type"] for _ in range(2)] == ["RECORD", "PROGRESS"]
    child.start("alpha")
    messages, errors, status = child.end()
    assert (messages, status) == ([], 70)
    assert "the host sent START while none was due" in errors


@pytest.mark.clause("CP-710")
def test_an_answer_to_no_question_is_fatal(written: Any, launched: Any) -> None:
    """It ends the process the same way."""
    child = launched(written(WAITS))
    child.start("alpha")
    assert [child.line()["type"] for _ in range(2)] == ["RECORD", "PROGRESS"]
    child.send({"type": "INTERACTION_RESPONSE", "request_id": "q1", "status": "success", "data": {}})
    messages, errors, status = child.end()
    assert (messages, status) == ([], 70)
    assert "the host sent INTERACTION_RESPONSE while none was due" in errors


@pytest.mark.parametrize("line", [b"hello", b"\xff", DEEP])
def test_a_line_from_the_host_that_is_no_message_is_fatal(written: Any, launched: Any, line: bytes) -> None:
    """It never leaves the connector waiting on a listener that is gone."""
    child = launched(written(WAITS))
    child.start("alpha")
    assert [child.line()["type"] for _ in range(2)] == ["RECORD", "PROGRESS"]
    child.send(line)
    messages, errors, status = child.end()
    assert (messages, status) == ([], 70)
    assert "no message" in errors


# Bindings


@pytest.mark.clause("CP-058")
def test_a_missing_required_binding_is_fatal(written: Any, launched: Any) -> None:
    """No record is written; DONE, stderr and the exit status all say so, and DONE names the binding."""
    bindings = {"network": {"required": True}, "filesystem": {"required": True}, "interactive": {"required": False}}
    child = launched(written(ONE, runtime_requirements={"bindings": bindings}))
    child.start("alpha", bindings={"filesystem": {}})
    (done,), errors, status = child.end()
    assert (done["type"], done["status"], done["records_emitted"]) == ("DONE", "failed", 0)
    assert done["error"]["message"] == "START lacks a required binding: network"
    assert "network" in errors
    assert status == 1


@pytest.mark.clause("CP-059")
def test_an_unknown_binding_is_ignored(written: Any, launched: Any) -> None:
    """The output is the same with and without it."""
    outputs = []
    for bindings in ({}, {"example.com/x": {"a": 1}}):
        child = launched(written(ONE))
        child.start("alpha", bindings=bindings)
        messages, errors, status = child.end()
        outputs.append(([{**message, "emitted_at": ""} for message in messages], errors, status))
    assert outputs[0] == outputs[1]
    assert outputs[0][2] == 0


# The end


@pytest.mark.clause("CP-106")
def test_a_stray_print_cannot_break_the_protocol(written: Any) -> None:
    """Prints, logs, raw writes and a child's own output all go to stderr."""
    code = """
import logging, os, subprocess, sys
logging.basicConfig(stream=sys.stdout)
@stream("alpha")
def alpha(s):
    print("stray-print", flush=True)
    sys.stdout.write("stray-write\\n")
    os.write(1, b"stray-descriptor\\n")
    logging.warning("stray-log")
    subprocess.run(["echo", "stray-child"])
    yield {"id": "1"}
    print("stray-end")
"""
    transcript = collect(written(code), streams=["alpha"])
    assert kinds(transcript) == ["RECORD", "DONE"]
    for word in ("print", "write", "descriptor", "child", "end"):
        assert f"stray-{word}" in transcript.stderr


@pytest.mark.clause("CP-211")
@pytest.mark.parametrize(
    ("body", "status", "succeeded"),
    [("return", "succeeded", True), ("raise Fail('no')", "failed", False), ("1 / 0", "failed", False)],
)
def test_the_exit_status_agrees_with_done(written: Any, body: str, status: str, succeeded: bool) -> None:
    """Zero after a succeeded DONE and one after a failed one."""
    transcript = collect(written(f"@stream('alpha')\ndef alpha(s):\n    {body}"))
    assert transcript.done["status"] == status
    assert transcript.exit_status == (0 if succeeded else 1)


@pytest.mark.clause("CP-211")
def test_a_stopped_connector_says_that_it_was_cancelled(written: Any, launched: Any) -> None:
    """SIGTERM ends the walk where it is; DONE counts what was sent, and the exit status is not zero."""
    child = launched(written(WAITS))
    child.start("alpha")
    assert [child.line()["type"] for _ in range(2)] == ["RECORD", "PROGRESS"]
    child.process.send_signal(signal.SIGTERM)
    (done,), _, status = child.end()
    assert (done["type"], done["status"], done["records_emitted"]) == ("DONE", "cancelled", 1)
    assert status == 1


@pytest.mark.clause("CP-211")
@pytest.mark.parametrize("characters", [1_000, 3_000_000])
def test_a_stop_never_cuts_a_message(written: Any, launched: Any, characters: int) -> None:
    """SIGTERM in the middle of a write that the pipe has no room for: the line is whole, and DONE counts it."""
    code = f"@stream('alpha')\ndef alpha(s):\n    while True:\n        yield {{'id': 'x' * {characters}}}"
    child = launched(written(code))
    child.start("alpha")
    assert child.says_within(30)
    child.process.send_signal(signal.SIGTERM)
    *records, done = child.end()[0]
    assert {message["type"] for message in records} == {"RECORD"}
    assert (done["status"], done["records_emitted"]) == ("cancelled", len(records))


@pytest.mark.clause("CP-216")
def test_a_connector_leaves_a_host_that_reads_no_more(written: Any, launched: Any) -> None:
    """SIGTERM in the middle of a write that nobody takes: without a DONE, and before the host would kill it."""
    child = launched(written("@stream('alpha')\ndef alpha(s):\n    while True:\n        yield {'id': 'x' * 3_000_000}"))
    child.start("alpha")
    assert child.says_within(30)
    child.process.send_signal(signal.SIGTERM)
    assert child.process.wait(limits.STOP_SECONDS) == -signal.SIGALRM


@pytest.mark.clause("CP-214")
@pytest.mark.parametrize("body", ["1 / 0", "raise SystemExit", "import sys; sys.exit(0)", "raise Fail('no')"])
def test_done_is_sent_on_failure_too(written: Any, body: str) -> None:
    """An exception, an exit and a declared failure all end in a failed DONE with its message and flag."""
    transcript = collect(written(ONE + f"    {body}"), streams=["alpha"])
    done = transcript.done
    assert kinds(transcript)[-1] == "DONE"
    assert (done["status"], done["records_emitted"], transcript.exit_status) == ("failed", 1, 1)
    assert isinstance(done["error"]["message"], str)
    assert isinstance(done["error"]["retryable"], bool)


def test_an_unexpected_error_is_not_told_in_done(written: Any) -> None:
    """Its text may hold a secret: it goes to stderr, and DONE names the type alone."""
    transcript = collect(written("@stream('alpha')\ndef alpha(s):\n    raise ValueError('hunter2')"))
    assert all("hunter2" not in str(message) for message in transcript.messages)
    assert "hunter2" in transcript.stderr


def test_a_failure_carries_what_the_connector_said(written: Any) -> None:
    """Message, code, flag and hint arrive; what was not said is absent."""
    body = "raise Fail('log in again', code='auth_failed', retryable=False, hint='refresh_credentials')"
    transcript = collect(written(f"@stream('alpha')\ndef alpha(s):\n    {body}"))
    assert transcript.done["error"] == {
        "message": "log in again",
        "retryable": False,
        "code": "auth_failed",
        "recovery_hint": "refresh_credentials",
    }
    bare = collect(written("@stream('alpha')\ndef alpha(s):\n    raise Fail('no')"))
    assert bare.done["error"] == {"message": "no", "retryable": True}


@pytest.mark.clause("CP-811")
def test_each_failed_stream_is_named_in_a_skip(written: Any) -> None:
    """Two of three streams raise: two skips, the third stream's records, and a DONE that certifies."""
    code = """
@stream("alpha")
def alpha(s):
    raise ValueError
@stream("beta")
def beta(s):
    yield {"id": "1"}
    s.save({"n": 1})
@stream("gamma")
def gamma(s):
    yield {"id": "1"}
    raise ValueError
"""
    transcript = collect(written(code))
    skips = [message for message in transcript.messages if message["type"] == "SKIP_RESULT"]
    assert [(skip["stream"], skip["reason"]) for skip in skips] == [
        ("alpha", "stream_collection_failed"),
        ("gamma", "stream_collection_failed"),
    ]
    assert transcript.state == {"beta": {"n": 1}}
    assert transcript.done["status"] == "failed"
    assert transcript.done["records_emitted"] == 2
    assert transcript.done["error"]["code"] == "stream_collection_failed"


@pytest.mark.clause("CP-811")
def test_a_declared_failure_certifies_nothing(written: Any) -> None:
    """`Fail` ends the whole run: no skip, no certifying code, and no later stream."""
    transcript = collect(
        written("@stream('alpha')\ndef alpha(s):\n    raise Fail('no')" + ONE.replace("alpha", "beta"))
    )
    assert kinds(transcript) == ["DONE"]
    assert "code" not in transcript.done["error"]


def test_a_function_for_an_undeclared_stream_is_a_mistake(written: Any) -> None:
    """It is found when the connector is loaded, before anything is said."""
    transcript = collect(written("@stream('ghost')\ndef ghost(s):\n    return"))
    assert (transcript.messages, transcript.exit_status) == ([], 1)
    assert "declares no stream ghost" in transcript.stderr
