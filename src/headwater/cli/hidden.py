"""A terminal that shows nothing of what is typed, and is left as it was found, whatever ends the typing."""

import os
import select
import signal
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOTTY
from types import FrameType
from typing import Final, Self

from headwater import clock, limits
from headwater.cli.entry_refusals import unavailable
from headwater.cli.output import plain
from headwater.errors import HeadwaterError, refuse
from headwater.secret import Secret

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_ERASE: Final = b"\x7f\x08"
_ERASE_ALL: Final = 0x15
_END_OF_INPUT: Final = 0x04
_ENTER: Final = b"\r\n"


class _Signals:
    """Signals that would end the program, held back: each is noted, and makes `descriptor` readable.

    Nothing is raised where a signal happens to come, so the terminal is restored whenever it comes. The
    interpreter makes `descriptor` readable itself: a handler alone would wait for a `select` that had just begun.
    """

    def __init__(self) -> None:
        self.descriptor, self._told = os.pipe()
        os.set_blocking(self._told, False)
        self.number = 0

    def note(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        self.number = self.number or number

    def close(self) -> None:
        """Let go of the pipe."""
        os.close(self.descriptor)
        os.close(self._told)

    @classmethod
    @contextmanager
    def held(cls) -> Iterator[Self]:
        """Hold signals back; at the end, do what the first one that came would have done."""
        signals = cls()
        before = {number: signal.signal(number, signals.note) for number in _ENDING}
        before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
        woken = signal.set_wakeup_fd(signals._told, warn_on_full_buffer=False)
        try:
            yield signals
        finally:
            signal.set_wakeup_fd(woken)
            for number, handler in before.items():
                signal.signal(number, handler)
            signals.close()
            if signals.number not in (0, signal.SIGINT):
                signal.signal(signals.number, signal.SIG_DFL)
                os.kill(os.getpid(), signals.number)


class Hidden:
    """The controlling terminal while it is hidden: one value after the other, all within five minutes."""

    def __init__(self, descriptor: int, signals: _Signals) -> None:
        self._descriptor = descriptor
        self._signals = signals
        self._until = clock.monotonic() + limits.ENTRY_SECONDS
        self._ahead = bytearray()

    @classmethod
    @contextmanager
    def opened(cls) -> Iterator[Self]:
        """Open the controlling terminal and hide what is typed there.

        Raise `protected_entry_unavailable` where there is none, or this program does not stand in its foreground. A
        signal that would end the program ends it after the terminal was restored; Ctrl-C is `interrupted`.
        """
        try:
            with controlling_terminal() as descriptor, _Signals.held() as signals, _unechoed(descriptor):
                yield cls(descriptor, signals)
        except (OSError, termios.error):
            raise _none() from None

    def say(self, line: str) -> None:
        """Show a line."""
        os.write(self._descriptor, f"{line}\n".encode())

    def ask(self, label: str) -> Secret:
        """Return one line, without its end.

        Raise `interrupted` for Ctrl-C and Ctrl-D, `timeout`, and `invalid_input` where it is too long.
        """
        os.write(self._descriptor, f"{plain(label)} (not shown): ".encode())
        line = bytearray()
        try:
            while (byte := self._next()) not in _ENTER:
                self._take(byte, line)
            return Secret(bytes(line))
        finally:
            line[:] = bytes(len(line))
            os.write(self._descriptor, b"\n")

    def _take(self, byte: int, line: bytearray) -> None:
        if byte in _ERASE:
            _erase(line)
        elif byte == _ERASE_ALL:
            line.clear()
        elif byte == _END_OF_INPUT:
            raise refuse("interrupted", stage="protected_entry")
        elif len(line) == limits.ENTRY_BYTES:
            termios.tcflush(self._descriptor, termios.TCIFLUSH)
            raise refuse("invalid_input", "What was typed is too long.", stage="protected_entry")
        else:
            line.append(byte)

    def _next(self) -> int:
        if not self._ahead:
            left = self._until - clock.monotonic()
            ready, _, _ = select.select([self._descriptor, self._signals.descriptor], [], [], max(0.0, left))
            if not ready:
                raise refuse("timeout", "The credential was not entered in time.", stage="protected_entry")
            if self._signals.descriptor not in ready:
                self._ahead += os.read(self._descriptor, limits.KIB)
            if not self._ahead:
                raise refuse("interrupted", stage="protected_entry")
        return self._ahead.pop(0)


@contextmanager
def controlling_terminal() -> Iterator[int]:
    """Open the terminal that this program stands in the foreground of, or raise OSError where there is none."""
    descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if os.tcgetpgrp(descriptor) != os.getpgrp():
            raise OSError(ENOTTY, "in the background")
        yield descriptor
    finally:
        os.close(descriptor)


def entered(label: str) -> Secret:
    """Return the passphrase of a sealed file, typed at the terminal. Raise `custody_unavailable` without one."""
    try:
        with Hidden.opened() as terminal:
            return terminal.ask(label)
    except HeadwaterError as refusal:
        if refusal.code != "protected_entry_unavailable":
            raise
    message = "There is no terminal here to type the passphrase of the sealed file at."
    raise refuse("custody_unavailable", message, safe="Nothing was stored or sent.", command="headwater setup check")


def _erase(line: bytearray) -> None:
    """Take the last character away, all bytes of it."""
    while line and line.pop() & 0xC0 == 0x80:
        pass


def _none() -> HeadwaterError:
    return unavailable("There is no terminal here to type a credential at.")


@contextmanager
def _unechoed(descriptor: int) -> Iterator[None]:
    """Hide what is typed, byte by byte: a whole line at once would be cut at what the terminal can hold."""
    before = termios.tcgetattr(descriptor)
    changed = [*before[:3], before[3] & ~(termios.ECHO | termios.ECHONL | termios.ICANON), *before[4:]]
    try:
        termios.tcsetattr(descriptor, termios.TCSAFLUSH, changed)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)
