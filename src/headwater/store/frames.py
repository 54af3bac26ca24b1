"""What goes over the socket between a host and its store: a length, a kind, the content."""

import copyreg
import socket
import struct

from msgspec import UNSET, UnsetType

_HEAD = struct.Struct("!IB")

# What comes first, with the descriptor of a lock.
LOCK = b"L"

CALL, BATCH, LAST_BATCH, ANSWER = range(4)


def send(link: socket.socket, kind: int, content: bytes) -> None:
    """Send one frame, and wait until the other side has taken most of it."""
    link.sendall(_HEAD.pack(len(content), kind))
    link.sendall(content)


def receive(link: socket.socket) -> tuple[int, bytearray] | None:
    """Wait for a frame and return its kind and content; None where the other side is gone."""
    head = _exactly(link, _HEAD.size)
    if head is None:
        return None
    size, kind = _HEAD.unpack(head)
    content = _exactly(link, size)
    return None if content is None else (kind, content)


def _exactly(link: socket.socket, size: int) -> bytearray | None:
    content = bytearray(size)
    rest = memoryview(content)
    while rest:
        count = link.recv_into(rest)
        if count == 0:
            return None
        rest = rest[count:]
    return content


def _unset() -> UnsetType:
    return UNSET


# By itself a pickle names the first module that happens to hold UNSET, which the other side need not have.
copyreg.pickle(UnsetType, lambda _value: (_unset, ()))
