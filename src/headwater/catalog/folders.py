"""Connectors on disk: the bundled ones, those a person added, and any folder that is named."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

import headwater.connectors
from headwater import limits
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.declaration import Declaration
from headwater.manifest.faults import refusal
from headwater.manifest.package import Package, read_package

BUNDLED = Path(headwater.connectors.__file__).parent


@dataclass(frozen=True)
class ConnectorFolder:
    """One connector folder. Its files are read when they are asked for, and checked then."""

    name: str
    path: Path
    origin: str

    @cached_property
    def manifest(self) -> bytes:
        """The bytes of `manifest.json`."""
        return _read(self.path / "manifest.json")

    @cached_property
    def declaration(self) -> Declaration:
        """What the connector declares."""
        from headwater.manifest.reading import read

        return read(self.manifest)

    @property
    def description(self) -> str:
        """What it collects, in a line: empty where its connector.toml does not say."""
        try:
            return str(tomllib.loads(_read(self.path / "connector.toml").decode()).get("description", ""))
        except (HeadwaterError, ValueError):
            return ""

    @cached_property
    def package(self) -> Package:
        """How the connector is run."""
        return read_package(_read(self.path / "connector.toml"))

    def checked_options(self, known: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
        """Set options from `option=value` texts, or raise `invalid_options` with every fault. Paths become absolute."""
        options = dict(known)
        for setting in settings:
            name, equals, value = setting.partition("=")
            if not equals:
                raise refuse("invalid_input", "--set takes OPTION=VALUE.")
            is_path = name in self.package.paths
            options[name] = str(Path(value).expanduser().absolute()) if is_path else self.package.typed(name, value)
        if faults := self.package.option_faults(options):
            raise refusal("invalid_options", "The options do not fit; nothing was started.", faults)
        return options

    def fixture(self, name: str) -> dict[str, Any]:
        """Return a JSON object of the folder's `fixtures/`, empty where there is none."""
        path = self.path / "fixtures" / f"{name}.json"
        if not path.exists():
            return {}
        try:
            return msgspec.json.decode(_read(path), type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise refuse("invalid_input", f"fixtures/{name}.json is not a JSON object.") from error


class Catalog:
    """Finds connector folders by name. A bundled connector is never shadowed by an added one."""

    def __init__(self, added: Path) -> None:
        self._homes = {"bundled": BUNDLED, "added": added}

    def all(self) -> list[ConnectorFolder]:
        """List every connector, by name."""
        found: dict[str, ConnectorFolder] = {}
        for origin, home in self._homes.items():
            for path in sorted(home.iterdir()) if home.is_dir() else []:
                if (path / "manifest.json").is_file():
                    found.setdefault(path.name, ConnectorFolder(path.name, path, origin))
        return [found[name] for name in sorted(found)]

    def find(self, name: str) -> ConnectorFolder:
        """Return a connector by its name, or raise `not_found` with the names there are."""
        for folder in self.all():
            if folder.name == name:
                return folder
        known = ", ".join(folder.name for folder in self.all())
        raise refuse(
            "not_found", f"There is no such connector. There are: {known}.", command="headwater connectors list"
        )


def folder_at(path: Path) -> ConnectorFolder:
    """Return the connector in a folder that a person named."""
    if not (path / "manifest.json").is_file():
        raise refuse("invalid_input", "The folder holds no manifest.json.", command="headwater connectors --help")
    return ConnectorFolder(path.resolve().name, path.resolve(), "folder")


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(limits.MANIFEST_BYTES + 1)
    except OSError as error:
        raise refuse("invalid_manifest", f"The connector's {path.name} cannot be read.") from error
