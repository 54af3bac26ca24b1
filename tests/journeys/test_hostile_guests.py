"""Guests that break every rule: each ends in a named outcome, what was durable is kept, and no cursor moves."""

import base64
import json

import pytest

RECORD = '{"type":"RECORD","stream":"%s","key":"a9","data":{"id":"a9"},"emitted_at":"2026-04-01T10:00:00Z"}'
DONE = '{"type":"DONE","status":"succeeded","records_emitted":1}'


def ends_in(headwater, cause, guest, *words, options=("--idle-timeout", "8")):
    """Collect from a hostile guest after a good one, and hold the outcome to what must always hold."""
    assert headwater.collect("good.sh").status == 0
    answer = headwater.collect(guest, *options, words=words)
    failure = answer.failure
    assert answer.status == 1
    assert (failure["code"], failure["kind"], failure["cause"]) == ("run_failed", "operational", cause)
    assert failure["message"].endswith(".")
    assert failure["checkpoints"]["committed"] == []
    assert headwater.left_behind() == []
    assert headwater.cursors() == {"alpha": {"at": "before"}}
    run = headwater.type("runs", "show").result
    assert (run["status"], run["cause"], run["message"]) == ("failed", cause, failure["message"])
    return failure


@pytest.mark.clause("CP-101", "CP-102", "CP-213")
@pytest.mark.parametrize("line", ["hello", "[1]", '"x"', "3", "null", "true", '{"stream":"alpha"}', '{"type":5}'])
def test_a_line_that_is_no_message_ends_the_run(headwater, line):
    """Junk on stdout, whatever JSON it may be, is a violation, and the STATE before it is not kept."""
    cause = "not_json" if line == "hello" else "not_a_message"
    ends_in(headwater, cause, "says.sh", line)
    assert headwater.keys() == {"a0", "a1"}


@pytest.mark.clause("CP-150", "CP-151", "CP-152", "CP-207")
@pytest.mark.parametrize(
    "members",
    [
        '"status":"ok","records_emitted":1',
        '"records_emitted":1',
        '"status":"succeeded"',
        '"status":"succeeded","records_emitted":-1',
        '"status":"succeeded","records_emitted":1.5',
        '"status":"succeeded","records_emitted":"1"',
        '"status":"failed","records_emitted":1,"error":{"message":"x"}',
        '"status":"failed","records_emitted":1,"error":{"retryable":true}',
    ],
)
def test_a_done_that_is_no_done_ends_the_run(headwater, members):
    """A DONE of the wrong shape is a violation, and no end."""
    cause = "done_count" if "-1" in members or "1.5" in members else "invalid_message"
    ends_in(headwater, cause, "says.sh", f'{{"type":"DONE",{members}}}')


@pytest.mark.parametrize(
    ("cause", "line"),
    [
        ("not_json", '{"type":"PROGRESS","message":"x","count":NaN}'),
        (
            "not_json",
            '{"type":"RECORD","stream":"alpha","key":"n","data":{"n":NaN},"emitted_at":"2026-04-01T10:00:00Z"}',
        ),
        ("unknown_type", '{"type":"NOVEL"}'),
        ("invalid_message", '{"type":"STATE","stream":"alpha"}'),
        ("state_stream", '{"type":"STATE","stream":"nonsuch","cursor":{}}'),
        ("state_cursor", '{"type":"STATE","stream":"alpha","cursor":[]}'),
        ("repeated_member", '{"type":"STATE","stream":"alpha","cursor":{"a":1,"a":2}}'),
    ],
)
def test_a_message_that_breaks_a_rule_ends_the_run(headwater, cause, line):
    """Each broken rule has a name of its own, and what came before it is kept."""
    ends_in(headwater, cause, "says.sh", line)
    assert headwater.keys() == {"a0", "a1"}


@pytest.mark.clause("CP-105", "CP-207", "CP-209", "CP-210", "CP-220")
@pytest.mark.parametrize(
    ("cause", "guest", "words"),
    [
        ("no_done", "dies.sh", ()),
        ("no_done", "leaves_early.sh", ()),
        ("no_done", "nothing.sh", ()),
        ("truncated", "half_a_line.sh", ()),
        ("exit_disagrees", "wrong_exit.sh", ("succeeded", "2")),
        ("exit_disagrees", "wrong_exit.sh", ("failed", "0")),
        ("connector_failed", "wrong_exit.sh", ("failed", "1")),
        ("wrong_count", "wrong_count.sh", ("2",)),
        ("wrong_count", "wrong_count.sh", ("0",)),
        ("connector_failed", "floods_stderr.py", ()),
        ("not_utf8", "invalid_utf8.py", ()),
    ],
)
def test_a_false_ending_commits_nothing(headwater, cause, guest, words):
    """Whatever an ending lacks, the records before it stay and the cursor does not move."""
    ends_in(headwater, cause, guest, *words)
    assert headwater.keys() == ({"a0"} if guest == "nothing.sh" else {"a0", "a1"})


@pytest.mark.clause("CP-153", "CP-213")
@pytest.mark.parametrize("line", [RECORD % "alpha", DONE])
def test_nothing_follows_done(headwater, line):
    """A line after DONE is a violation, even a second DONE."""
    ends_in(headwater, "after_done", "speaks_after_done.sh", line)
    assert headwater.keys() == {"a0", "a1"}


def test_silence_ends_the_run(headwater):
    """A connector that says nothing for too long is ended, and its records are kept."""
    failure = ends_in(headwater, "idle", "silent.sh", options=("--idle-timeout", "0.5"))
    assert failure["message"] == "The connector was silent for 0.5 seconds."
    assert headwater.keys() == {"a0", "a1"}


