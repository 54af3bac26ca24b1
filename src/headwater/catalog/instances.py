"""The instances a person set up, in `collect.toml`: owner-only, and edited so that every other byte stays."""

import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from headwater import limits
from headwater.catalog.extensions import Extensions, is_extension
from headwater.errors import HeadwaterError, refuse
from headwater.toml_tables import with_members, without_table, without_tables

FORMAT = "headwater-collect/1"
_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}"
_NAME = re.compile(f"{_PART}/{_PART}")
_MEMBERS = frozenset({"folder", "streams", "options", "bindings", "schedule", "release"})


class Instance(Struct, frozen=True):
    """A configured connector, such as `git/here`. `folder` is set for a connector that is run from its folder.

    `bindings` are those beyond the profile's own that the person offers its connector. `schedule` holds the members
    of its schedule as they were written, None where it has none. `release` is the digest of the release of definitions
    that it opted in to (CLI-528).
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    streams: tuple[str, ...] = ()
    folder: Path | None = None
    schedule: Mapping[str, Any] | None = None
    bindings: Extensions = field(default_factory=dict)
    release: str | None = None

    @property
    def connector(self) -> str:
        """The part before the slash."""
        return self.name.partition("/")[0]


class Instances:
    """Reads and edits the instances of `collect.toml`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def all(self) -> dict[str, Instance]:
        """Return every instance, by name; none where there is no file yet."""
        rows = self._root().get("instances", {})
        if not isinstance(rows, dict):
            raise _unusable("`instances` is not a table")
        return {name: _instance(name, row) for name, row in rows.items()}

    def custody(self) -> Mapping[str, Any] | None:
        """Return the `custody` table as it was written, None where there is none."""
        table = self._root().get("custody")
        if table is not None and not isinstance(table, dict):
            raise _unusable("`custody` is not a table")
        return table

    def providers(self) -> Mapping[str, Mapping[str, Any]]:
        """Return what is configured for each provider, by its host name."""
        return self._tables("providers")

    def enabled(self) -> Mapping[str, bool]:
        """Return which integrations are enabled or disabled by name; the others are as they declare."""
        rows = self._tables("integrations")
        if any(row.keys() != {"enabled"} or not isinstance(row["enabled"], bool) for row in rows.values()):
            raise _unusable("an integration has a member that it does not know")
        return {key: row["enabled"] for key, row in rows.items()}

    def enable(self, key: str, *, enabled: bool) -> None:
        """Enable an integration, or disable it."""
        with self._editing() as edit:
            edit(with_members, ("integrations", key), {"enabled": enabled})

    def _tables(self, name: str) -> dict[str, dict[str, Any]]:
        rows = self._root().get(name, {})
        if not isinstance(rows, dict) or not all(isinstance(row, dict) for row in rows.values()):
            raise _unusable(f"`{name}` is not a table of tables")
        return rows

    def _root(self) -> dict[str, Any]:
        text = self._text()
        try:
            root = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise _unusable("it is not valid TOML") from error
        if text and root.get("format") != FORMAT:
            raise _unusable(f'it needs format = "{FORMAT}"')
        return root

    def add(self, instance: Instance) -> None:
        """Remember an instance, or what changed of one of the same name; its schedule stays as it is."""
        known = self.all().get(instance.name, Instance(instance.name))
        table = ("instances", instance.name)
        gone = dict.fromkeys(known.options.keys() - instance.options.keys())
        row = {
            "folder": None if instance.folder is None else str(instance.folder),
            "streams": list(instance.streams) or None,
        }
        with self._editing() as edit:
            if (known.folder, known.streams) != (instance.folder, instance.streams):
                edit(with_members, table, row)
            edit(with_members, (*table, "options"), {**instance.options, **gone})
            for name, descriptor in instance.bindings.items():
                before = known.bindings.get(name)
                if descriptor != before:
                    lost = dict.fromkeys((before or {}).keys() - descriptor.keys())
                    edit(with_members, (*table, "bindings", name), {**descriptor, **lost})

    def set_schedule(self, name: str, members: Mapping[str, Any]) -> None:
        """Remember a schedule in place of the one that an instance has. Raise `not_found` without the instance."""
        gone = dict.fromkeys((self.find(name).schedule or {}).keys() - members.keys())
        with self._editing() as edit:
            edit(with_members, ("instances", name, "schedule"), {**members, **gone})

    def remove_schedule(self, name: str) -> None:
        """Forget the schedule of an instance. Raise `not_found` without the instance."""
        self.find(name)
        with self._editing() as edit:
            edit(without_table, ("instances", name, "schedule"))

    def opt_in(self, name: str, release: str) -> None:
        """Have an instance served by a release, in place of the one before; an instance that is not there is made."""
        with self._editing() as edit:
            edit(with_members, ("instances", name), {"release": release})

    def opt_out(self, name: str, *, forget: bool) -> None:
        """Take the release of an instance away, or with `forget` all that there is of the instance."""
        with self._editing() as edit:
            if forget:
                edit(without_table, ("instances", name))
            else:
                edit(with_members, ("instances", name), {"release": None})

    def remove(self, name: str) -> None:
        """Forget an instance with its options, bindings and schedule. Raise `not_found` without it."""
        self.find(name)
        with self._editing() as edit:
            edit(without_tables, ("instances", name))

    def find(self, name: str) -> Instance:
        """Return an instance by its name, or raise `not_found`."""
        instance = self.all().get(valid_name(name))
        if instance is None:
            raise refuse("not_found", "No instance of this name is set up.", command="headwater instances list")
        return instance

    @contextmanager
    def _editing(self) -> Iterator[Callable[..., None]]:
        """Apply edits to the file's text. It is replaced whole or, where one is refused, not at all."""
        before = self._text()
        text = before or f'format = "{FORMAT}"\n'

        def edit(change: Callable[..., str], *arguments: Any) -> None:
            nonlocal text
            text = change(text, *arguments)

        try:
            yield edit
        except ValueError as error:
            raise _unusable("the instance is written in a way that only you can edit") from error
        if text != before:
            self._replace(text)

    def _text(self) -> str:
        try:
            status = self._path.stat()
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
                raise _unusable("it must be a file that only you can read (chmod 600)", rule="config_not_private")
            if status.st_size > limits.CONFIG_BYTES:
                raise _unusable("it is larger than 1 MiB", rule="config_too_large")
            return self._path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            raise _unusable("it cannot be read") from error

    def _replace(self, text: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)


