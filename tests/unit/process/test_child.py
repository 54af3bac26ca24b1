"""A child's life, with real processes."""

import asyncio
import contextlib
import errno
import os
import select
import signal
import sys

import pytest

from headwater import limits
from headwater.collect.verdict import Exit
from headwater.errors import HeadwaterError
from headwater.process.child import Child
from headwater.process.environment import child_environment


def run(script: str, use, *, command=None):
    async def going():
        words = command or [sys.executable, "-c", script]
        child = await Child.spawn(words, folder=None, environment=child_environment({}))
        try:
            return await use(child)
        finally:
            await child.stop()

    return asyncio.run(going())


async def everything(child):
    lines = []
    while True:
        read = await child.read(20)
        lines += read.lines
        if read.ended:
            return lines, read.truncated


def is_gone(descriptor: int) -> bool:
    """Wait for the end of the process behind a pidfd; False where it lives on."""
    return bool(select.select([descriptor], [], [], 10)[0])


def test_lines_come_whole_and_a_cut_one_is_told():
    """What follows the last LF is no line."""
    lines, truncated = run("import sys; sys.stdout.write('a\\nb\\r\\n\\nhalf')", everything)
    assert (lines, truncated) == ([b"a", b"b", b""], True)


@pytest.mark.clause("CP-219")
def test_what_was_written_before_the_exit_is_read_after_it():
    """A burst into the pipe survives its writer."""
    lines, _ = run("import os; os.write(1, b'x' * 9 + b'\\n' + b'y\\n' * 20000)", everything)
    assert len(lines) == 20001


def test_a_flood_on_stderr_blocks_nobody_and_keeps_its_end():
    """The child can write as much as it likes; only the tail is kept."""

    async def use(child):
        lines, _ = await everything(child)
        return lines, child.stderr_tail

    script = "import sys; sys.stderr.write('noise' * 2_000_000 + 'the end'); print('done')"
    lines, tail = run(script, use)
    assert lines == [b"done"]
    assert tail.endswith("the end")
    assert len(tail) <= limits.STDERR_TAIL_BYTES


def test_a_child_that_is_leaving_is_not_asked_again():
    """A second stop waits with the first: another SIGTERM would break off what the child does to leave well."""
    script = (
        "import os, signal, sys, time\n"
        "def leave(*_):\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_DFL)\n"
        "    os.write(1, b'leaving\\n')\n"
        "    time.sleep(0.3)\n"
        "    sys.exit(7)\n"
        "signal.signal(signal.SIGTERM, leave)\n"
        "print('ready', flush=True)\n"
        "while True: signal.pause()\n"
    )

    async def use(child):
        assert (await child.read(20)).lines == [b"ready"]
        first = asyncio.create_task(child.stop())
        assert (await child.read(20)).lines == [b"leaving"]
        return await child.stop(), await first

    exits = run(script, use)
    assert [exit_.code for exit_ in exits] == [7, 7]


@pytest.mark.parametrize("lacking", [AttributeError(), OSError(errno.EMFILE, "Too many open files")])
def test_an_end_is_seen_where_no_descriptor_of_the_process_is_to_be_had(lacking, monkeypatch):
    """Some builds of Python have no pidfd, and a machine may be out of descriptors."""

    def none_to_be_had(pid):
        raise lacking

    monkeypatch.setattr(os, "pidfd_open", none_to_be_had)
    assert run("import sys; sys.exit(7)", lambda child: child.wait(20)) == Exit(7)
    assert run("import time; time.sleep(60)", lambda child: child.stop()) == Exit(signal=signal.SIGTERM)


def test_an_end_that_the_system_keeps_to_itself_is_no_success_and_blocks_nobody():
    """Whoever starts Headwater may have its children reaped by the system: nobody learns then how they ended."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert not run("", lambda child: child.wait(20)).is_success
        assert run("import time; time.sleep(60)", lambda child: child.stop())
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_stop_ends_the_whole_group():
    """A grandchild does not outlive the run."""
    script = "import subprocess, time; p = subprocess.Popen(['sleep', '60']); print(p.pid, flush=True); time.sleep(60)"

    async def use(child):
        descriptor = os.pidfd_open(int((await child.read(20)).lines[0]))
        exit_ = await child.stop()
        return descriptor, exit_

    descriptor, exit_ = run(script, use)
    assert is_gone(descriptor)
    assert exit_.signal == 15


SIGNALLED: list[tuple[int, bool]] = []


def note_signal(event, arguments):
    """Note each signal that this process sends, and whether it goes to a child that nothing else can be by now."""
    if event in ("os.kill", "os.killpg"):
        ours = False
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, arguments[0], os.WEXITED | os.WNOHANG | os.WNOWAIT)
            ours = True
        SIGNALLED.append((arguments[1], ours))


@pytest.fixture(scope="module")
def noted():
    """A hook cannot be taken off again, so that there is one for all tests."""
    sys.addaudithook(note_signal)


@pytest.mark.clause("CLI-811")
@pytest.mark.parametrize("script", ["import signal; signal.pause()", "pass"])
def test_no_signal_goes_to_a_number_that_may_be_another_process(script, noted):
    """Not while it runs, not behind its exit, and none at all once it was stopped."""

    async def use(child):
        SIGNALLED.clear()
        if script == "pass":
            await child.wait(20)
        await child.stop()
        sent = list(SIGNALLED)
        child.kill()
        await child.stop()
        return sent

    sent = run(script, use)
    assert [number for number, _ in sent][-1] == signal.SIGKILL
    assert all(ours for _, ours in sent)
    assert sent == SIGNALLED


def test_a_grandchild_that_holds_stdout_does_not_hold_the_run():
    """The end of the child is the end of its output."""
    script = "import subprocess; subprocess.Popen(['sleep', '30']); print('x')"
    lines, _ = run(script, everything)
    assert lines == [b"x"]


def test_time_passes_without_lines():
    """An empty answer says that the wait is over."""

    async def use(child):
        return await child.read(0.05)

    read = run("import time; time.sleep(30)", use)
    assert (list(read.lines), read.ended) == ([], False)


@pytest.mark.parametrize("command", [["/nonexistent/program"], ["no-such-program-anywhere"], ["/etc/passwd"]])
def test_a_program_that_cannot_start_is_a_refusal(command):
    """Nothing was started, and the code says so."""
    with pytest.raises(HeadwaterError) as raised:
        run("", everything, command=command)
    assert raised.value.code == "connector_unavailable"


def test_writing_to_a_child_that_is_gone_is_no_error():
    """Its exit says what happened; the broken pipe does not."""

    async def use(child):
        await child.wait(20)
        await child.send(b"x" * 5_000_000)
        return True

    assert run("", use)


def test_the_environment_is_an_allow_list(monkeypatch):
    """A token in the caller's environment does not reach a connector."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sentinel")
    monkeypatch.setenv("MY_OWN", "kept")
    environment = child_environment({"EXTRA": "1"}, ["MY_OWN"])
    assert "AWS_SECRET_ACCESS_KEY" not in environment
    assert (environment["EXTRA"], environment["MY_OWN"]) == ("1", "kept")
    assert environment.keys() <= {*os.environ, "EXTRA", "PYTHONDONTWRITEBYTECODE"}
