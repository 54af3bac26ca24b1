"""A folder as data: what lies in it, what may not be taken over, and one digest of it all.

The digest is SHA-256 over a canonical listing: a line for each file, in the order of the paths' bytes, with its kind
(`file`, `program` for one that may be run, `link`), the SHA-256 of its bytes (of a link: of where it points) and its
path as a JSON string. Times, owners and empty folders are no part of it.
"""

import json
import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Literal

from msgspec import Struct

from headwater import limits
from headwater.manifest.faults import Fault

Kind = Literal["file", "program", "link"]

# What other programs leave in a folder, and what would change how a connector is installed: never taken over.
NOT_TAKEN = frozenset(
    {".git", ".hg", ".svn", ".venv", ".tox", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".npmrc"}
)


class Entry(Struct, frozen=True, array_like=True):
    """One file or link of a folder. `path` is relative, with `/`; `digest` is hexadecimal."""

    path: str
    kind: Kind
    digest: str


class Tree(Struct, frozen=True):
    """Every file of a folder, in canonical order."""

    entries: tuple[Entry, ...]

    @property
    def digest(self) -> str:
        """The digest of the whole, as `sha256:…`."""
        lines = "".join(f"{entry.kind} {entry.digest} {json.dumps(entry.path)}\n" for entry in self.entries)
        return f"sha256:{sha256(lines.encode()).hexdigest()}"

    def changes(self, now: "Tree") -> list[str]:
        """Say what `now` has otherwise, a file a sentence."""
        before = {entry.path: entry for entry in self.entries}
        after = {entry.path: entry for entry in now.entries}
        words = [f"{path} is gone" for path in before if path not in after]
        words += [f"{path} was added" for path in after if path not in before]
        words += [f"{path} was changed" for path, entry in after.items() if before.get(path, entry) != entry]
        return sorted(words)


@dataclass(frozen=True)
class Survey:
    """What lies in a folder, before a byte of it is read: the paths and kinds, and every reason not to take it."""

    found: tuple[tuple[str, Kind], ...]
    faults: tuple[Fault, ...]


def survey(root: Path, leave: Collection[str] = ()) -> Survey:
    """Look through a folder without following a link. `leave` names entries of the top that are passed over."""
    found: list[tuple[str, Kind]] = []
    faults: list[Fault] = []
    size = 0
    for count, (path, status) in enumerate(_walk(root, leave), 1):
        size += status.st_size if stat.S_ISREG(status.st_mode) else 0
        if count > limits.CONNECTOR_FILES or size > limits.CONNECTOR_BYTES:
            bound = f"{limits.CONNECTOR_FILES:,} files and folders, or {limits.CONNECTOR_BYTES // limits.MIB} MiB"
            faults.append(Fault("", "size", f"the folder holds more than {bound}"))
            break
        name = os.fspath(path.relative_to(root))
        if not name.isprintable():
            faults.append(Fault("", "name", "a file's name is not printable text"))
        elif fault := _fault(root, path, status.st_mode):
            faults.append(Fault(f"/{name}", *fault))
        elif not stat.S_ISDIR(status.st_mode):
            found.append((name, _kind(status.st_mode)))
    return Survey(tuple(sorted(found, key=lambda item: item[0].encode())), tuple(faults))


def read_tree(root: Path, leave: Collection[str] = ()) -> Tree:
    """Read a folder of ours whole; a file that cannot be read has an empty digest, and so is a changed one."""
    return Tree(tuple(Entry(name, kind, _digest(root / name, kind)) for name, kind in survey(root, leave).found))


def _walk(root: Path, leave: Collection[str]) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield what lies below a folder; one that cannot be looked into is yielded, and its inside is not."""
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        for name in _names(folder):
            if name in NOT_TAKEN or (folder == root and name in leave):
                continue
            path = folder / name
            try:
                status = path.lstat()
            except FileNotFoundError:  # taken away in this moment
                continue
            yield path, status
            if stat.S_ISDIR(status.st_mode):
                waiting.append(path)


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (PermissionError, FileNotFoundError):
        return []


def _fault(root: Path, path: Path, mode: int) -> tuple[str, str] | None:
    if stat.S_ISLNK(mode):
        target = Path(os.readlink(path))
        if target.is_absolute() or not path.parent.joinpath(target).resolve().is_relative_to(root.resolve()):
            return "link", "is a link that leads out of the folder"
        return None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return "kind", "is neither a file nor a folder nor a link"
    wanted = os.R_OK | os.X_OK if stat.S_ISDIR(mode) else os.R_OK
    return None if os.access(path, wanted) else ("unreadable", "cannot be read")


def _kind(mode: int) -> Kind:
    if stat.S_ISLNK(mode):
        return "link"
    return "program" if mode & stat.S_IXUSR else "file"


def _digest(path: Path, kind: Kind) -> str:
    try:
        if kind == "link":
            return sha256(os.fsencode(os.readlink(path))).hexdigest()
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