def valid_name(name: str) -> str:
    """Return a name of the form `<connector>/<instance>`, or refuse it."""
    if not _NAME.fullmatch(name):
        raise refuse("invalid_input", "An instance is named <connector>/<instance>, such as git/here.")
    return name


def _instance(name: str, row: Any) -> Instance:
    if not _NAME.fullmatch(name) or not isinstance(row, dict) or not _MEMBERS.issuperset(row):
        raise _unusable("an instance has a name or a member that it does not know")
    options, streams, folder = row.get("options", {}), row.get("streams", []), row.get("folder")
    schedule, bindings = row.get("schedule"), row.get("bindings", {})
    well_typed = isinstance(options, dict) and isinstance(folder, str | None) and isinstance(schedule, dict | None)
    if not well_typed or not isinstance(streams, list) or not all(isinstance(item, str) for item in streams):
        raise _unusable("an instance has a member of the wrong type")
    if not isinstance(bindings, dict) or not all(is_extension(*item) for item in bindings.items()):
        raise _unusable("a binding is no table of what JSON can say, or has a name that is not its writer's to give")
    place = Path(folder) if folder else None
    return Instance(name, options, tuple(streams), place, schedule, bindings, _release(row))


def _release(row: Mapping[str, Any]) -> str | None:
    """Return the release that an instance opted in to. Only what has one pays for looking at it."""
    if "release" not in row:
        return None
    from headwater.manifest.document import is_digest

    release = row["release"]
    if not is_digest(release):
        raise _unusable("the release of an instance is named by 64 hexadecimal digits, in lower case")
    return str(release)


def _unusable(what: str, rule: str | None = None) -> HeadwaterError:
    data: dict[str, Any] = {"configuration_rule": rule} if rule else {}
    return refuse("invalid_configuration", f"collect.toml cannot be used: {what}.", **data)
