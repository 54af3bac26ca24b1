"""One question and one answer over a Unix socket, between processes of the same user.

The peer's user is taken from the kernel, not from what it says. Nothing of a question is kept, so a secret may
go this way. An answer may carry descriptors: they come with its first byte, a space, which JSON passes over. A
socket is reached through its folder's descriptor, because a socket's path has room for some 100 bytes and a state
directory may be deeper.
"""

from __future__ import annotations

import os
import socket
import struct
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headwater import limits

if TYPE_CHECKING:
    import asyncio

Message = Mapping[str, Any]


class Handed(NamedTuple):
    """An answer with descriptors, which are closed here once it is sent or cannot be."""

    message: Message
    descriptors: tuple[int, ...]


Handler = Callable[[Message], Awaitable[Message | Handed]]


class Unreached(Exception):
    """Nobody answers here; nothing was asked."""


class Unanswered(Exception):
    """What was asked may have been done; no answer came."""


@asynccontextmanager
async def serving(
    path: Path, handler: Handler, seconds: float = limits.LINK_SECONDS, question_bytes: int = limits.LINK_BYTES
) -> AsyncIterator[None]:
    """Answer questions at `path` for as long as the context is open; the socket is gone after it, and no other is.

    `handler` takes a question and returns the answer, within `seconds`. A peer of another user, a question that is
    too large or no JSON object, and one that does not come in time are dropped.
    """
    import asyncio

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with _reached(path) as name, _private():
        listener.bind(name)
    ours = path.lstat()

    async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _answer(reader, writer, handler, seconds)

    server = await asyncio.start_unix_server(answering, sock=listener, limit=question_bytes)
    try:
        yield
    finally:
        server.close()
        with suppress(FileNotFoundError):  # whoever removed the folder may have another one serve here by now
            if os.path.samestat(path.lstat(), ours):
                path.unlink()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handler: Handler, seconds: float) -> None:
    import asyncio

    try:
        if _peer(writer.get_extra_info("socket")) != os.geteuid():
            return
        async with asyncio.timeout(limits.LINK_SECONDS):
            question = msgspec.json.decode(await reader.readuntil(b"\n"), type=dict[str, Any])
        async with asyncio.timeout(seconds):
            answer = await handler(question)
            if isinstance(answer, Handed):
                answer = _hand_over(writer.get_extra_info("socket"), answer)
            writer.write(msgspec.json.encode(answer) + b"\n")
            await writer.drain()
    except (OSError, TimeoutError, msgspec.DecodeError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass
    finally:
        writer.close()


def _hand_over(link: Any, answer: Handed) -> Message:
    """Send the descriptors ahead of an answer, and return the rest of it: a byte always has room in a new socket."""
    try:
        with socket.socket(fileno=os.dup(link.fileno())) as same:
            socket.send_fds(same, [b" "], answer.descriptors)
    finally:
        for descriptor in answer.descriptors:
            os.close(descriptor)
    return answer.message


def ask(path: Path, question: Message) -> dict[str, Any] | None:
    """Put a question to whoever serves `path` and return the answer; None where nobody does any more."""
    try:
        return put(path, question, limits.LINK_SECONDS)
    except (Unreached, Unanswered):
        return None


def put(path: Path, question: Message, seconds: float) -> dict[str, Any]:
    """Put a question to whoever serves `path` and return the answer. Raise `Unreached` or `Unanswered`."""
    return put_for(path, question, seconds, 0)[0]


def put_for(
    path: Path, question: Message, seconds: float, at_most: int, answer_bytes: int = limits.LINK_BYTES
) -> tuple[dict[str, Any], list[int]]:
    """Put a question as `put` does; return the answer with the descriptors that it carries, which the caller closes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(seconds)
        try:
            with _reached(path) as name:
                link.connect(name)
            if _peer(link) != os.geteuid():
                raise Unreached
        except OSError:
            raise Unreached from None
        descriptors: list[int] = []
        try:
            link.sendall(msgspec.json.encode(question) + b"\n")
            begun, descriptors, flags = _begun(link, at_most)
            with link.makefile("rb") as answers:
                told = msgspec.json.decode(begun + answers.readline(answer_bytes), type=dict[str, Any])
            if flags & socket.MSG_CTRUNC:
                raise Unanswered
        except (OSError, msgspec.DecodeError, Unanswered):
            for descriptor in descriptors:
                os.close(descriptor)
            raise Unanswered from None
        return told, descriptors


def _begun(link: socket.socket, at_most: int) -> tuple[bytes, list[int], int]:
    """Receive the first byte of an answer, the descriptors that come with it, and the flags of that.

    They are closed in a program that is started meanwhile: `socket.recv_fds` drops the flag that says so.
    """
    descriptors = array("i")
    size = socket.CMSG_LEN(at_most * descriptors.itemsize)
    begun, ancillary, flags, _ = link.recvmsg(1, size, socket.MSG_CMSG_CLOEXEC)
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    return begun, list(descriptors), flags


@contextmanager
def _private() -> Iterator[None]:
    """Make what is made in here its owner's alone."""
    before = os.umask(0o177)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def _reached(path: Path) -> Iterator[str]:
    """Yield a short name of a socket, where the system has one."""
    if not Path("/proc/self/fd").is_dir():
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _peer(link: socket.socket) -> int:
    """Return the user on the other side, as the kernel knows it; -1 where it does not say."""
    if hasattr(socket, "SO_PEERCRED"):
        _, user, _ = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
        return int(user)
    return -1
