"""One writer for each instance: a lock that the system lets go when its holder dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.errors import refuse


@contextmanager
def exclusive(path: Path, words: str | None = None) -> Iterator[int]:
    """Hold a lock file, or raise `run_active` at once, in these `words`, where another process holds it.

    Yield its descriptor: a process that inherits it holds the lock as well, until both have let go.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        message = "The state directory cannot be written."
        raise refuse("metadata_unavailable", message, safe="Nothing was started.") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise refuse("run_active", words, command="headwater runs list") from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def is_held_alive(path: Path) -> bool:
    """Whether the process that took a lock lives; if not, a process that inherited it is about to let go."""
    try:
        os.kill(int(path.read_text()), 0)
    except (OSError, ValueError):
        return False
    return True
