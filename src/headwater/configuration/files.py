"""Files that are their owner's alone: reached through no symbolic link, read whole, and replaced whole."""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from headwater import limits
from headwater.configuration.refusals import unusable
from headwater.errors import HeadwaterError, refuse
from headwater.owned import folder, synced

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_FILES: Final = (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO)


def read_owned(path: Path) -> bytes:
    """Return the bytes of a file that its owner alone can read, in a folder that only the owner can enter.

    Raise `invalid_configuration`: `config_missing` where there is none, `config_not_private` for any other file
    (CLI-057, CLI-058, CLI-071, CLI-245); without a rule where it is larger than a configuration may be (CLI-070).
    """
    with _translated(), _folder(path.parent) as within:
        content = _read(within, path.name)
    if len(content) > limits.CONFIG_BYTES:
        raise unusable("it is larger than 1 MiB")
    return content


def make_folder(path: Path) -> None:
    """Make the folders that a file will be in, where they are missing, for their owner alone (CLI-100).

    Raise `config_not_private` where one on the way is a link, somebody else's or open to others.
    """
    with _translated(), _folder(path.parent, make=True):
        pass


def create_owned(path: Path, content: bytes) -> None:
    """Write a new file for its owner alone; it is there whole or not at all.

    Raise `configuration_exists` where there is something of its name (CLI-101, CLI-102).
    """
    with _translated(), _folder(path.parent) as within:
        temporary = _written(within, path.name, content)
        try:
            os.link(temporary, path.name, src_dir_fd=within, dst_dir_fd=within, follow_symlinks=False)
        except FileExistsError as error:
            raise refuse("configuration_exists", safe="It was left as it is.") from error
        finally:
            os.unlink(temporary, dir_fd=within)
        synced(within)


def replace_owned(path: Path, before: bytes, after: bytes) -> None:
    """Put new bytes in the place of those that were read, or raise `revision_conflict` where the file has others.

    A reader meets the one or the other, whole (CLI-242, CLI-243). Two that replace exclude each other.
    """
    with _translated(), _folder(path.parent) as within, _alone(within):
        if _read(within, path.name) != before:
            raise _changed()
        mode = os.stat(path.name, dir_fd=within, follow_symlinks=False).st_mode & 0o700
        temporary = _written(within, path.name, after, mode)
        try:
            os.rename(temporary, path.name, src_dir_fd=within, dst_dir_fd=within)
        except OSError:
            os.unlink(temporary, dir_fd=within)
            raise
        synced(within)


@contextmanager
def replacing(path: Path, content: bytes) -> Iterator[Callable[[], None]]:
    """Write a file for its owner alone beside its place. What is yielded puts it there, over what is there.

    Raise OSError where the disk refuses it; without that call nothing has changed.
    """
    with _folder(path.parent) as within:
        temporary = _written(within, path.name, content)
        try:
            yield lambda: os.rename(temporary, path.name, src_dir_fd=within, dst_dir_fd=within)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=within)
        synced(within)


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
    """Open a folder that its owner alone can enter."""
    if not path.is_absolute():
        raise unusable("its path is not absolute", "config_path_unresolved")
    with folder(path, make=make) as within:
        _check(os.fstat(within))
        yield within


def _check(status: os.stat_result) -> None:
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise _open_to_others()


def _read(within: int, name: str) -> bytes:
    """Read a file, at most one byte more than a configuration may have."""
    descriptor = os.open(name, _READ, dir_fd=within)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _open_to_others()
        _check(status)
        return file.read(limits.CONFIG_BYTES + 1)


def _written(within: int, name: str, content: bytes, mode: int = 0o600) -> str:
    """Write a synced file beside another one, and return its name."""
    temporary = f".{name}.{os.urandom(8).hex()}"
    with os.fdopen(os.open(temporary, _CREATE, 0o600, dir_fd=within), "wb") as file:
        try:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        except OSError:
            os.unlink(temporary, dir_fd=within)
            raise
    return temporary


@contextmanager
def _alone(within: int) -> Iterator[None]:
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=within)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise _changed() from error
    finally:
        os.close(descriptor)
