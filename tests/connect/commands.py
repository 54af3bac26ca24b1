"""Commands of processes that are forked from one which has imported everything; their disk may end them.

As a program it takes jobs from stdin, a JSON object a line: `words` of the command line, `out` and `err`, the files
that it prints to, and `fault`, what its disk does (see `faults.hosts.Disk`). It answers with the exit status, negative
for a signal, and the steps that the disk saw of a command that came to its end.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


class Commands:
    """The other end: runs commands, one at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        self._server = subprocess.Popen([sys.executable, __file__], env=environment, **pipes)

    def run(self, words: list[str], **fault: Any) -> tuple[int, int]:
        """Run a command; return its exit status and the steps of its disk."""
        out, err = str(self._folder / "out"), str(self._folder / "err")
        self._server.stdin.write(json.dumps({"words": words, "out": out, "err": err, "fault": fault}) + "\n")
        self._server.stdin.flush()
        status, steps = map(int, self._server.stdout.readline().split())
        return status, steps

    @property
    def printed(self) -> tuple[str, str]:
        """What the last command printed, to stdout and to stderr."""
        return (self._folder / "out").read_text(), (self._folder / "err").read_text()

    @property
    def said(self) -> dict[str, Any]:
        """The result of the last command, or the data of its error."""
        out, err = self.printed
        answer = json.loads(out or err)
        return answer["result"] if answer["ok"] else answer["error"]["data"]

    def close(self) -> None:
        self._server.stdin.close()
        self._server.wait(60)
        self._server.stdout.close()


def serve() -> None:
    from faults.hosts import Disk

    import headwater.cli.connections
    import headwater.connect.acquiring
    import headwater.joining.connecting
    import headwater.outbound.authenticating
    import headwater.vault.sealed_file  # noqa: F401 - each command finds them all imported
    from headwater.cli.main import main

    def command(words: list[str], out: str, err: str, fault: dict[str, Any], told: int) -> None:
        for descriptor, path in ((0, os.devnull), (1, out), (2, err)):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), descriptor)
        disk = Disk(**fault, alone=True)
        try:
            main(words)
        except SystemExit as end:
            os.write(told, str(disk.seen).encode())
            os._exit(int(end.code or 0))

    for line in sys.stdin:
        read, told = os.pipe()
        if (pid := os.fork()) == 0:
            command(**json.loads(line), told=told)
        os.close(told)
        _, status = os.waitpid(pid, 0)
        steps = os.read(read, 20) or b"0"
        os.close(read)
        print(os.waitstatus_to_exitcode(status), steps.decode(), flush=True)


if __name__ == "__main__":
    serve()
