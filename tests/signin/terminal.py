"""A real terminal: a program runs in a session of its own, with a pseudo-terminal that controls it."""

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ENTERS = Path(__file__).with_name("enters.py")


@dataclass
class Session:
    """A program at a terminal. `shown` is everything that the terminal showed."""

    process: subprocess.Popen[bytes]
    master: int
    slave: int
    shown: bytes = b""

    @property
    def modes(self) -> int:
        """The local modes of the terminal."""
        return termios.tcgetattr(self.slave)[3]

    def until(self, text: bytes) -> None:
        """Wait until the terminal shows something."""
        while text not in self.shown:
            ready, _, _ = select.select([self.master], [], [], 20)
            assert ready, f"the terminal shows {self.shown!r}"
            self.shown += os.read(self.master, 65536)

    def type(self, text: bytes) -> None:
        """Type, as a person does."""
        os.write(self.master, text)

    def rest(self) -> None:
        """Read what the terminal still shows."""
        while select.select([self.master], [], [], 0)[0]:
            self.shown += os.read(self.master, 65536)


@contextmanager
def terminal(words: Sequence[str]) -> Iterator[Session]:
    """Run a program with a terminal that controls it, and with pipes for its output."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - no threads here
        pass_fds=[slave],
    )
    try:
        yield Session(process, master, slave)
    finally:
        process.kill()
        process.communicate()
        os.close(master)
        os.close(slave)
