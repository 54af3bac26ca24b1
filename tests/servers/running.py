"""A server of the tests as a process of its own, which ends with the tests however they end."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SERVERS = ROOT / ".venv-servers"

_END_SECONDS = 20


def needed(path: Path, what: str) -> None:
    """Skip the test that asks where a server is not installed; in CI that is a failure."""
    if not path.exists():
        (pytest.fail if "CI" in os.environ else pytest.skip)(f"needs {what}: run scripts/servers")


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@contextmanager
def running(words: Sequence[str | Path], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server, with its stderr in a file; at the end it is asked to stop, then made to."""
    # Where the kernel can end a server with its tests, it does: a worker that is killed leaves nothing behind.
    if shutil.which("setpriv"):
        words = ["setpriv", "--pdeathsig", "KILL", *words]
    with log.open("wb") as errors:
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
