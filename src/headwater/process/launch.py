"""Starting a connector: its command, its environment and its confinement, joined to a child."""

import asyncio
import os
import resource
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from headwater.process.browser import AUTOMATION, PROFILE
from headwater.process.child import Child, find_program
from headwater.process.confinement.boundary import ENFORCED, Confinement, is_within
from headwater.process.confinement.view import exists, interpreter_paths, is_wide, program_paths
from headwater.process.confinement.ways import HELD, Way, chosen, enclosing
from headwater.process.environment import child_environment
from headwater.wire.surroundings import SPOOL_VARIABLE

_BELIEVED = "SSL_CERT_FILE"


@dataclass(frozen=True)
class Launch:
    """A connector that can be started, as often as it is called; each start is a child of its own.

    `folder` is the connector's own; without one the command is of the owner's making, and starts where they stand.
    `bindings` are those of START, with their descriptors: the child gets what they say and no more. `hidden` is what
    no connector may see. `variables` are set, and `names` are taken from the caller's environment. `way` is a way to
    confine that is taken without a question; without it, the strongest that works here. `loose` is told which
    bindings the child was not given and nothing keeps from it. With `certificates`, in PEM, the program is told to
    believe the servers that they vouch for, and no others.
    """

    command: Sequence[str]
    folder: Path | None
    spool: Path
    bindings: Mapping[str, Mapping[str, Any]]
    hidden: Sequence[Path]
    variables: Mapping[str, str]
    names: Sequence[str] = ()
    way: Way | None = None
    loose: Callable[[Sequence[str]], None] = lambda _names: None
    certificates: str | None = None

    async def __call__(self) -> Child:
        """Start the program, or raise `connector_unavailable`."""
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # its memory may hold the owner's answers: no core files
        confinement, place, way = self.confinement, self._place, await asyncio.to_thread(self.chosen_way)
        if self.certificates is not None:
            self._certificates_path.write_text(self.certificates)
        if kept := [name for name in HELD if name not in self.bindings and name not in way.holds]:
            self.loose(kept)
        with enclosing(way, [str(self._program), *self.command[1:]], place, confinement) as enclosed:
            return await Child.spawn(
                enclosed.command,
                folder=place,
                environment=self._environment(confinement),
                descriptors=enclosed.descriptors,
                told=enclosed.told,
            )

    def chosen_way(self) -> Way:
        """Return the way in which the child is confined."""
        confinement = self.confinement
        confinement.scratch.mkdir(exist_ok=True, mode=0o700)
        return self.way if self.way is not None else chosen(self._place, confinement)

    @property
    def confinement(self) -> Confinement:
        """What the child may reach."""
        home, hidden = Path.home().resolve(), tuple(path.resolve() for path in self.hidden if path.exists())
        words = self.command[1:] if self.folder is None else ()
        named = [path.resolve() for word in words if exists(path := self._place / word)]
        named = [path for path in named if not is_within(path, hidden)]
        folders = [path.parent for path in named if path.is_file() and not is_wide(path.parent, home)]
        own = [self._place] if self.folder is not None else []
        readable = [*own, *interpreter_paths(), *program_paths(self._program, home), *folders, *_believed(hidden)]
        return Confinement(
            self.spool.resolve(),
            **{name: name in self.bindings for name in ENFORCED},
            ports=self._ports,
            readable=tuple(dict.fromkeys(each for path in readable for each in (path, path.resolve()))),
            writable=(*named, *self._profile),
            hidden=tuple(dict.fromkeys(hidden)),
        )

    @property
    def _ports(self) -> tuple[int, ...]:
        """The port of the browser that the child drives."""
        port = urlsplit(str(self.bindings.get(AUTOMATION, {}).get("ws_url", ""))).port
        return (port,) if port else ()

    @property
    def _profile(self) -> tuple[Path, ...]:
        """The browser profile that is the child's."""
        path = self.bindings.get(PROFILE, {}).get("profile_path")
        return (Path(path).resolve(),) if path else ()

    @property
    def _place(self) -> Path:
        """Where the program starts."""
        return (self.folder or Path.cwd()).resolve()

    @property
    def _program(self) -> Path:
        return self._place / find_program(self.command[0], self.folder, os.environ)

    def _environment(self, confinement: Confinement) -> dict[str, str]:
        scratch = str(confinement.scratch)
        home = {} if confinement.filesystem else {"HOME": scratch}
        file = str(self._certificates_path)
        trust = {} if self.certificates is None else {_BELIEVED: file, "SSL_CERT_DIR": f"{file}.none"}
        ours = {SPOOL_VARIABLE: str(confinement.spool), "TMPDIR": scratch, **home, **trust}
        return child_environment({**self.variables, **ours}, self.names)

    @property
    def _certificates_path(self) -> Path:
        return self.confinement.scratch / "certificates.pem"


def _believed(hidden: Sequence[Path]) -> list[Path]:
    """Return the file of certificates that the caller's environment names: the child's environment names it too."""
    path = Path(os.environ.get(_BELIEVED, ""))
    return [path] if path.is_absolute() and path.is_file() and not is_within(path.resolve(), hidden) else []
