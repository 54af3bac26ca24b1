"""Starting a store's process. It imports next to nothing, so that it can be the first thing that a command does."""

import socket
import subprocess
import sys

from headwater.errors import is_exhausted, refuse

_PROGRAM = "import sys; sys.path[:] = sys.argv[2:]; from headwater.store.served import main; main(int(sys.argv[1]))"


class StoreProcess:
    """A store that has been started and keeps nothing yet. It ends when `link` is closed."""

    def __init__(self) -> None:
        """Start it, or raise `machine_exhausted` or `storage_failed`."""
        self.link, theirs = socket.socketpair()
        with theirs:
            try:
                self.process = subprocess.Popen(
                    [sys.executable, "-ISc", _PROGRAM, str(theirs.fileno()), *sys.path],
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                code = "machine_exhausted" if is_exhausted(error) else "storage_failed"
                raise refuse(code, "The store could not be started.", safe="Nothing was started.") from error
