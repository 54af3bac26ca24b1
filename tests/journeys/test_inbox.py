"""A run without a terminal asks; somebody answers from another one, in time or too late."""

import hashlib
import json
import os
import subprocess

import pytest

SENTINEL = "correct-horse-battery-77c02"


@pytest.fixture
def start(headwater):
    """Start collections in the background; none is left behind."""
    started = []

    def starting(guest, *options, words=()):
        command = headwater.guest(guest, *options, words=words)
        environment = {"HOME": str(headwater.place), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, env=environment, start_new_session=True, **pipes))
        return started[-1]

    yield starting
    for process in started:
        process.kill()
        process.communicate()


def asked(headwater, process):
    """Wait until a question is open, and return it."""
    while not (items := headwater.type("inbox", "list").result["items"]):
        assert process.poll() is None, process.stderr.read()
    return items[0]


def answers(headwater):
    path = headwater.place / "answers.json"
    data = {"username": "me", "password": SENTINEL}
    path.write_text(json.dumps({"answers": [{"kind": "credentials", "data": data}]}))
    return str(path)


def told(headwater):
    return headwater.type("records", "get", "guest/adhoc", "alpha", "answer").result["data"]


@pytest.mark.clause("CP-704", "CP-711")
def test_a_question_is_answered_from_another_terminal_and_kept_nowhere(headwater, start):
    """It stands in the list with what it asks; the answer reaches the connector and nothing else."""
    process = start("asks.py", "--inbox", words=["", "succeeded"])
    question = asked(headwater, process)
    assert (question["instance"], question["kind"]) == ("guest/adhoc", "credentials")
    assert question["message"] == "Who are you?"
    assert 0 < question["seconds_left"] <= 300
    given = headwater.type("inbox", "answer", question["question"], "--answer-file", answers(headwater))
    assert given.result["status"] == "success"
    output = b"".join(process.communicate())
    assert (process.returncode, told(headwater)["status"]) == (0, "success")
    assert told(headwater)["digest"] == hashlib.sha256(SENTINEL.encode()).hexdigest()
    assert SENTINEL.encode() not in output
    assert SENTINEL not in given.stdout + given.stderr
    files = [path for path in headwater.state.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if SENTINEL.encode() in path.read_bytes()]
    assert headwater.type("inbox", "list").result["items"] == []


def test_a_question_is_declined_from_another_terminal(headwater, start):
    """The connector hears it as cancelled."""
    process = start("asks.py", "--inbox", words=["", "succeeded"])
    asked(headwater, process)
    assert headwater.type("inbox", "answer", "--decline").result["status"] == "cancelled"
    assert process.wait() == 0
    assert told(headwater)["status"] == "cancelled"


@pytest.mark.clause("CP-708")
def test_an_answer_that_comes_too_late_is_refused_and_changes_nothing(headwater, start):
    """The connector had its timeout answer, and gets no second one."""
    process = start("asks.py", "--inbox", words=["4", "succeeded"])
    question = asked(headwater, process)
    assert process.wait() == 0
    late = headwater.type("inbox", "answer", question["question"], "--answer-file", answers(headwater))
    assert late.failure["code"] == "not_found"
    assert told(headwater)["status"] == "timeout"


def test_an_answer_of_another_kind_leaves_the_question_open(headwater, start):
    """A wrong file is no refusal by the owner."""
    process = start("asks.py", "--inbox", words=["", "succeeded"])
    question = asked(headwater, process)
    wrong = headwater.place / "otp.json"
    wrong.write_text('{"answers":[{"kind":"otp","data":{"code":"123456"}}]}')
    assert headwater.type("inbox", "answer", "--answer-file", str(wrong)).failure["code"] == "invalid_input"
    assert asked(headwater, process)["question"] == question["question"]


def test_what_a_killed_run_left_is_no_question(headwater, start):
    """Its socket is cleared away by whoever looks next."""
    process = start("asks.py", "--inbox", words=["", "succeeded"])
    asked(headwater, process)
    process.kill()
    process.wait()
    assert list((headwater.state / "live").iterdir())
    assert headwater.type("inbox", "list").result["items"] == []
    assert list((headwater.state / "live").iterdir()) == []


def test_a_state_directory_may_lie_deeper_than_a_sockets_path_may_be_long(headwater):
    """A Unix socket's path has room for some hundred bytes."""
    deep = type(headwater)(headwater.place / ("d" * 90) / ("e" * 90))
    deep.place.mkdir(parents=True)
    assert deep.collect("good.sh").status == 0


@pytest.mark.clause("CP-216")
def test_a_run_is_cancelled_from_another_terminal(headwater, start):
    """However busy its connector is: it is gone, what it stored stays, no cursor moves, and nothing comes after."""
    pipe = headwater.place / "begun"
    os.mkfifo(pipe)
    process = start("endless.py", words=[str(pipe)])
    assert pipe.read_text() == "begun\n"
    run = headwater.type("runs", "list", "--status", "running").result["items"][0]["run_id"]
    assert headwater.type("runs", "cancel", run).result["status"] == "cancelling"
    process.communicate()
    assert process.returncode == 130
    assert headwater.type("runs", "show", run).result["status"] == "cancelled"
    assert headwater.cursors() == {}
    assert headwater.left_behind() == []
    assert headwater.type("runs", "cancel", run).failure["code"] == "not_found"
