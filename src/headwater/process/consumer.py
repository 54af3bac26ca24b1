"""A consumer: a program that runs in the place of a command, with a document on descriptor 3 and nothing else of ours.

It has the terminal or the pipes of the command, and what the keyboard sends it: an interrupt and a quit are for it,
and not for the command that waits. It is told to end when the command dies.
"""

import ctypes
import fcntl
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

_DOCUMENT: Final = 3
_PROGRAM: Final = 4
_FAILURE: Final = 5
_HIGH: Final = 10
_DIE_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG
_FROM_KEYBOARD: Final = (signal.SIGINT, signal.SIGQUIT)
_IGNORED_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ)

_libc = ctypes.CDLL(None, use_errno=True)
Handler = Any


def run(program: int, document: int, arguments: Sequence[str], environment: Mapping[bytes, bytes]) -> int:
    """Run a program from its descriptor and return its exit status; 128 + N where signal N ended it.

    Raise OSError where it could not be started: then nothing ran. Call this where the process has one thread.
    """
    told, tell = os.pipe()
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _FROM_KEYBOARD}
    launcher = os.getpid()
    try:
        child = os.fork()
        if child == 0:
            _become(launcher, before, (program, document, tell), arguments, environment)
        os.close(tell)
        with os.fdopen(told, "rb") as failure:
            number = failure.read()
        _, status = os.waitpid(child, 0)
    finally:
        for signal_number, handler in before.items():
            signal.signal(signal_number, handler)
    if number:
        raise OSError(int(number), os.strerror(int(number)))
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _become(
    launcher: int,
    before: Mapping[signal.Signals, Handler],
    descriptors: Sequence[int],
    arguments: Sequence[str],
    environment: Mapping[bytes, bytes],
) -> NoReturn:
    """Be the program, in a process of its own; say on the pipe why that did not come to be."""
    try:
        _libc.prctl(_DIE_WITH_PARENT, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != launcher:  # it died before that counted
            os._exit(126)
        _place(*descriptors)
        _settle(before)
        os.execve(_PROGRAM, [f"/proc/self/fd/{_PROGRAM}", *arguments], environment)  # noqa: S606 - no shell is wanted
    except OSError as error:
        os.write(_FAILURE, str(error.errno).encode())
    finally:
        os._exit(126)


def _place(program: int, document: int, failure: int) -> None:
    """Put the descriptors where they belong. Only 0 to 3 outlive the start: the program's own is closed by it."""
    program, document, failure = (
        fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, _HIGH) for one in (program, document, failure)
    )
    os.dup2(failure, _FAILURE, inheritable=False)
    os.dup2(program, _PROGRAM, inheritable=False)
    os.dup2(document, _DOCUMENT)
    os.closerange(_FAILURE + 1, os.sysconf("SC_OPEN_MAX"))


def _settle(before: Mapping[signal.Signals, Handler]) -> None:
    """Undo what was done to signals here; what was ignored when the command began is ignored on."""
    for number, handler in before.items():
        signal.signal(number, signal.SIG_IGN if handler is signal.SIG_IGN else signal.SIG_DFL)
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
