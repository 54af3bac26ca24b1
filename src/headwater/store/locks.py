"""One writer for each instance: a lock that the system lets go when its holder dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.errors import refuse


@contextmanager
def exclusive(path: Path, words: str | None = None) -> Iterator[None]:
    """Hold a lock file, or raise `run_active` at once, in these `words`, where another process holds it."""
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
        yield
    finally:
        os.close(descriptor)
