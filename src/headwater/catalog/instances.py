"""The instances a person set up, in `collect.toml`: owner-only, and edited so that every other byte stays."""

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwater import limits
from headwater.errors import HeadwaterError, refuse

FORMAT = "headwater-collect/1"
_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}"
_NAME = re.compile(f"{_PART}/{_PART}")
_MEMBERS = frozenset({"folder", "streams", "options"})


@dataclass(frozen=True)
class Instance:
    """A configured connector, such as `git/here`. `folder` is set for a connector that is run from its folder."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    streams: tuple[str, ...] = ()
    folder: Path | None = None

    @property
    def connector(self) -> str:
        """The part before the slash."""
        return self.name.partition("/")[0]


class Instances:
    """Reads and adds the instances of `collect.toml`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def all(self) -> dict[str, Instance]:
        """Return every instance, by name; none where there is no file yet."""
        text = self._text()
        try:
            root = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise _unusable("it is not valid TOML") from error
        if text and root.get("format") != FORMAT:
            raise _unusable(f'it needs format = "{FORMAT}"')
        rows = root.get("instances", {})
        if not isinstance(rows, dict):
            raise _unusable("`instances` is not a table")
        return {name: _instance(name, row) for name, row in rows.items()}

    def add(self, instance: Instance) -> None:
        """Remember an instance, in place of one of the same name. The file is replaced whole or not at all."""
        import tomlkit

        self.all()
        document = tomlkit.parse(self._text() or f'format = "{FORMAT}"\n')
        row = tomlkit.table()
        if instance.folder is not None:
            row["folder"] = str(instance.folder)
        if instance.streams:
            row["streams"] = list(instance.streams)
        row["options"] = dict(instance.options)
        table = document.setdefault("instances", tomlkit.table(is_super_table=True))
        table[instance.name] = row
        self._replace(tomlkit.dumps(document))

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
    well_typed = isinstance(options, dict) and isinstance(folder, str | None)
    if not well_typed or not isinstance(streams, list) or not all(isinstance(item, str) for item in streams):
        raise _unusable("an instance has a member of the wrong type")
    return Instance(name, options, tuple(streams), Path(folder) if folder else None)


def _unusable(what: str, rule: str | None = None) -> HeadwaterError:
    data = {"configuration_rule": rule} if rule else {}
    return refuse("invalid_configuration", f"collect.toml cannot be used: {what}.", **data)
