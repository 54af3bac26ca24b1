"""One writer for each instance: a lock that the system lets go when its holder dies."""

import fcntl
import os
import shlex
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from headwater import clock, limits
from headwater.errors import OperationalError, refuse


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


class Locks:
    """The locks of instances: one writer for the cursors of each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def alone(self, instance: str) -> Iterator[int]:
        """Hold the lock of an instance, or raise `run_active`. Yield the lock's descriptor."""
        private(self._folder.parent)
        with exclusive(self._path(instance)) as lock:
            yield lock

    @asynccontextmanager
    async def alone_soon(self, instance: str) -> AsyncIterator[int]:
        """As `alone`; the store of a host that was killed gets the time to end."""
        import asyncio

        until = clock.monotonic() + limits.LOCK_SECONDS
        with ExitStack() as stack:
            while True:
                try:
                    lock = stack.enter_context(self.alone(instance))
                    break
                except OperationalError as error:
                    ending = error.code == "run_active" and not self._holder_lives(instance)
                    if not ending or clock.monotonic() >= until:
                        raise
                await asyncio.sleep(limits.LOCK_LOOK_SECONDS)
            yield lock

    def _path(self, instance: str) -> Path:
        return self._folder / f"{instance.replace('/', '--')}.lock"

    def _holder_lives(self, instance: str) -> bool:
        """Whether the process that took the lock lives; if not, one that inherited it is about to let go."""
        try:
            os.kill(int(self._path(instance).read_text()), 0)
        except (OSError, ValueError):
            return False
        return True


def private(folder: Path) -> Path:
    """Make a folder that only its owner may enter, or raise `metadata_unavailable`."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        message = "The state directory cannot be written."
        raise refuse("metadata_unavailable", message, safe="Nothing was started.") from error
    return folder


def ours(folder: Path) -> Path:
    """Make a folder as `private` does, or raise `forbidden` where another user could change what is kept in it."""
    status = private(folder).stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        message = "The state directory is not yours alone to change, and what is connected is kept there."
        told = {"safe": "Nothing was asked or changed.", "command": f"chmod 700 {shlex.quote(str(folder))}"}
        raise refuse("forbidden", message, stage="admission", next_action="check_configuration", **told)
    return folder
