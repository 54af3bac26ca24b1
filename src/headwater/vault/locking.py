"""One process at a time in a file that is replaced whole."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from headwater import clock, limits
from headwater.errors import HeadwaterError

_LOCK = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def locked(within: int, name: str, busy: HeadwaterError) -> Iterator[None]:
    """Hold the lock file of that name in an open folder; raise `busy` where another process holds it for long."""
    descriptor = os.open(name, _LOCK, 0o600, dir_fd=within)
    until = clock.monotonic() + limits.SEALED_LOCK_SECONDS
    try:
        while not _taken(descriptor):
            if clock.monotonic() >= until:
                raise busy
            clock.pause(limits.SEALED_LOOK_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
