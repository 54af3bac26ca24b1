"""The added connectors: each name a link to a folder that is written once, pinned, and replaced as a whole.

    connectors/ical          a link; replacing it is what adds, upgrades and removes, at once or not at all
    connectors/.trees/…      a folder for each version that was taken over
        connector/           its files, with the packages that were installed for it
        added.json           the pin

What a kill left behind in `.trees` belongs to no link, and is swept away by the next change.
"""

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headwater import clock
from headwater.catalog.folders import Catalog, ConnectorFolder, bundled
from headwater.catalog.offers import Fit, Offer, examine_offer
from headwater.catalog.pins import pin, pin_of
from headwater.catalog.prerequisites import install
from headwater.catalog.tree import Kind, survey
from headwater.catalog.upgrading import Difference, difference
from headwater.errors import refuse
from headwater.manifest.faults import refusal
from headwater.manifest.package import read_package
from headwater.manifest.reading import read

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Upgrade:
    """A connector after its upgrade, and what that changed."""

    folder: ConnectorFolder
    difference: Difference
    is_new: bool


class Shelf:
    """Changes the added connectors. One process at a time does, by a lock that its caller holds."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._trees = home / ".trees"

    def add(self, name: str | None, offer: Offer, tell: Tell) -> ConnectorFolder:
        """Take a connector over under a name (if none, the last part of its id); a name in use is refused."""
        fit = examine_offer(offer)
        name = self._free(name or fit.declaration.short_name)
        return self._shelve(name, fit, tell)

    def upgrade(self, name: str, offer: Offer, tell: Tell, *, accept: bool) -> Upgrade:
        """Put another version in a connector's place. Refuse another connector, and more than was asked before."""
        accepted = pin_of(self.find(name).path)
        known = read(accepted.manifest.encode()), read_package(accepted.package.encode())
        fit = examine_offer(offer, accepted.package.encode())
        if fit.declaration.connector_id != known[0].connector_id:
            message = "That is another connector: its connector_id differs. Add it under a name of its own."
            raise refuse("invalid_input", message, safe="Nothing was changed.", command="headwater connectors add PATH")
        changed = difference(known, (fit.declaration, fit.package))
        if changed.asks and not accept:
            asked = ", ".join(changed.asks)
            message = f"The new version asks for more: {asked}. Say --accept to give it that."
            raise refuse("consent_needed", message, safe="Nothing was changed.", asks=list(changed.asks))
        folder = self._shelve(name, fit, tell)
        return Upgrade(folder, changed, is_new=pin_of(folder.path).digest != accepted.digest)

    def remove(self, name: str) -> None:
        """Take a connector away, with its files and packages."""
        self.find(name)
        (self._home / name).unlink()
        self._sweep()

    def find(self, name: str) -> ConnectorFolder:
        """Return an added connector, or say why there is none of this name."""
        folder = Catalog(self._home).find(name)
        if folder.origin != "added":
            raise refuse("invalid_input", "That connector comes with Headwater, and changes with it.")
        return folder

    def _free(self, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise refuse("invalid_input", "A name is up to 64 letters, digits, `.`, `_` and `-`.", command=_NAMED)
        if any(folder.name == name for folder in bundled()):
            raise refuse("already_exists", "Headwater brings a connector of this name along.", command=_NAMED)
        if (self._home / name).exists():
            command = f"headwater connectors upgrade {name} PATH"
            raise refuse("already_exists", "There is a connector of this name already.", command=command)
        return name

    def _shelve(self, name: str, fit: Fit, tell: Tell) -> ConnectorFolder:
        _made(self._trees)
        self._sweep()
        folder = self._trees / clock.identifier("tree") / "connector"
        try:
            _copy(fit, _made(folder))
            built = install(folder, fit.package, tell)
            pin(folder, built=built, source=str(fit.offer.source), added_at=clock.stamp())
            self._point(name, folder)
        except OSError as error:
            raise refuse("metadata_unavailable", "The connector could not be copied.", safe=_UNCHANGED) from error
        finally:
            self._sweep()
        return ConnectorFolder(name, folder.resolve(), "added")

    def _point(self, name: str, folder: Path) -> None:
        """Let a name stand for a folder: from one instant to the next."""
        link = folder.with_name("link")
        link.symlink_to(folder.relative_to(self._home))
        link.replace(self._home / name)

    def _sweep(self) -> None:
        """Delete each tree that no name stands for."""
        kept = {path.resolve().parent for path in self._home.iterdir() if path.is_symlink()}
        for tree in self._trees.iterdir() if self._trees.is_dir() else ():
            if tree.resolve() not in kept:
                shutil.rmtree(tree, ignore_errors=True)


_NAMED = "headwater connectors add PATH --name NAME"
_UNCHANGED = "Nothing was added or changed."


def _copy(fit: Fit, folder: Path) -> None:
    """Copy what the survey found, for the owner only, and look through the copy once more."""
    for name, kind in fit.survey.found:
        target = folder / name
        _made(target.parent)
        _copy_one(fit.offer.source / name, target, kind)
    for name, document in fit.written.items():
        (folder / name).unlink(missing_ok=True)
        with open(folder / name, "xb", opener=_private) as file:
            file.write(document)
    if faults := survey(folder).faults:
        raise refusal("invalid_manifest", "The folder changed while it was copied; nothing was added.", faults)


def _copy_one(source: Path, target: Path, kind: Kind) -> None:
    if kind == "link":
        target.symlink_to(source.readlink())
        return
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as read, open(target, "xb", opener=_private) as write:
        shutil.copyfileobj(read, write)
    if kind == "program":
        target.chmod(0o700)


def _made(folder: Path) -> Path:
    """Make a folder and those above it, each for its owner only."""
    if not folder.is_dir():
        _made(folder.parent)
        folder.mkdir(mode=0o700)
    return folder


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
