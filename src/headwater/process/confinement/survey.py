"""Which ways to confine work on this machine, each really tried, and what would be stronger."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headwater.process.confinement.boundary import Confinement
from headwater.process.confinement.landlock import SCOPES_SINCE, TCP_SINCE, landlock_version
from headwater.process.confinement.seccomp import seccomp_filter
from headwater.process.confinement.view import interpreter_paths
from headwater.process.confinement.ways import BUBBLEWRAP, ISOLATED, LANDLOCK, NONE, SECCOMP, WAYS, Way, hindrance

_INSTALLERS: Final = {
    "apt-get": "sudo apt-get install bubblewrap",
    "dnf": "sudo dnf install bubblewrap",
    "pacman": "sudo pacman -S bubblewrap",
    "zypper": "sudo zypper install bubblewrap",
    "apk": "sudo apk add bubblewrap",
}
_APPARMOR: Final = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")


@dataclass(frozen=True)
class Standing:
    """A way as it stands on this machine. `why` says why it does not work, `weaker` what it does not hold."""

    name: str
    works: bool
    why: str
    holds: Sequence[str]
    weaker: Sequence[str]


@dataclass(frozen=True)
class Survey:
    """Every way, the strongest first. `used` is the name of the first that works; `command` makes a stronger one."""

    used: str
    ways: Sequence[Standing]
    command: str


def survey() -> Survey:
    """Try every way with a program that does nothing."""
    with tempfile.TemporaryDirectory(prefix="headwater-setup-", ignore_cleanup_errors=True) as folder:
        standings = [_standing(way, Path(folder).resolve()) for way in WAYS]
    used = next(standing.name for standing in standings if standing.works)
    return Survey(used, standings, _installing() if used != BUBBLEWRAP.name else "")


def _standing(way: Way, spool: Path) -> Standing:
    (spool / "tmp").mkdir(exist_ok=True)
    paths = tuple(interpreter_paths())
    own, all_ = (Confinement(spool, filesystem=wide, readable=paths) for wide in (False, True))
    why = hindrance(way, spool, own) or hindrance(way, spool, all_)
    if why and way is BUBBLEWRAP and _is_set(_APPARMOR):
        why += " AppArmor keeps programs from user namespaces: bwrap needs a profile that allows them."
    return Standing(way.name, not why, why, way.holds, list(_weaknesses(way)))


def _weaknesses(way: Way) -> Iterator[str]:
    """Say what a way does not hold, as far as this kernel is concerned."""
    if way is NONE:
        yield "A connector can do what you can do."
    if way is SECCOMP:
        yield "A connector can read and write your files, and end your programs."
    if way in (ISOLATED, LANDLOCK):
        yield "A connector sees the names and command lines of other programs, and that a file is there."
        yield "It cannot list a folder around the state or the configuration; files that come there later are not seen."
        if landlock_version() < SCOPES_SINCE:
            yield "This kernel's Landlock lets a connector end your programs."
    if way in (BUBBLEWRAP, ISOLATED) and seccomp_filter("all") is None:
        yield "There is no seccomp filter for this processor: sockets in files that it may read can be used."
    if way is not NONE and landlock_version() < TCP_SINCE:
        yield "This kernel cannot hold a connector with `loopback_listen` or a browser to one port."


def _installing() -> str:
    if shutil.which("bwrap"):
        return ""
    return next((command for program, command in _INSTALLERS.items() if shutil.which(program)), "")


def _is_set(path: Path) -> bool:
    try:
        return path.read_text(encoding="ascii").strip() == "1"
    except OSError:
        return False
