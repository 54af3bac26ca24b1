"""A connector's process, read without a buffer of ours: what the host does not take waits in the pipe."""

import asyncio
import contextlib
import fcntl
import functools
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from headwater import clock, limits
from headwater.collect.ports import Lines
from headwater.collect.verdict import Exit
from headwater.errors import is_exhausted, refuse
from headwater.wire.framing import Framer

_PIPE_BYTES = 1 << 20
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ of Linux; Python 3.11's fcntl has no name for it on every build

_BY_A_SIGNAL = 128
_UNSEEN = 255  # an end that nobody saw is no success
_GROUP = re.compile(rb'"child-pid": *([0-9]+)')


class Child:
    """One child process and its three pipes."""

    def __init__(self, process: "subprocess.Popen[bytes]", told: IO[bytes] | None = None) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process, self._told = process, told
        if told is not None:
            os.set_blocking(told.fileno(), False)
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)
        self._framer = Framer()
        self._tail = bytearray()
        self._exited = asyncio.Event()
        self._asked = False
        self._ended: os.waitid_result | None = None
        self._told_pid: int | None = None
        self._watch: asyncio.Task[None] | None = None
        self._drain: asyncio.Task[None] | None = None

    @classmethod
    async def spawn(
        cls,
        command: Sequence[str],
        *,
        folder: Path | None,
        environment: Mapping[str, str],
        descriptors: Sequence[int] = (),
        told: IO[bytes] | None = None,
    ) -> "Child":
        """Start a program in a process group of its own, or raise `connector_unavailable`.

        It inherits `descriptors`. With `told` it is bubblewrap, which tells there the group of the program that it
        starts, and then exits as that does, with 128 and its number for a signal.
        """
        program = find_program(command[0], folder, environment)
        try:
            process = subprocess.Popen(
                [*_dying_with_parent(), program, *command[1:]],
                pass_fds=descriptors,
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            exhausted = isinstance(error, OSError) and is_exhausted(error)
            code = "machine_exhausted" if exhausted else "connector_unavailable"
            raise refuse(code, safe="Nothing was changed.") from error
        child = cls(process, told)
        with contextlib.suppress(OSError):
            fcntl.fcntl(child._stdout.fileno(), _SET_PIPE_SIZE, _PIPE_BYTES)
        child._watch = asyncio.create_task(child._await_exit())
        child._drain = asyncio.create_task(child._drain_stderr())
        return child

    def kill(self) -> None:
        """Kill the process group at once, as a crash would."""
        self._signal(signal.SIGKILL)

    def narrow(self, pipe_bytes: int) -> None:
        """Give its stdout a pipe that holds so little, where the system can. Call it before START is sent."""
        with contextlib.suppress(OSError):
            fcntl.fcntl(self._stdout.fileno(), _SET_PIPE_SIZE, pipe_bytes)

    async def read(self, timeout_seconds: float) -> Lines:
        """Return the next lines. See `Guest.read`."""
        descriptor, deadline = self._stdout.fileno(), clock.monotonic() + timeout_seconds
        while True:
            await asyncio.sleep(0)  # a child that never pauses leaves the others their turn
            try:
                chunk = os.read(descriptor, limits.READ_BYTES)
            except BlockingIOError:
                if self._exited.is_set():
                    return Lines(ended=True, truncated=self._framer.unfinished)
                if not await self._readable(descriptor, deadline - clock.monotonic()):
                    return Lines()
                continue
            if not chunk:
                return Lines(ended=True, truncated=self._framer.unfinished)
            if lines := self._framer.feed(chunk):
                return Lines(lines)
            if clock.monotonic() > deadline:
                return Lines()

    async def _readable(self, descriptor: int, timeout_seconds: float) -> bool:
        """Wait until there is something to read or the process is gone; False when the time passed."""
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(descriptor, ready.set)
        waits = [asyncio.ensure_future(ready.wait()), asyncio.ensure_future(self._exited.wait())]
        try:
            done, _ = await asyncio.wait(waits, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
            return bool(done)
        finally:
            loop.remove_reader(descriptor)
            for wait in waits:
                wait.cancel()

    async def send(self, line: bytes) -> None:
        """Write to stdin. See `Guest.send`."""
        loop = asyncio.get_running_loop()
        rest = memoryview(line)
        while rest and not self._stdin.closed:
            try:
                rest = rest[os.write(self._stdin.fileno(), rest) :]
            except BlockingIOError:
                await self._writable(loop)
            except OSError:
                return

    async def _writable(self, loop: asyncio.AbstractEventLoop) -> None:
        ready = asyncio.Event()
        loop.add_writer(self._stdin.fileno(), ready.set)
        try:
            async with asyncio.timeout(limits.STOP_SECONDS):
                await ready.wait()
        except TimeoutError:
            if self._exited.is_set():
                await self.close_input()
        finally:
            if not self._stdin.closed:
                loop.remove_writer(self._stdin.fileno())

    async def close_input(self) -> None:
        """End stdin. See `Guest.close_input`."""
        if not self._stdin.closed:
            asyncio.get_running_loop().remove_writer(self._stdin.fileno())
        with contextlib.suppress(OSError):
            self._stdin.close()

    async def wait(self, timeout_seconds: float) -> Exit | None:
        """Wait for the exit. See `Guest.wait`."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._exited.wait()
        except TimeoutError:
            return None
        return self._exit

    async def stop(self) -> Exit:
        """End the process group. See `Guest.stop`."""
        await self.close_input()
        if not self._exited.is_set():
            if not self._asked:  # a second SIGTERM would break off what the first one began
                self._asked = True
                self._ask_to_leave()
            if await self.wait(limits.STOP_SECONDS) is None:
                self._signal(signal.SIGKILL)
                await self._exited.wait()
        self._signal(signal.SIGKILL)  # whatever the child left behind in its group
        self._process.wait()
        for task in (self._watch, self._drain):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        for pipe in (self._stdout, self._stderr, self._told):
            if pipe is not None:
                pipe.close()
        return self._exit

    @property
    def stderr_tail(self) -> str:
        """The end of stderr. See `Guest.stderr_tail`."""
        return self._tail.decode("utf-8", "replace")

    @property
    def _exit(self) -> Exit:
        if self._ended is None:
            return Exit(_UNSEEN)
        number = self._ended.si_status
        if self._ended.si_code != os.CLD_EXITED:
            return Exit(signal=number)
        if self._told is not None and number - _BY_A_SIGNAL in signal.valid_signals():
            return Exit(signal=number - _BY_A_SIGNAL)
        return Exit(number)

    def _ask_to_leave(self) -> None:
        """Send SIGTERM to the program's group: bubblewrap's own would go at once, and take the program along."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._inner or self._process.pid, signal.SIGTERM)

    def _signal(self, number: int) -> None:
        """Signal the group; a kill is also the program's whose bubblewrap has not tied its life to its own yet.

        Once the process is reaped, its number may be another one's: then nothing is signalled.
        """
        if self._process.returncode is not None:
            return
        inner = self._inner if number == signal.SIGKILL and not self._exited.is_set() else None
        for send, process in ((os.kill, inner), (os.killpg, self._process.pid)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if process is not None:
                    send(process, number)

    @property
    def _inner(self) -> int | None:
        """The process that bubblewrap started, once it told: its number stays while bubblewrap, its parent, lives."""
        if self._told is not None and self._told_pid is None and not self._told.closed:
            told = _GROUP.search(self._told.read() or b"")
            self._told_pid = int(told[1]) if told else None
        return self._told_pid

    async def _await_exit(self) -> None:
        """See the exit and leave the process unreaped: until `stop` its number, and its group's, is nobody else's."""
        try:
            await self._gone()
            self._ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            pass  # whoever started this program has its children reaped by the system: they end, and nobody learns how
        finally:
            self._exited.set()

    async def _gone(self) -> None:
        """Wait for the end, by a thread where no descriptor of the process is to be had."""
        try:
            descriptor = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):
            look = functools.partial(os.waitid, os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
            await asyncio.to_thread(look)
            return
        try:
            await _ready(descriptor)
        finally:
            os.close(descriptor)

    async def _drain_stderr(self) -> None:
        """Read stderr for ever, so that a flood never blocks the child, and keep its end."""
        while True:
            await _ready(self._stderr.fileno())
            try:
                chunk = os.read(self._stderr.fileno(), limits.READ_BYTES)
            except BlockingIOError:
                continue
            if not chunk:
                return
            self._tail += chunk
            del self._tail[: -limits.STDERR_TAIL_BYTES]


async def _ready(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)


def find_program(name: str, folder: Path | None, environment: Mapping[str, str]) -> str:
    """Return the program that a command's first word names; a relative path is one of the connector's folder."""
    if "/" in name and folder is not None:
        name = str(folder / name)
    found = shutil.which(name, path=environment.get("PATH", os.defpath))
    if found is None:
        message = "The connector's program was not found, or may not be run."
        raise refuse("connector_unavailable", message, safe="Nothing was changed.")
    return found


def _dying_with_parent() -> list[str]:
    """Return the words that make a program die with this process, where the system has them."""
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
