"""The ways to confine a child, the strongest first: each is really tried before it is relied on."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import headwater
from headwater import limits
from headwater.process.confinement.boundary import Confinement
from headwater.process.confinement.bubblewrap import bubblewrap_words
from headwater.process.confinement.inside import Rules
from headwater.process.confinement.landlock import landlock_version
from headwater.process.confinement.seccomp import seccomp_filter
from headwater.process.confinement.view import SYSTEM, TABLES

_BOOT: Final = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from headwater.process.confinement.inside import main; main()"
)
# bubblewrap stays beside the program: with the program's own pipes in its hands, nobody would see that one is closed.
_ASIDE: Final = ("/bin/sh", "-c", 'exec "$@" 8<&0 9>&1 </dev/null >/dev/null', "sh")
_BACK: Final = ("/bin/sh", "-c", 'exec "$@" <&8 >&9 8<&- 9>&-', "sh")
_KERNEL_TABLES: Final = (Path("/proc"), Path("/sys/devices/system/cpu"))


@dataclass(frozen=True)
class Enclosed:
    """A command inside a confinement: its words, the descriptors that it needs, and where it tells of its child.

    `told` is a pipe in which bubblewrap writes the number of the process group that the command runs in.
    """

    command: Sequence[str]
    descriptors: Sequence[int] = ()
    told: IO[bytes] | None = None


Enclose = Callable[[Sequence[str], Path, Confinement, ExitStack], Enclosed]


@dataclass(frozen=True)
class Way:
    """A way to confine. `holds` are the bindings that it enforces; `lacking` says what this machine lacks for it."""

    name: str
    holds: tuple[str, ...]
    enclose: Enclose
    lacking: Callable[[], str] = lambda: ""


def _by_bubblewrap(command: Sequence[str], place: Path, confinement: Confinement, open_: ExitStack) -> Enclosed:
    told, telling = os.pipe()
    words = [*_ASIDE, shutil.which("bwrap") or "bwrap", *bubblewrap_words(confinement, place)]
    descriptors = [_high(telling, open_)]
    words += ["--info-fd", str(descriptors[0])]
    if (filter_ := seccomp_filter(confinement.sockets)) is not None:
        descriptors.append(_high(_memory_of(filter_), open_))
        words += ["--seccomp", str(descriptors[1])]
    if confinement.sockets == "tcp":
        command = _inside(_rules(confinement, files=False, isolate=False), command)
    return Enclosed([*words, "--", *_BACK, *command], descriptors, open(told, "rb", buffering=0))


def _by_rules(*, files: bool, isolate: bool) -> Enclose:
    def enclose(command: Sequence[str], _place: Path, confinement: Confinement, _open: ExitStack) -> Enclosed:
        return Enclosed(_inside(_rules(confinement, files=files, isolate=isolate), command))

    return enclose


def _by_nothing(command: Sequence[str], _place: Path, _confinement: Confinement, _open: ExitStack) -> Enclosed:
    return Enclosed(command)


def _memory_of(content: bytes) -> int:
    """Return a descriptor from which a program reads some bytes."""
    descriptor = os.memfd_create("headwater")
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _high(descriptor: int, open_: ExitStack) -> int:
    """Return a descriptor in the place of one, with a number that no shell uses for its own."""
    high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    open_.callback(os.close, high)
    return high


def _inside(rules: Rules, command: Sequence[str]) -> list[str]:
    ours = str(Path(headwater.__file__).parents[1])
    return [sys.executable, "-I", "-S", "-c", _BOOT, ours, json.dumps(rules), *command]


def _rules(confinement: Confinement, *, files: bool, isolate: bool) -> Rules:
    seen = [Path("/")] if confinement.filesystem else [*SYSTEM, *TABLES, *_KERNEL_TABLES, *confinement.readable]
    changed = [*confinement.writable, confinement.spool]
    return Rules(
        isolate=isolate,
        network=confinement.sockets != "none",
        files=files,
        read=[str(path) for path in confinement.outside(seen)],
        write=[str(path) for path in confinement.outside(changed)],
        hidden=[str(path) for path in confinement.hidden],
        read_inside=[str(path) for path in confinement.inside(confinement.readable)],
        write_inside=[str(path) for path in confinement.inside(changed)],
        tcp=not confinement.network,
        listen=confinement.loopback_listen,
        ports=confinement.ports,
        seccomp=(seccomp_filter(confinement.sockets) or b"").hex(),
    )


def _no_bubblewrap() -> str:
    return "" if shutil.which("bwrap") else "bubblewrap is not installed."


def _no_landlock() -> str:
    return "" if landlock_version() else "The kernel has no Landlock, or it is switched off."


def _no_filter() -> str:
    return "" if seccomp_filter("none") else "There is no seccomp filter for this processor."


HELD: Final = ("network", "filesystem")
BUBBLEWRAP: Final = Way("bubblewrap", HELD, _by_bubblewrap, _no_bubblewrap)
ISOLATED: Final = Way("landlock+namespaces", HELD, _by_rules(files=True, isolate=True), _no_landlock)
LANDLOCK: Final = Way("landlock", HELD, _by_rules(files=True, isolate=False), lambda: _no_landlock() or _no_filter())
SECCOMP: Final = Way("seccomp", ("network",), _by_rules(files=False, isolate=False), _no_filter)
NONE: Final = Way("none", (), _by_nothing)
WAYS: Final = (BUBBLEWRAP, ISOLATED, LANDLOCK, SECCOMP, NONE)


@contextmanager
def enclosing(way: Way, command: Sequence[str], place: Path, confinement: Confinement) -> Iterator[Enclosed]:
    """Put a command inside a confinement; what it needs in order to start stays open within the block."""
    with ExitStack() as open_:
        yield way.enclose(command, place, confinement, open_)


def hindrance(way: Way, place: Path, confinement: Confinement) -> str:
    """Try a way with a program that does nothing; return what keeps it from working here, empty where it works."""
    if lack := way.lacking():
        return lack
    with enclosing(way, [shutil.which("true", path=os.defpath) or "/bin/true"], place, confinement) as enclosed:
        try:
            done = subprocess.run(
                enclosed.command,
                check=False,
                pass_fds=enclosed.descriptors,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=limits.CONFINEMENT_TRY_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{way.name} did not start a program: {type(error).__name__}."
        finally:
            if enclosed.told is not None:
                enclosed.told.close()
    if done.returncode == 0:
        return ""
    said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit status {done.returncode}"]
    return said[-1]


def chosen(place: Path, confinement: Confinement, ways: Sequence[Way] = WAYS) -> Way:
    """Return the strongest of some ways in which a program really starts here."""
    return next((way for way in ways if not hindrance(way, place, confinement)), NONE)