def test_a_run_has_an_end_even_where_the_connector_has_none(headwater):
    """The time for the whole run is a limit of its own."""
    ends_in(headwater, "run_time", "silent.sh", options=("--time-limit", "0.5"))


def test_a_line_without_end_ends_the_run(headwater):
    """A line of 64 MB is refused before it is held."""
    ends_in(headwater, "line_too_long", "long_line.py")
    assert headwater.keys() == {"a0", "a1"}


@pytest.mark.clause("CP-212")
def test_sigterm_may_be_ignored_but_sigkill_may_not(headwater):
    """A connector that does not leave when it is asked to is gone a few seconds later."""
    ends_in(headwater, "not_json", "ignores_sigterm.sh")


@pytest.mark.parametrize("guest", ["stays_after_done.sh", "closes_stdout.sh"])
def test_a_connector_that_stays_is_ended(headwater, guest):
    """DONE is no end while its process lives, and a closed stdout is none either."""
    ends_in(headwater, "did_not_exit", guest)


@pytest.mark.clause("CP-702")
def test_a_second_question_ends_the_run(headwater):
    """Two questions at once have no answer."""
    ends_in(headwater, "spoke_while_waiting", "asks_twice.py")


def test_a_start_that_nobody_reads_holds_nothing_up(headwater):
    """A START larger than a pipe waits for its reader, and the run's own limits go on counting."""
    assert headwater.collect("good.sh", words=["x" * 100_000]).status == 0
    failure = headwater.collect("never_reads.sh", "--idle-timeout", "0.5").failure
    assert failure["cause"] == "idle"
    assert headwater.left_behind() == []


@pytest.mark.clause("CP-219")
def test_a_connector_may_speak_before_it_reads_start(headwater):
    """Two full pipes do not wait for one another."""
    assert headwater.collect("good.sh", words=["x" * 100_000]).status == 0
    result = headwater.collect("speaks_early.py", "--idle-timeout", "8").result
    assert [row["accepted"] for row in result["streams"]] == [50_000, 0]


def test_a_grandchild_with_an_open_stdout_does_not_hold_the_run(headwater):
    """The end of the connector is the end of its output, and nobody of its group stays."""
    assert headwater.collect("leaves_a_grandchild.sh").result["status"] == "succeeded"
    assert headwater.left_behind() == []
    assert headwater.cursors() == {"alpha": {"at": 1}}


def test_a_flood_on_stderr_keeps_its_end_only(headwater):
    """100 MB of noise block nobody, and the run keeps the last 16 KiB."""
    assert headwater.collect("floods_stderr.py").failure["cause"] == "connector_failed"
    tail = headwater.type("runs", "show").result["stderr_tail"]
    assert len(tail) == 16 * 1024
    assert tail.endswith("noise\nthe very end\n")


@pytest.mark.clause("CP-320")
def test_a_record_out_of_scope_leaves_only_a_receipt_without_its_bytes(headwater):
    """What was not asked for is kept nowhere, and costs the run nothing."""
    result = headwater.collect("out_of_scope.sh", "--stream", "alpha").result
    assert result["checkpoints"]["committed"] == ["alpha"]
    assert headwater.keys() == {"a1"}
    assert headwater.type("records", "list", "guest/adhoc", "beta").failure["code"] == "not_found"
    (receipt,) = headwater.type("rejections", "list").result["items"]
    assert (receipt["stream"], receipt["reason"], receipt["key"], receipt["bytes"]) == (
        "beta",
        "out_of_scope",
        None,
        None,
    )
    assert b"unasked" not in b"".join(path.read_bytes() for path in headwater.state.rglob("*") if path.is_file())


@pytest.mark.clause("CP-121")
def test_poison_is_kept_aside_with_its_bytes(headwater):
    """A refused record costs the run nothing, and its bytes can be looked at."""
    result = headwater.collect("poison.sh").result
    assert [row["rejected"] for row in result["streams"]] == [3, 0]
    assert result["checkpoints"]["committed"] == ["alpha"]
    assert headwater.keys() == {"a1", "a6"}
    receipts = headwater.type("rejections", "list").result["items"][::-1]
    assert [row["reason"] for row in receipts] == ["schema", "key_identity", "repeated_member"]
    shown = headwater.type("rejections", "show", str(receipts[2]["receipt"])).result
    line = base64.b64decode(shown["line_base64"]).decode()
    assert '"data":{"id":"a4","id":"a5"}' in line
    assert line.startswith('{"type":"RECORD"')


@pytest.mark.clause("CP-104")
def test_odd_values_come_back_byte_by_byte(headwater):
    """Bytes in, the same bytes out: 30 digits, NUL, separators, spaces, 20 MB; half a surrogate is refused whole."""
    result = headwater.collect("odd_values.py").result
    assert [row["rejected"] for row in result["streams"]] == [1, 0]
    expected = {
        "digits": '{"id":"digits","n":123456789012345678901234567890,"f":0.1000000000000000055511151231257827}',
        "nul": '{"id":"nul","text":"a\\u0000b"}',
        "separators": '{"id":"separators","text":"\u2028\u2029\u0085"}',
        "escapes": '{"id":"escapes", "text" : "\\u00e9\\/\\ud83d\\ude00" }',
        "large": '{"id":"large","text":"' + "x" * 20_000_000 + '"}',
    }
    for key, data in expected.items():
        answer = headwater.type("records", "get", "guest/adhoc", "alpha", key)
        assert answer.status == 0
        assert f'"data":{data}' in answer.stdout, key
    (receipt,) = headwater.type("rejections", "list").result["items"]
    assert receipt["reason"] == "lone_surrogate"
    shown = headwater.type("rejections", "show", str(receipt["receipt"])).result
    assert json.loads(base64.b64decode(shown["line_base64"]))["data"]["text"] == "\ud800"
