"""Files that are their owner's alone: reached through no symbolic link, read whole, and replaced whole."""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from headwater import limits
from headwater.configuration.refusals import unusable
from headwater.errors import HeadwaterError, refuse

# Linux can walk through a folder that may be entered but not listed.
_STEP: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_FILES: Final = (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO)


def read_owned(path: Path) -> bytes:
    """Return the bytes of a file that its owner alone can read, in a folder that only the owner can enter.

    Raise `invalid_configuration`: `config_missing` where there is none, `config_not_private` for any other file
    (CLI-057, CLI-058, CLI-071, CLI-245); without a rule where it is larger than a configuration may be (CLI-070).
    """
    with _translated(), _folder(path.parent) as folder:
        content = _read(folder, path.name)
    if len(content) > limits.CONFIG_BYTES:
        raise unusable("it is larger than 1 MiB")
    return content


def create_owned(path: Path, content: bytes) -> None:
    """Write a new file, and the folders that it lacks, for their owner alone; it is there whole or not at all.

    Raise `configuration_exists` where there is something of its name (CLI-100 to CLI-102), `config_not_private` where
    a folder on the way is a link or somebody else's.
    """
    with _translated(), _folder(path.parent, make=True) as folder:
        temporary = _written(folder, path.name, content)
        try:
            os.link(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError as error:
            raise refuse("configuration_exists", safe="It was left as it is.") from error
        finally:
            os.unlink(temporary, dir_fd=folder)
        _sync(folder)


def replace_owned(path: Path, before: bytes, after: bytes) -> None:
    """Put new bytes in the place of those that were read, or raise `revision_conflict` where the file has others.

    A reader meets the one or the other, whole (CLI-242, CLI-243). Two that replace exclude each other.
    """
    with _translated(), _folder(path.parent) as folder, _alone(folder):
        if _read(folder, path.name) != before:
            raise _changed()
        mode = os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode & 0o700
        temporary = _written(folder, path.name, after, mode)
        try:
            os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            os.unlink(temporary, dir_fd=folder)
            raise
        _sync(folder)


def _changed() -> HeadwaterError:
    return refuse("revision_conflict", "config.toml was changed meanwhile; nothing was written.")


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise unusable("there is none yet", "config_missing", command="headwater setup init") from error
    except PermissionError as error:
        raise _open_to_others() from error
    except OSError as error:
        if error.errno in _NO_FILES:
            raise _open_to_others() from error
        raise unusable("the disk refused it") from error


def _open_to_others() -> HeadwaterError:
    why = "the file and its folder must be yours, open to nobody else (chmod 600 and 700), and reached through no link"
    return unusable(why, "config_not_private")


@contextmanager
def _folder(path: Path, *, make: bool = False) -> Iterator[int]:
    """Walk to a folder without following a link.

    Each one on the way is the user's or root's, and nobody else writes there; the last is the user's alone.
    """
    if not path.is_absolute():
        raise unusable("its path is not absolute", "config_path_unresolved")
    descriptor = os.open("/", _STEP)
    try:
        for name in path.parts[1:]:
            inner = _step(descriptor, name, make=make)
            os.close(descriptor)
            descriptor = inner
            _check_ancestor(os.fstat(descriptor))
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise _open_to_others()
        yield descriptor
    finally:
        os.close(descriptor)


def _step(folder: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, _STEP, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=folder)
        _sync(folder)
    return os.open(name, _STEP, dir_fd=folder)


def _check_ancestor(status: os.stat_result) -> None:
    others_write = status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX
    if others_write or status.st_uid not in (0, os.geteuid()):
        raise _open_to_others()


def _read(folder: int, name: str) -> bytes:
    """Read a file, at most one byte more than a configuration may have."""
    descriptor = os.open(name, _READ, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise _open_to_others()
        return file.read(limits.CONFIG_BYTES + 1)


def _written(folder: int, name: str, content: bytes, mode: int = 0o600) -> str:
    """Write a synced file beside another one, and return its name."""
    temporary = f".{name}.{os.urandom(8).hex()}"
    with os.fdopen(os.open(temporary, _CREATE, 0o600, dir_fd=folder), "wb") as file:
        try:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        except OSError:
            os.unlink(temporary, dir_fd=folder)
            raise
    return temporary


def _opened(folder: int) -> int:
    """Open a folder again, so that it can be synced and locked."""
    return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)


def _sync(folder: int) -> None:
    descriptor = _opened(folder)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _alone(folder: int) -> Iterator[None]:
    descriptor = _opened(folder)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise _changed() from error
    finally:
        os.close(descriptor)
