"""A line for each request to the server: when, its id, which route, how it was answered and how long that took.

No line holds a path as it came, a query, a header or a body: those may hold a secret by somebody's mistake.
"""

import os
from contextlib import suppress
from pathlib import Path

from headwater import clock, limits


def note_request(path: Path, request_id: str, route: str, answered: str, milliseconds: int) -> None:
    """Write a line for the owner alone; a file that is full is kept once, as `….1`. A full disk costs the line only."""
    line = f"{clock.stamp()} {request_id} {route} {answered} {milliseconds}ms\n".encode()
    with suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, line)
            is_full = os.fstat(descriptor).st_size >= limits.SERVER_LOG_BYTES
        finally:
            os.close(descriptor)
        if is_full:
            path.replace(path.with_name(f"{path.name}.1"))
