"""Descriptors that go with an answer: they arrive with it, to who asked for them, and stay open nowhere else."""

import asyncio
import os
import socket
from contextlib import contextmanager
from threading import Thread

import pytest

from headwater.link import unix
from headwater.link.unix import Handed, Unanswered, Unreached, put_for, serving


class Ends(tuple):
    """Descriptors of pipes' ends from which a byte is read."""

    @classmethod
    def made(cls, count):
        return cls(_end(number) for number in range(count))

    def __init__(self, _ends):
        self.pipes = {os.readlink(f"/proc/self/fd/{one}") for one in self}

    @property
    def open(self):
        """How many descriptors of this process are ends of these pipes."""
        return sum(link(name) in self.pipes for name in os.listdir("/proc/self/fd"))


def _end(number):
    read, write = os.pipe()
    os.write(write, bytes([number]))
    os.close(write)
    return read


def link(name):
    try:
        return os.readlink(f"/proc/self/fd/{name}")
    except OSError:  # the one that listed them
        return ""


@contextmanager
def answering(path, *answers):
    """Serve some answers, one to each question, from a thread."""
    rest = list(answers)
    ready, loop = [], asyncio.new_event_loop()

    async def serve():
        done = asyncio.Event()
        ready.append(lambda: loop.call_soon_threadsafe(done.set))

        async def answer(_question):
            return rest.pop(0)

        async with serving(path, answer):
            ready.append(True)
            await done.wait()

    thread = Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    while len(ready) < 2:
        os.sched_yield()
    try:
        yield
    finally:
        ready[0]()
        thread.join()
        loop.close()


@pytest.mark.clause("CLI-855")
def test_they_come_with_the_answer_in_their_order(tmp_path):
    with answering(tmp_path / "s", Handed({"said": "x" * 900_000}, Ends.made(2)), {"said": "none"}):
        told, got = put_for(tmp_path / "s", {}, 10, 2)
        assert (len(told["said"]), [os.read(one, 9) for one in got]) == (900_000, [b"\0", b"\1"])
        assert [os.get_inheritable(one) for one in got] == [False, False]
        assert put_for(tmp_path / "s", {}, 10, 2) == ({"said": "none"}, [])
        for one in got:
            os.close(one)


@pytest.mark.parametrize("asked_for", [0, 1])
def test_more_than_were_asked_for_are_not_taken(tmp_path, asked_for):
    """There is no answer then, and nothing of it stays open."""
    ends = Ends.made(9)
    with answering(tmp_path / "s", Handed({}, ends)), pytest.raises(Unanswered):
        put_for(tmp_path / "s", {}, 10, asked_for)
    assert ends.open == 0


def test_they_are_closed_where_nobody_waits_for_them(tmp_path):
    ends = Ends.made(2)
    with answering(tmp_path / "s", Handed({}, ends)), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(tmp_path / "s"))
        client.sendall(b"{}\n")
        client.close()
        while ends.open:
            os.sched_yield()


@pytest.mark.parametrize(("end", "what"), [("server", Unanswered), ("client", Unreached)])
def test_another_user_gets_none(tmp_path, monkeypatch, end, what):
    """Each end looks who the other one is: the server before it answers, the client before it asks."""
    ends, real = Ends.made(1), unix._peer

    def peer(link):
        is_client = isinstance(link, socket.socket)
        return 12345 if is_client is (end == "client") else real(link)

    with answering(tmp_path / "s", Handed({}, ends)):
        monkeypatch.setattr(unix, "_peer", peer)
        with pytest.raises(what):
            put_for(tmp_path / "s", {}, 10, 1)
    os.close(ends[0])  # it was never answered with
