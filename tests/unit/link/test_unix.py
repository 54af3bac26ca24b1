"""One question, one answer, between processes of one user; whatever else comes is dropped."""

import asyncio
import os
import socket
import subprocess
import sys

import pytest

from headwater import limits
from headwater.link.unix import ask, serving

OTHER = """
import socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])
try:
    link.sendall(b"{}\\n")
    print(link.recv(99))
except (ConnectionResetError, BrokenPipeError):
    print("dropped")
"""


IMPOSTOR = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
listener.listen()
print("listening", flush=True)
link, _ = listener.accept()
print(link.recv(99))
"""
only_root = pytest.mark.skipif(os.geteuid() != 0 and "CI" not in os.environ, reason="only root can be somebody else")


def served(path, use, answer=None):
    """Serve an echo at a path while a blocking function runs; return its result."""

    async def handler(message):
        return {"told": message} if answer is None else answer

    async def going():
        async with serving(path, handler):
            return await asyncio.to_thread(use)

    return asyncio.run(going())


def test_a_question_gets_its_answer(tmp_path):
    """As it was asked, once for each."""
    path = tmp_path / "s.sock"
    assert served(path, lambda: [ask(path, {"n": n}) for n in range(3)]) == [{"told": {"n": n}} for n in range(3)]


def test_the_socket_is_its_owners_alone_and_goes_with_the_server(tmp_path):
    """Nobody else may even connect."""
    path = tmp_path / "made" / "s.sock"
    modes = served(path, lambda: (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777))
    assert modes == (0o600, 0o700)
    assert not path.exists()
    assert ask(path, {}) is None


def test_a_path_may_be_longer_than_a_sockets_name(tmp_path):
    """It is reached through its folder."""
    path = tmp_path / ("d" * 120) / "s.sock"
    assert served(path, lambda: ask(path, {"a": 1})) == {"told": {"a": 1}}


@pytest.mark.parametrize("line", [b"[1]\n", b"no json\n", b"{}", b"x" * (limits.LINK_BYTES + 10) + b"\n"])
def test_what_is_no_question_is_dropped_and_the_next_one_answered(tmp_path, line):
    """A program that speaks otherwise gets nothing, and holds nobody up."""
    path = tmp_path / "s.sock"

    def use():
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(str(path))
            try:
                link.sendall(line)
                link.shutdown(socket.SHUT_WR)
                nothing = link.recv(99)
            except (ConnectionResetError, BrokenPipeError):
                nothing = b""
        return nothing, ask(path, {"a": 1})

    assert served(path, use) == (b"", {"told": {"a": 1}})


def test_somebody_who_asks_nothing_holds_nobody_up(tmp_path):
    """Questions are answered beside one that does not come."""
    path = tmp_path / "s.sock"

    def use():
        with socket.socket(socket.AF_UNIX) as silent:
            silent.connect(str(path))
            return ask(path, {"a": 1})

    assert served(path, use) == {"told": {"a": 1}}


@pytest.mark.clause("CLI-968")
@only_root
def test_nobody_else_on_the_machine_is_answered(tmp_path_factory):
    """The kernel says who asks: another user gets nothing, even where the modes would let everybody in."""
    path = tmp_path_factory.mktemp("open") / "s.sock"

    def use():
        for folder in path.parents:
            if folder.stat().st_mode & 0o7777 == 0o700:
                folder.chmod(0o711)
        path.chmod(0o777)
        words = ["setpriv", "--reuid", "65534", "--clear-groups", sys.executable, "-c", OTHER, str(path)]
        return subprocess.run(words, capture_output=True, text=True, timeout=30).stdout.strip()

    assert served(path, use) in ("dropped", "b''")


@pytest.mark.clause("CLI-968")
@only_root
def test_nobody_else_on_the_machine_is_asked(tmp_path_factory):
    """Who serves a socket of another user hears nothing: the kernel says whose it is before a word is sent."""
    place = tmp_path_factory.mktemp("foreign")
    for folder in (place, *place.parents):
        if folder.stat().st_mode & 0o7777 == 0o700:
            folder.chmod(0o711)
    place.chmod(0o777)
    words = ["setpriv", "--reuid", "65534", "--clear-groups", sys.executable, "-c", IMPOSTOR, str(place / "s.sock")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as impostor:
        assert impostor.stdout.readline() == "listening\n"
        assert ask(place / "s.sock", {"secret": "sentinel"}) is None
        assert impostor.stdout.read().strip() == "b''"
