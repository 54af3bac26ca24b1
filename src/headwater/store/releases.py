"""The installed releases of definitions: a folder each, named by the digest of its index, and never changed.

    installed-definitions/<digest>/        0555
        index.json                         0444
        files/<path>                       0444, for every file that the index names

One is written under another name, in the same folder, and renamed when it is whole. What a kill left of one has that
other name still, and is swept away by the next that is written.
"""

import fcntl
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from errno import ENAMETOOLONG, EPERM
from hashlib import file_digest
from pathlib import Path, PurePosixPath
from typing import Final, Literal

from headwater import clock, limits
from headwater.errors import refuse
from headwater.operate.release_archive import Unpacked
from headwater.operate.release_index import Release
from headwater.owned import synced

Disposition = Literal["created", "existing"]

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_UNFINISHED: Final = "unfinished"
_FILE_MODE: Final = 0o444
_FOLDER_MODE: Final = 0o555


class ReleaseCache:
    """The folder of the installed releases."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def place(self, release: Release) -> Path:
        """Return where a release has its entry."""
        return self._home / release.digest

    @contextmanager
    def holding(self, release: Release, files: Unpacked) -> Iterator[Disposition]:
        """Have the entry of a release in its place. Yield whether it was made for this.

        An existing one is left as it is; raise `digest_mismatch` where it is not exactly the release (CLI-520). Raise
        OSError where one cannot be made. Where what follows ends in an OSError, one that was made is gone again.
        """
        if any(file.path.count("/") > limits.RELEASE_FOLDERS for file in release.index.files):
            raise OSError(ENAMETOOLONG, "too deep")
        place = self.place(release)
        with self._alone() as home:
            if os.path.lexists(place):
                if differing := _difference(place, release):
                    message, safe = "What is kept of this release was changed.", "It was left as it is."
                    raise refuse("digest_mismatch", message, safe=safe, file=differing)
                yield "existing"
                return
            self._sweep()
            made = self._home / clock.identifier(_UNFINISHED)
            try:
                _write(made, release, files)
                made.rename(place)
                synced(home)
                try:
                    yield "created"
                except OSError:
                    place.rename(made)
                    raise
            finally:
                _remove(made)

    @contextmanager
    def _alone(self) -> Iterator[int]:
        """Open the folder for the only process that changes it; raise OSError while another does."""
        self._home.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._home.mkdir(mode=0o700, exist_ok=True)
        home = os.open(self._home, _FOLDER)
        try:
            status = os.fstat(home)
            if status.st_uid != os.geteuid() or status.st_mode & 0o022:
                raise PermissionError(EPERM, "others can change it")
            fcntl.flock(home, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield home
        finally:
            os.close(home)

    def _sweep(self) -> None:
        for left in self._home.glob(f"{_UNFINISHED}_*"):
            _remove(left)


def _write(place: Path, release: Release, files: Unpacked) -> None:
    """Write a release, and have all of it on the disk."""
    place.mkdir(mode=0o700)
    (place / "files").mkdir()
    _write_file(place / "index.json", [release.document])
    for file, pieces in files:
        path = place / "files" / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_file(path, pieces)
    for folder, _, names in os.walk(place, topdown=False):
        os.chmod(folder, _FOLDER_MODE)
        for name in (*names, "."):  # only now: a disk takes many files together sooner than one after the other
            _sync(Path(folder, name))


def _write_file(path: Path, pieces: Iterable[bytes]) -> None:
    with path.open("xb") as file:
        for piece in pieces:
            file.write(piece)
        os.fchmod(file.fileno(), _FILE_MODE)


def _sync(path: Path) -> None:
    descriptor = os.open(path, _FILE)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(folder: Path) -> None:
    """Remove what was written of a release, if anything was."""
    for inner, _, _ in os.walk(folder):
        os.chmod(inner, 0o700)
    if os.path.lexists(folder):
        shutil.rmtree(folder)


def _difference(place: Path, release: Release) -> str:
    """Return the first of an entry that is not the release: a file by its path, or the entry by its name."""
    wanted = {"index.json": (len(release.document), release.digest)}
    wanted |= {f"files/{file.path}": (file.size, file.sha256) for file in release.index.files}
    folders = {os.fspath(above) for path in wanted for above in PurePosixPath(path).parents} | {"files"}
    if not _is_sealed(place, stat.S_IFDIR, _FOLDER_MODE):
        return release.digest
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        for name in sorted(os.listdir(place / folder)):
            inner = f"{folder}/{name}" if folder else name
            if inner in folders and _is_sealed(place / inner, stat.S_IFDIR, _FOLDER_MODE):
                waiting.append(inner)
            elif inner not in wanted or not _is_file(place / inner, *wanted.pop(inner)):
                return _shown(inner, release)
    return _shown(next(iter(wanted)), release) if wanted else ""


def _is_sealed(path: Path, kind: int, mode: int) -> bool:
    status = path.lstat()
    return (stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode)) == (kind, mode)


def _is_file(path: Path, size: int, digest: str) -> bool:
    if not _is_sealed(path, stat.S_IFREG, _FILE_MODE) or path.lstat().st_size != size:
        return False
    with os.fdopen(os.open(path, _FILE), "rb") as file:
        return file_digest(file, "sha256").hexdigest() == digest


def _shown(path: str, release: Release) -> str:
    """Return how a path of an entry is told: relative to the release, or the entry's name for all that is around."""
    if path == "index.json":
        return path
    name = path.removeprefix("files/") if path.startswith("files/") else release.digest
    return name.encode(errors="replace").decode()
