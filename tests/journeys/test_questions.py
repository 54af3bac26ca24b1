"""A connector's questions: answered from a file or at the terminal, declined, left to time out, and forgotten."""

import fcntl
import hashlib
import json
import os
import pty
import re
import signal
import subprocess
import termios
from pathlib import Path

import pytest

SENTINEL = "correct-horse-battery-5e471"


def told(headwater):
    """Return what the connector says it was told."""
    return headwater.type("records", "get", "guest/adhoc", "alpha", "answer").result["data"]


def answers(headwater, kind="credentials"):
    """Write an answer file."""
    path = headwater.place / "answers.json"
    path.write_text(json.dumps({"answers": [{"kind": kind, "data": {"username": "me", "password": SENTINEL}}]}))
    return str(path)


@pytest.fixture
def terminal(headwater):
    """Start collections at a terminal of their own; return each process and the terminal's other end."""
    master, slave = pty.openpty()
    started = []

    def start(guest, *options, words=()):
        process = subprocess.Popen(
            headwater.guest(guest, *options, words=words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one thread
        )
        started.append(process)
        return process, master

    yield start
    for process in started:
        process.kill()
        process.communicate()
    os.close(master)
    os.close(slave)


def shown(master, text):
    """Read from a terminal until it shows a text; return all that it showed."""
    seen = b""
    while text not in seen:
        seen += os.read(master, 4096)
    return seen.decode()


@pytest.mark.clause("CP-704", "CP-705")
def test_an_answer_from_a_file_reaches_the_connector(headwater):
    """The answer has the question's id, and the run goes on to its end."""
    result = headwater.collect("asks.py", "--answer-file", answers(headwater), words=["", "succeeded"]).result
    assert result["checkpoints"]["committed"] == ["alpha"]
    data = told(headwater)
    assert (data["status"], data["request_id"]) == ("success", "req_7")
    assert data["members"] == ["data", "request_id", "status", "type"]
    assert data["digest"] == hashlib.sha256(SENTINEL.encode()).hexdigest()


@pytest.mark.clause("CP-711")
@pytest.mark.parametrize("ending", ["succeeded", "failed"])
@pytest.mark.parametrize("mode", ["human", "json"])
def test_an_answer_is_kept_nowhere(headwater, ending, mode):
    """A connector that repeats a password wherever a text may stand finds it removed: on disk and in every output."""
    given = answers(headwater)
    typist = type(headwater)(headwater.place, mode)
    outputs = [typist.collect("asks.py", "--answer-file", given, words=["", ending])]
    assert outputs[0].status == (ending == "failed")
    outputs += [typist.type("runs", "explain"), headwater.type("runs", "show"), headwater.type("runs", "list")]
    outputs.append(headwater.type("gaps", "explain", "1"))
    assert outputs[-1].result["locator"] == {"login": "[removed]"}
    os.unlink(given)
    for answer in outputs:
        assert SENTINEL not in answer.stdout + answer.stderr
    files = [path for path in headwater.place.rglob("*") if path.is_file()]
    assert files
    assert [path.name for path in files if SENTINEL.encode() in path.read_bytes()] == []
    assert "[removed]" in outputs[2].stdout


@pytest.mark.clause("CP-408")
def test_a_cursor_with_a_password_ends_the_run_and_is_kept_nowhere(headwater):
    """It would go to every later run: no cursor moves, the records stay, and the password is on no disk."""
    given = answers(headwater)
    failed = headwater.collect("asks.py", "--answer-file", given, words=["", "cursor"])
    assert failed.failure["cause"] == "answer_in_cursor"
    assert (headwater.cursors(), headwater.keys()) == ({}, {"answer"})
    os.unlink(given)
    files = [path for path in headwater.place.rglob("*") if path.is_file()]
    assert [path.name for path in files if SENTINEL.encode() in path.read_bytes()] == []


@pytest.mark.clause("CP-705", "CP-713")
@pytest.mark.parametrize("kind", [None, "otp"])
def test_without_an_answer_the_question_is_declined(headwater, kind):
    """Nobody to ask, or an answer of another kind: the connector hears it at once and goes on."""
    options = [] if kind is None else ["--answer-file", answers(headwater, kind)]
    assert headwater.collect("asks.py", *options, words=["", "succeeded"]).result["status"] == "succeeded"
    data = told(headwater)
    assert (data["status"], data["members"]) == ("cancelled", ["request_id", "status", "type"])


@pytest.mark.clause("CP-705", "CP-706")
def test_a_question_that_nobody_answers_times_out(headwater, terminal):
    """The connector hears `timeout` after its own `timeout_seconds`, and lives."""
    process, _ = terminal("asks.py", words=["1", "succeeded"])
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert json.loads(stdout)["result"]["status"] == "succeeded"
    data = told(headwater)
    assert (data["status"], data["members"]) == ("timeout", ["request_id", "status", "type"])


@pytest.mark.clause("CP-704")
def test_a_person_at_the_terminal_answers_unseen(headwater, terminal):
    """A password that is typed is not shown, and reaches the connector."""
    process, master = terminal("asks.py", words=["", "succeeded"])
    seen = shown(master, b"username: ")
    os.write(master, b"me\n")
    seen += shown(master, b"password: ")
    os.write(master, f"{SENTINEL}\n".encode())
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert SENTINEL not in seen + stdout.decode() + stderr.decode()
    assert told(headwater)["digest"] == hashlib.sha256(SENTINEL.encode()).hexdigest()


@pytest.mark.clause("CP-712", "CLI-008", "CLI-023")
def test_an_interrupt_ends_an_open_question(headwater, terminal):
    """Ctrl-C at the prompt cancels the run, and the terminal shows what is typed again."""
    process, master = terminal("asks.py", words=["", "succeeded"])
    shown(master, b"username: ")
    os.write(master, b"me\n")
    shown(master, b"password: ")
    assert not termios.tcgetattr(master)[3] & termios.ECHO
    os.write(master, b"\x03")
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(stderr)["error"]["data"]["code"] == "interrupted"
    assert termios.tcgetattr(master)[3] & termios.ECHO
    assert headwater.type("runs", "show").result["status"] == "cancelled"
    assert headwater.left_behind() == []


@pytest.mark.clause("CP-217", "CLI-008", "CLI-024")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_cancels_the_run(headwater, number):
    """The connector is gone, the run is cancelled, and no cursor moved."""
    assert headwater.collect("good.sh").status == 0
    pipe = headwater.place / "pipe"
    os.mkfifo(pipe)
    words = headwater.guest("waits.sh", words=[str(pipe)])
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    assert pipe.read_text() == "ready\n"
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    failure = json.loads(stderr)["error"]["data"]
    assert (process.returncode, stdout) == (130, b"")
    assert (failure["code"], failure["kind"], failure["status"]) == ("interrupted", "interrupted", "cancelled")
    assert headwater.keys(), "what was published before stays, and nothing says that it went"
    assert not re.search("roll|undo|revert", f"{failure['message']} {failure.get('safe', '')}")
    assert headwater.left_behind() == []
    assert headwater.cursors() == {"alpha": {"at": "before"}}
    run = headwater.type("runs", "show").result
    assert (run["status"], run["cause"]) == ("cancelled", "cancelled")


def test_one_instance_is_collected_once_at_a_time(headwater):
    """A second collection of the same instance is refused at once, and the first is unharmed."""
    pipe = headwater.place / "pipe"
    os.mkfifo(pipe)
    words = headwater.guest("waits.sh", words=[str(pipe)])
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    assert pipe.read_text() == "ready\n"
    second = headwater.collect("good.sh")
    assert (second.status, second.failure["code"], second.failure["next_action"]) == (1, "run_active", "retry_status")
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert headwater.collect("good.sh").status == 0


@pytest.mark.clause("CP-711")
def test_a_process_that_may_hold_an_answer_leaves_no_core_file(headwater):
    """The limit for core files is zero while a collection runs."""
    pipe = headwater.place / "pipe"
    os.mkfifo(pipe)
    process = subprocess.Popen(headwater.guest("waits.sh", words=[str(pipe)]), stderr=subprocess.PIPE)
    assert pipe.read_text() == "ready\n"
    limits = Path(f"/proc/{process.pid}/limits").read_text().splitlines()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    (core,) = [line.split() for line in limits if line.startswith("Max core file size")]
    assert core[4:6] == ["0", "0"]


@pytest.mark.clause("CP-207", "CP-702")
@pytest.mark.parametrize(
    ("cause", "word"),
    [("spoke_while_waiting", "speaks"), ("line_too_long", "floods"), ("left_while_waiting", "leaves")],
)
def test_a_connector_that_does_not_wait_for_its_answer_is_ended(headwater, terminal, cause, word):
    """Whatever it does while the question is open, the run ends with a reason and nothing is committed."""
    process, _ = terminal("breaks_off.py", words=[word])
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 1
    assert json.loads(stderr)["error"]["data"]["cause"] == cause
    assert headwater.keys() == {"a1"}
    assert headwater.cursors() == {}
    assert headwater.left_behind() == []
