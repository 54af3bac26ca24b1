"""What one child may reach, as a value."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headwater.process.confinement.seccomp import Sockets

# The bindings that a confinement can hold a child to.
ENFORCED: Final = ("network", "filesystem", "loopback_listen")


@dataclass(frozen=True)
class Confinement:
    """What a child may see and reach. All paths are absolute and resolved.

    `network`, `filesystem` and `loopback_listen` are bindings that the child was given. `ports` are TCP ports that it
    may connect to although it has no network. `readable` is seen, and `writable` may be changed, whatever the bindings
    say. `hidden` is never seen, but for what of those lies inside it. `spool` may be written and holds `scratch`, the
    child's folder for temporary files. `local_sockets` are those of the file system, for a program that is several
    processes; they lead past this boundary, so no connector has them.
    """

    spool: Path
    network: bool = False
    filesystem: bool = False
    loopback_listen: bool = False
    local_sockets: bool = False
    ports: tuple[int, ...] = ()
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()

    @property
    def scratch(self) -> Path:
        """Where the child keeps temporary files; it goes with the run."""
        return self.spool / "tmp"

    def inside(self, paths: Iterable[Path]) -> list[Path]:
        """Return which of some paths lie in something hidden."""
        return [path for path in paths if is_within(path, self.hidden)]

    def outside(self, paths: Iterable[Path]) -> list[Path]:
        """Return which of some paths do not lie in anything hidden."""
        return [path for path in paths if not is_within(path, self.hidden)]

    @property
    def sockets(self) -> Sockets:
        """Which internet sockets it may have: of any kind, TCP alone on this machine's network, or none of its."""
        if self.network:
            return "local" if self.local_sockets else "all"
        return "tcp" if self.loopback_listen or self.ports else "none"


def is_within(path: Path, folders: Iterable[Path]) -> bool:
    """Whether a path is one of these folders or lies in one."""
    return any(path.is_relative_to(folder) for folder in folders)
