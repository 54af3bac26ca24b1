"""A process that types commands: each in a process forked from it, without a terminal, so that thousands are quick.

It reads lines of JSON, `{"words", "place"}`, and answers each with `{"status", "stdout", "stderr"}`. A command
that does not end within some seconds is killed, and its status is None.
"""

import json
import os
import select
import signal
import sys
from pathlib import Path

from headwater.cli.main import COMMANDS, main, root

SECONDS = 20


def answer(words: list[str], place: Path) -> dict[str, object]:
    """Run one command in a fork, in a folder of its own."""
    out, err = place / "stdout", place / "stderr"
    child = os.fork()
    if child == 0:
        os.setsid()
        os.chdir(place)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.environ.clear()
        os.environ.update({"HOME": str(place), "PATH": "/usr/bin:/bin"})
        where = [] if words[:1] == ["--bare"] else ["--config", f"{place}/config.toml", "--state-dir", f"{place}/state"]
        status = 70
        try:
            main([*where, *[word for word in words if word != "--bare"]])
        except SystemExit as error:
            status = int(error.code or 0)
        finally:
            os._exit(status)
    descriptor = os.pidfd_open(child)
    ended = select.select([descriptor], [], [], SECONDS)[0]
    os.close(descriptor)
    if not ended:
        os.killpg(child, signal.SIGKILL)
    _, code = os.waitpid(child, 0)
    status = os.waitstatus_to_exitcode(code) if ended else None
    return {"status": status, "stdout": read(out), "stderr": read(err)}


def read(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "backslashreplace")


if __name__ == "__main__":
    import click

    for name in COMMANDS:
        root.get_command(click.Context(root), name)
    for line in sys.stdin:
        asked = json.loads(line)
        sys.stdout.write(json.dumps(answer(asked["words"], Path(asked["place"]))) + "\n")
        sys.stdout.flush()
