"""Connectors on disk: the bundled ones, those a person added, and any folder that is named."""

import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

import headwater.connectors
from headwater import limits
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.document import digest
from headwater.manifest.faults import Fault, refusal
from headwater.manifest.package import Package, read_package

if TYPE_CHECKING:
    from headwater.catalog.pins import Pin
    from headwater.manifest.declaration import Declaration
    from headwater.manifest.definition import Definition
    from headwater.manifest.integration import Integration

BUNDLED = Path(headwater.connectors.__file__).parent


class ConnectorFolder(msgspec.Struct, frozen=True, dict=True):
    """One connector folder. Its files are read when they are asked for, and checked then.

    `origin` is `bundled`, `added` (its files are pinned) or `folder`.
    """

    name: str
    path: Path
    origin: str

    @cached_property
    def pin(self) -> "Pin | None":
        """What was accepted when it was added; None for a connector that was not."""
        from headwater.catalog.pins import pin_of

        return pin_of(self.path) if self.origin == "added" else None

    @property
    def digest(self) -> str:
        """The digest that an added connector is held to, as `sha256:…`; empty for any other."""
        try:
            return self.pin.digest if self.pin is not None else ""
        except HeadwaterError:
            return ""

    @cached_property
    def changes(self) -> list[str]:
        """What is otherwise in an added connector's folder than when it was added, a file a sentence."""
        return [] if self.pin is None else self.pin.changes(self.path)

    def verify(self) -> None:
        """Raise `connector_changed` where a file of an added connector is not what it was then."""
        if not self.changes:
            return
        count = f" (and {len(self.changes) - 1} more)" if len(self.changes) > 1 else ""
        raise refuse(
            "connector_changed",
            f"The connector {self.name} is not as it was added: {self.changes[0]}{count}.",
            safe="Nothing was started.",
            command=f"headwater connectors upgrade {self.name} {shlex.quote(str(self.path))}",
            changes=self.changes[:20],
        )

    @cached_property
    def manifest(self) -> bytes:
        """The bytes of `manifest.json`."""
        return _read(self.path / "manifest.json")

    @cached_property
    def declaration(self) -> "Declaration":
        """What the connector declares."""
        from headwater.manifest.reading import read

        return read(self.manifest)

    @cached_property
    def integration(self) -> "Integration | None":
        """What the connector declares of signing in, None where it declares nothing. Raise `invalid_manifest`."""
        from headwater.manifest.integration import read_integration

        path = self.path / "integration.json"
        return read_integration(_read(path)) if path.exists() else None

    @cached_property
    def definition(self) -> "Definition | None":
        """What can be asked of its provider, None where it declares nothing. Raise `invalid_manifest`."""
        from headwater.manifest.definition import read_definition

        path = self.path / "operations.toml"
        return read_definition(_read(path), toml=True) if path.exists() else None

    @cached_property
    def code(self) -> bytes:
        """The source of `integration.py`, empty where there is none."""
        path = self.path / "integration.py"
        return _read(path) if path.exists() else b""

    @cached_property
    def coded(self) -> frozenset[str]:
        """The operations that its integration's code does, by their names."""
        from headwater.manifest.hook_source import operations_of

        return operations_of(self.code) if self.code and self.integration is not None else frozenset()

    @property
    def program(self) -> str:
        """What tells its integration's code from another, where that signs in or does operations; empty elsewhere."""
        integration = self.integration
        if integration is None or not (integration.needs_hooks or self.coded):
            return ""
        return f"{integration.key}/{integration.version} {self.digest}".strip()

    def selection(self, configuration_revision: str) -> str:
        """Digest what a description by its code depends on: an instance's configuration, and the code."""
        return digest([configuration_revision, self.program, sha256(self.code).hexdigest()])

    @property
    def default_profile(self) -> None:
        """The way to sign in where none is chosen: a connector's folder names none."""

    @property
    def version(self) -> str:
        """The version that its manifest names, empty where it names none."""
        try:
            root = msgspec.json.decode(self.manifest, type=dict[str, Any])
            return str(root.get("version", root.get("declaration_version", "")))
        except (HeadwaterError, msgspec.DecodeError):
            return ""

    @property
    def command(self) -> tuple[str, ...]:
        """The command that runs it. The word `python` is the interpreter of its own environment, if it has one."""
        from headwater.catalog.prerequisites import own_python

        words = self.package.command
        python = own_python(self.path) if self.origin == "added" and words[0] == "python" else None
        return words if python is None else (str(python), *words[1:])

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

    @property
    def option_rules(self) -> Mapping[str, Any]:
        """The options by name, each with its schema as it was written; `package` also checks that it is one."""
        try:
            options = tomllib.loads(_read(self.path / "connector.toml").decode()).get("options", {})
            rules = options.get("properties", {})
        except (ValueError, AttributeError, RecursionError):
            rules = None
        return rules if isinstance(rules, dict) else self.package.options.get("properties", {})

    def checked_options(self, known: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
        """Set options from `option=value` texts, or raise `invalid_options` with every fault. Paths become absolute."""
        options = dict(known)
        for setting in settings:
            name, equals, value = setting.partition("=")
            if not equals:
                raise refuse("invalid_input", "--set takes OPTION=VALUE.")
            is_path = name in self.package.paths
            options[name] = str(Path(value).expanduser().absolute()) if is_path else self.package.typed(name, value)
        if faults := [*self.package.option_faults(options), *self._out_of_sight(options)]:
            raise refusal("invalid_options", "The options do not fit; nothing was started.", faults)
        return options

    def _out_of_sight(self, options: Mapping[str, Any]) -> Iterator[Fault]:
        """Find the paths that lead out of the connector's folder, which is all that it sees without `filesystem`."""
        for name in self.package.paths & options.keys():
            path, declared = (self.path / str(options[name])).resolve(), self.declaration.bindings
            if "filesystem" not in declared and not path.is_relative_to(self.path.resolve()):
                plainly = f"the option `{name}` names a file, and the manifest declares no use of `filesystem`"
                yield Fault(f"/{name}", "binding", plainly)

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
        self._added = added

    def all(self) -> list[ConnectorFolder]:
        """List every connector, by name."""
        found = {folder.name: folder for folder in (*self._added_ones(), *bundled())}
        return [found[name] for name in sorted(found)]

    def _added_ones(self) -> Iterator[ConnectorFolder]:
        """Yield what `connectors add` took over: a link a name, to the folder that is pinned."""
        for path in self._added.iterdir() if self._added.is_dir() else ():
            if path.is_symlink() and path.is_dir():
                yield ConnectorFolder(path.name, path.resolve(), "added")

    def named(self, name: str) -> ConnectorFolder | None:
        """Return a connector by its name, None where there is none."""
        return next((folder for folder in self.all() if folder.name == name), None)

    def find(self, name: str) -> ConnectorFolder:
        """Return a connector by its name, or raise `not_found` with the names there are."""
        if (folder := self.named(name)) is not None:
            return folder
        known = ", ".join(folder.name for folder in self.all())
        raise refuse(
            "not_found", f"There is no such connector. There are: {known}.", command="headwater connectors list"
        )


def bundled() -> list[ConnectorFolder]:
    """Return the connectors that Headwater brings along."""
    paths = (path for path in BUNDLED.iterdir() if (path / "manifest.json").is_file())
    return [ConnectorFolder(path.name, path, "bundled") for path in paths]


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
