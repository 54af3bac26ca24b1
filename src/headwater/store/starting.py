"""Starting a store's process. It imports next to nothing, so that it can be the first thing that a command does."""

import socket
import subprocess
import sys

_PROGRAM = "import sys; sys.path[:] = sys.argv[2:]; from headwater.store.served import main; main(int(sys.argv[1]))"


class StoreProcess:
    """A store that has been started and keeps nothing yet. It ends when `link` is closed."""

    def __init__(self) -> None:
        self.link, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-ISc", _PROGRAM, str(theirs.fileno()), *sys.path],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
