"""The words of bubblewrap that make a child's view of the files. See bwrap(1); later words cover earlier ones."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from headwater.process.confinement.boundary import Confinement, is_within
from headwater.process.confinement.view import SYSTEM, TABLES

_NAMESPACES: Final = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL")
_LIFE: Final = ("--die-with-parent", "--new-session")


def bubblewrap_words(confinement: Confinement, place: Path) -> list[str]:
    """Return bubblewrap's words, without the program, its descriptors and the command; `place` is where it starts."""
    network = [] if confinement.sockets != "none" else ["--unshare-net"]
    files = _owners_files(confinement) if confinement.filesystem else _own_files(confinement, place)
    return [*_NAMESPACES, *_LIFE, *network, *files, "--chdir", str(place)]


def _owners_files(confinement: Confinement) -> Iterator[str]:
    """All of this machine, to read, and nothing of what is hidden."""
    yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    yield from _bind("--bind", confinement.outside(confinement.writable))
    yield from _covered(confinement, confinement.hidden)


def _own_files(confinement: Confinement, place: Path) -> Iterator[str]:
    """A new root with what a program needs in order to run, and what is the child's own."""
    for path in SYSTEM:
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    yield from chain.from_iterable(("--ro-bind-try", str(path), str(path)) for path in TABLES)
    yield from ("--dev", "/dev", "--proc", "/proc", "--bind", str(confinement.scratch), "/tmp")  # noqa: S108
    readable = [path for path in confinement.outside(confinement.readable) if not is_within(path, SYSTEM)]
    writable = confinement.outside(confinement.writable)
    yield from _bind("--ro-bind", readable)
    yield from _bind("--bind", writable)
    if not is_within(place, (*confinement.readable, *writable)):
        yield from ("--dir", str(place))
    yield from _covered(confinement, [path for path in confinement.hidden if is_within(path, (*readable, *writable))])
    yield from ("--remount-ro", "/")


def _covered(confinement: Confinement, hidden: Sequence[Path]) -> Iterator[str]:
    """Lay nothing over what is hidden, and over that what is the child's all the same."""
    folders = [str(path) for path in hidden if path.is_dir()]
    yield from chain.from_iterable(("--tmpfs", folder) for folder in folders)
    yield from chain.from_iterable(("--ro-bind", "/dev/null", str(path)) for path in hidden if path.is_file())
    yield from _bind("--ro-bind", confinement.inside(confinement.readable))
    yield from _bind("--bind", [*confinement.inside(confinement.writable), confinement.spool])
    yield from chain.from_iterable(("--remount-ro", folder) for folder in folders)


def _bind(word: str, paths: Iterable[Path]) -> Iterator[str]:
    """Show files and folders where they are, but for those that lie in another one."""
    for path in (several := set(paths)):
        if not is_within(path, several - {path}):
            yield from (word, str(path), str(path))
