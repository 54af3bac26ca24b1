"""Memory that is a file to whoever has its descriptor, and that nobody can change any more: not even who made it."""

import fcntl
import os
import stat
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Final

from headwater import limits
from headwater.secret import Secret

SEALS: Final = ("F_SEAL_WRITE", "F_SEAL_GROW", "F_SEAL_SHRINK", "F_SEAL_SEAL")
_PROGRAM: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_EXECUTABLE: Final = 0x10  # MFD_EXEC of Linux 6.3, where a machine may be set up to make memory that is none


def is_here() -> bool:
    """Whether this system has such memory."""
    return hasattr(os, "memfd_create")


def document(content: Secret) -> int:
    """Return a descriptor from which a secret is read, sealed. The caller closes it."""
    with ExitStack() as undone:
        descriptor = _memory("document", undone)
        _write(descriptor, content.reveal())
        return _sealed(descriptor, undone)


def program(path: Path, digest: str) -> int:
    """Return a descriptor of a copy of a program, sealed. The caller closes it.

    The copy, and not the file, is held to its SHA-256 in lower hex. Raise `ValueError` where it is another one, no
    regular file, or larger than `limits.PROGRAM_BYTES`; OSError where it cannot be read.
    """
    with ExitStack() as undone, os.fdopen(os.open(path, _PROGRAM), "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > limits.PROGRAM_BYTES:
            raise ValueError("no program")
        descriptor, seen, left = _memory("program", undone, _EXECUTABLE), sha256(), status.st_size
        while left > 0 and (part := file.read(min(left, limits.MIB))):
            seen.update(part)
            _write(descriptor, part)
            left -= len(part)
        if seen.hexdigest() != digest:
            raise ValueError("another program")
        return _sealed(descriptor, undone)


def _memory(name: str, undone: ExitStack, also: int = 0) -> int:
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        descriptor = os.memfd_create(name, flags | also)
    except OSError:  # an older system knows no such flag, and needs none
        descriptor = os.memfd_create(name, flags)
    undone.callback(os.close, descriptor)
    return descriptor


def _write(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _sealed(descriptor: int, undone: ExitStack) -> int:
    os.lseek(descriptor, 0, os.SEEK_SET)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, sum(getattr(fcntl, seal) for seal in SEALS))
    undone.pop_all()
    return descriptor
