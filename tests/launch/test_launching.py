"""A consumer gets the credential on descriptor 3, and nothing else of ours; what refuses it starts nothing."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from launch.conftest import DASH, TOKEN

from headwater.link.owner import is_held

SEALED = """
import errno, fcntl, os
def refused(work):
    try: work()
    except OSError as error: return error.errno == errno.EPERM
told = [fcntl.fcntl(3, fcntl.F_GET_SEALS)]
told += [refused(lambda: os.pwrite(3, b"x", 0)), refused(lambda: os.pwrite(3, b"x", 1 << 20))]
told += [refused(lambda: os.ftruncate(3, 1 << 20)), refused(lambda: os.ftruncate(3, 1))]
print(*told, refused(lambda: fcntl.fcntl(3, fcntl.F_ADD_SEALS, 0x10)), fcntl.fcntl(3, fcntl.F_GETFD))
"""


def described(told):
    return (told["code"], told["stage"], told["next_action"])


@pytest.mark.clause("CLI-850", "CLI-855", "CLI-858")
def test_it_reads_the_document_and_its_status_is_the_commands(headwater, shop):
    headwater.consumer("cat <&3; exit 7")
    asked = shop.asked.total()
    assert headwater.launch("--args", "{}").status == 2
    assert not is_held(headwater.owner)
    told = headwater.launch()
    assert (told.status, json.loads(told.stdout), told.stderr) == (7, {"token": TOKEN}, "")
    assert is_held(headwater.owner)
    assert shop.asked.total() == asked


@pytest.mark.clause("CLI-850")
def test_its_streams_are_the_callers(running):
    running.consumer("cat; echo said >&2")
    told = running.launch(stdin="typed")
    assert (told.status, told.stdout, told.stderr) == (0, "typed", "said\n")


@pytest.mark.clause("CLI-850")
def test_a_stream_that_the_caller_closed_is_closed(running):
    """And nothing else takes its place."""
    running.consumer("cat <&3 || exit 9")
    words = running.words("connections", "launch", "shop/me", "--consumer", "reader")
    told = subprocess.run(
        [DASH, "-c", 'exec "$@" >&- <&-', "sh", *words], stderr=subprocess.PIPE, text=True, timeout=60
    )
    assert (told.returncode, told.stderr.count("\n")) == (9, 1)


@pytest.mark.clause("CLI-853")
def test_it_gets_its_pinned_arguments_then_the_callers_as_they_are(running):
    running.consumer('printf "%s|" "$0" "$@"')
    texts = ["-x", "a b", "", "é\n", "--args", "$HOME"]
    assert running.launch("--args", json.dumps(texts)).stdout == "".join(f"{one}|" for one in texts)
    assert running.launch().stdout == "/proc/self/fd/4|"


@pytest.mark.clause("CLI-853")
@pytest.mark.parametrize(
    "typed",
    [
        "{}",
        "",
        "[1]",
        '"-x"',
        "[null]",
        '["\\u0000"]',
        '["\\ud800"]',
        json.dumps(["x"] * 257),
        json.dumps(["x" * 4097]),
    ],
)
def test_arguments_that_do_not_fit_are_refused(running, typed):
    running.consumer("echo ran")
    told = running.launch("--args", typed)
    error = json.loads(told.stderr)["error"]
    assert (told.status, told.stdout, error) == (2, "", {"code": "cli_input", "data": {}})


@pytest.mark.clause("CLI-853")
def test_it_gets_those_variables_that_are_let_through(running):
    running.consumer("env")
    variables = {"LENT_X": "1", "LENT_": "2", "lent_y": "3", "XLENT_Z": "4", "LENT_BYTES": "\udcff"}
    with running.launching(env={**os.environ, **variables}) as process:
        process.stdout.reconfigure(errors="surrogateescape")
        got = set(process.communicate(timeout=60)[0].split())
    assert got - {f"PWD={Path.cwd()}"} == {"LENT_X=1", "LENT_=2", "LENT_BYTES=\udcff"}


@pytest.mark.clause("CLI-855")
def test_what_it_reads_can_be_changed_by_nobody(running):
    running.consumer(f"exec {sys.executable} -c '{SEALED}'")
    assert running.launch().stdout.split() == ["15", *["True"] * 5, "0"]


def test_only_four_descriptors_are_open_in_it(running):
    """Neither what the caller left open, nor what was needed to start it."""
    running.consumer("ls /proc/$$/fd")
    read, write = os.pipe()
    with running.launching(pass_fds=(read, write)) as process:
        assert process.communicate(timeout=60)[0].split() == ["0", "1", "2", "3"]
    os.close(read)
    os.close(write)


def test_it_may_close_the_document_unread(running):
    running.consumer("exec 3<&-; exit 3")
    assert running.launch().status == 3


def test_it_runs_the_copy_that_was_verified(running):
    """And not the file, which may be another one by now."""
    running.consumer("readlink /proc/$$/exe")
    assert running.launch().stdout == "/memfd:program (deleted)\n"


@pytest.mark.clause("CLI-857")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGPIPE, signal.SIGINT])
def test_a_signal_that_ends_it_is_told(running, number):
    """Also those that this program handles or ignores: it has them as it would without us."""
    running.consumer(f"kill -{number.value} $$; exit 1")
    told = running.launch()
    assert (told.status, told.stdout, told.stderr) == (128 + number, "", "")


@pytest.mark.clause("CLI-857")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT])
def test_the_keyboard_is_its(running, number):
    """An interrupt reaches both: it decides what becomes of that, and the command waits."""
    running.consumer("trap 'echo heard; exit 5' INT QUIT; echo ready; read line; echo $line; read line")
    with running.launching() as process:
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, number)
        process.stdin.write("waits\n")
        process.stdin.flush()
        assert process.stdout.readline() == "waits\n"
        os.killpg(process.pid, number)
        assert process.communicate(timeout=60) == ("heard\n", "")
        assert process.returncode == 5


@pytest.mark.clause("CLI-857")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_is_told_to_end_when_the_command_dies(running, number):
    running.consumer("trap 'echo told; exit' TERM; echo ready; read line; echo $line")
    with running.launching() as process:
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, number)
        process.wait(60)
        assert process.communicate(timeout=60)[0] == "told\n"


def test_the_credential_is_nowhere_else(headwater):
    """Not in the command lines and environments of the two processes, nor in a file."""
    headwater.consumer("echo $PPID; read line")
    with headwater.launching() as process:
        launcher = int(process.stdout.readline())
        shown = [Path(f"/proc/{launcher}/{name}").read_bytes() for name in ("cmdline", "environ")]
        process.communicate("\n", timeout=60)
    files = [path for path in headwater.place.rglob("*") if path.is_file() and path.name != "entry.json"]
    assert not any(TOKEN.encode() in content for content in (*shown, *(path.read_bytes() for path in files)))


@pytest.mark.parametrize("text", [f"#!{DASH}\necho ran\n", "echo ran"])
def test_what_cannot_be_run_is_refused(running, text):
    """A script is not what runs: its interpreter is, from a file that nothing pins."""
    running.consumer("x", program=running.write("program", text))
    told = running.launch()
    assert (told.status, described(told.failure)) == (2, ("invalid_configuration", "launch", "check_configuration"))


def test_what_is_too_large_to_start_it_with_is_refused(running):
    """Each of them fits; together they are more than the system takes."""
    running.consumer("echo ran", further=["x" * 4000] * 200)
    environment = {**os.environ, **{f"LENT_{n}": "y" * 100_000 for n in range(13)}}
    with running.launching("--args", json.dumps(["x" * 4000] * 30), env=environment) as process:
        out, err = process.communicate(timeout=60)
    told = json.loads(err)["error"]["data"]
    assert (process.returncode, out, described(told)) == (1, "", ("capacity", "admission", "retry_explicitly"))


@pytest.mark.clause("CLI-852")
def test_a_person_is_told_what_helps(running):
    running.consumer("echo ran", alias="shop.other")
    words = running.words("connections", "launch", "shop/me", "--consumer", "reader")
    told = subprocess.run([word if word != "json" else "human" for word in words], capture_output=True, text=True)
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr.splitlines()[0].endswith("does not permit this consumer the credential of this instance.")
