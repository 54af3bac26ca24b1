"""The file of a proof: new, its owner's alone, in a folder of theirs that nobody else can enter (CLI-707)."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headwater import limits
from headwater.errors import HeadwaterError, refuse
from headwater.operate.writes.model import Proof
from headwater.operate.writes.proof import read_proof
from headwater.owned import folder, read_private, synced

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def check_place(path: str) -> None:
    """Raise `invalid_input` of the field `proof_output` where no proof may be put."""
    with _place(path):
        pass


def put_proof(path: str, content: bytes) -> None:
    """Write a proof, durably, and never over anything. Raise as `check_place` does, or `unavailable`."""
    with _place(path) as (within, name):
        try:
            descriptor = os.open(name, _NEW, 0o600, dir_fd=within)
        except OSError:
            raise _unfit() from None
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(descriptor)
            synced(within)
        except OSError:
            with suppress(OSError):
                os.unlink(name, dir_fd=within)
            message = "The approval could not be written; none was given."
            raise refuse("unavailable", message, stage="publication", safe="Nothing was sent.") from None


def read_proof_file(path: str) -> Proof:
    """Read a proof. Raise `invalid_input`, of the field `approval_file`, for a file that is none or not private."""
    try:
        proof = read_proof(read_private(Path(path).absolute(), limits.PROOF_BYTES).text())
    except (OSError, ValueError):
        proof = None
    if proof is None:
        message = "The approval's file cannot be read or holds none, or others could read it or change it."
        raise refuse("invalid_input", message, safe="Nothing was sent.", field="approval_file")
    return proof


@contextmanager
def _place(path: str) -> Iterator[tuple[int, str]]:
    """Open the folder of a file that is to be made, and yield it with the name."""
    plain = Path(path)
    if not plain.is_absolute() or str(plain) != path or ".." in plain.parts or not plain.name or "\0" in path:
        raise _unfit()
    try:
        _check_strict(plain.parent)
        with folder(plain.parent) as within:
            status = os.fstat(within)
            if status.st_uid != os.geteuid() or status.st_mode & 0o077 or _is_there(plain.name, within):
                raise _unfit()
            yield within, plain.name
    except OSError:
        raise _unfit() from None


def _check_strict(path: Path) -> None:
    """Raise OSError where anybody but root and this user can write a folder on the way, a sticky one like /tmp too."""
    for above in (path, *path.parents):
        if os.stat(above, follow_symlinks=False).st_mode & 0o022:
            raise PermissionError(errno.EPERM, "others can write there")


def _is_there(name: str, within: int) -> bool:
    try:
        os.stat(name, dir_fd=within, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _unfit() -> HeadwaterError:
    message = (
        "An approval goes to a new file, named by its whole path without symbolic links, in a folder that only you can "
        "enter, below folders that nobody else can write: your home, and not /tmp."
    )
    return refuse("invalid_input", message, safe="Nothing was written.", field="proof_output")
