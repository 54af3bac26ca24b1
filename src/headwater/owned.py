"""Files and folders that are trusted: reached through no symbolic link, and changed by nobody else."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EPERM
from pathlib import Path

from headwater.secret import Secret

# Linux can walk through a folder that may be entered but not listed.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@contextmanager
def folder(path: Path, within: int | None = None, *, make: bool = False) -> Iterator[int]:
    """Open a folder, absolute or below another open one, and yield its descriptor.

    With `make`, folders that are missing are made for this user alone.

    Raise OSError unless every folder on the way is root's or this user's and writable by no other (or sticky, as
    /tmp is), and none is a symbolic link.
    """
    if path.is_absolute() is not (within is None) or ".." in path.parts:
        raise PermissionError(EPERM, "not a plain path")
    descriptor = os.open("/", _FOLDER) if within is None else os.dup(within)
    try:
        for name in path.parts[1:] if within is None else path.parts:
            if make:
                _make(name, descriptor)
            inner = os.open(name, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
            _owned(os.fstat(descriptor))
        yield descriptor
    finally:
        os.close(descriptor)


def read_private(path: Path, at_most: int) -> Secret:
    """Read a file that this user alone can read. Raise OSError where it is anything else, or larger."""
    with folder(path.parent) as within:
        return read_at(within, path.name, at_most, private=True)


def read_at(within: int, name: str, at_most: int, *, private: bool) -> Secret:
    """Read a regular file of an open folder; a private one has one name, and an owner who alone can read it."""
    return Secret(_content_of(within, name, at_most, private=private))


def plain_at(within: int, name: str, at_most: int) -> bytes:
    """Read a regular file of an open folder that is no secret, and that nobody else can change."""
    return _content_of(within, name, at_most, private=False)


def _content_of(within: int, name: str, at_most: int, *, private: bool) -> bytes:
    descriptor = os.open(name, _FILE, dir_fd=within)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        _owned(status)
        is_private = status.st_uid == os.geteuid() and status.st_nlink == 1 and not status.st_mode & 0o077
        if not stat.S_ISREG(status.st_mode) or (private and not is_private):
            raise PermissionError(EPERM, "not a file of one owner")
        content = file.read(at_most + 1)
    if len(content) > at_most:
        raise PermissionError(EPERM, "too large")
    return content


def _make(name: str, within: int) -> None:
    """Make a folder where nothing has its name: what is there is looked at later."""
    try:
        os.stat(name, dir_fd=within, follow_symlinks=False)
    except FileNotFoundError:
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=within)
            synced(within)


def synced(within: int) -> None:
    """Have what was made, moved or removed in an open folder on the disk."""
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=within)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _owned(status: os.stat_result) -> None:
    others_write = status.st_mode & 0o022 and not (stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX)
    if status.st_uid not in {0, os.geteuid()} or others_write:
        raise PermissionError(EPERM, "others can change it")
