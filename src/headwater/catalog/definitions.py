"""Definitions that a person names on the command line: read with what they share, lowered into a cache, recorded.

    definitions/<digest>/definition.json    one lowered definition, with nothing left to read beside it
    definitions/instances.toml              which of them serves the instance of a connector

The digest is of every file that was read, each by its path below the definitions' root, and of the release that lowered
them. So an entry is what its digest says, and is reused as it is.
"""

import json
import os
import shutil
import tomllib
from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from headwater import limits
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.definition import Definition
from headwater.manifest.document import digest
from headwater.manifest.faults import Fault
from headwater.manifest.integration import Integration
from headwater.manifest.provider_definition import NAME, ProviderDefinition, examine_provider
from headwater.owned import folder, read_at
from headwater.version import RELEASE

FORMAT: Final = "headwater-definitions/1"
_LOWERED: Final = "definition.json"
_RECORDS: Final = "instances.toml"
_DIGEST_LENGTH: Final = 64


class Recorded(msgspec.Struct, frozen=True):
    """The instance that a connector's definition runs as, and the lowered definition that serves it."""

    connector: str
    instance: str
    digest: str


class Defined(msgspec.Struct, frozen=True, dict=True):
    """A connector that is a definition and nothing else: it serves an instance as a connector's folder does."""

    provider: ProviderDefinition
    path: Path
    digest: str = ""
    version: str = ""

    @property
    def default_profile(self) -> str:
        """The way to sign in where none is chosen."""
        return self.provider.profile

    @property
    def name(self) -> str:
        """The connector."""
        return self.provider.id

    @cached_property
    def integration(self) -> Integration:
        """How a person signs in."""
        return Integration(
            key=self.provider.id,
            version=self.version,
            provider=self.provider.base_url.partition("://")[2].partition("/")[0],
            display_name=self.provider.operations.title or self.provider.id,
            description="",
            capabilities=frozenset({"account"}),
            methods=self.provider.methods,
            auth_type=next(iter(self.provider.methods.values())).flow,
            enabled_by_default=True,
            actions=frozenset(),
        )

    @property
    def option_rules(self) -> Mapping[str, Any]:
        """Its one option: where the service is."""
        return {"endpoint": {"type": "string", "default": self.provider.base_url}}

    @property
    def definition(self) -> Definition:
        """What it can be asked."""
        return self.provider.operations

    @property
    def program(self) -> str:
        """See `ConnectorFolder.program`: it has no code."""
        return ""

    def selection(self, configuration_revision: str) -> str:
        """See `ConnectorFolder.selection`."""
        return configuration_revision

    def verify(self) -> None:
        """See `ConnectorFolder.verify`: what was lowered is this user's own, and read as it is."""


def examined(path: Path, root: Path | None) -> tuple[ProviderDefinition | None, str, list[Fault]]:
    """Read a definition file and what it shares, each once. Return it with its digest, or None and the faults.

    It is read a second time from what it is lowered to, which is what serves an instance later: so it is described
    alike before it is kept and after (CLI-567), and what could not be read back is refused at once.

    `root` is the folder of what definitions share; by default the one above that of the file. Raise OSError where the
    file itself cannot be read.
    """
    above = path.absolute().parent.parent if root is None else root
    text = _read(path)
    read = {os.path.relpath(path.absolute(), above.absolute()): text}

    def shared(name: str) -> bytes | None:
        try:
            with folder(above.resolve()) as within, folder(Path(name).parent, within) as inner:
                read[name] = read_at(inner, Path(name).name, limits.MANIFEST_BYTES, private=False).reveal()
        except OSError:
            return None
        return read[name]

    provider, faults = examine_provider(text, path.stem, toml=path.suffix != ".json", shared=shared)
    if provider is not None:
        provider, faults = _read_back(_lowered(provider))
    parts = [[name, sha256(content).hexdigest()] for name, content in sorted(read.items())]
    return provider, digest({"release": RELEASE, "files": parts}), faults


class Definitions:
    """The definitions that one state directory has lowered. Whoever changes it is the only one who does (`lock`)."""

    def __init__(self, place: Path) -> None:
        self._place = place

    @property
    def lock(self) -> Path:
        """The file to lock while anything is changed."""
        return self._place / ".lock"

    def keep(self, provider: ProviderDefinition, digest: str) -> None:
        """Put a lowered definition into the cache, whole or not at all; one that is there and can be read stays."""
        entry = self._place / digest
        if self.serving(digest) is not None:
            return
        shutil.rmtree(entry, ignore_errors=True)
        temporary = self._place / f".{digest}.{os.urandom(8).hex()}"
        temporary.mkdir(0o700)
        try:
            _write(temporary / _LOWERED, _lowered(provider))
            temporary.rename(entry)
        except OSError:
            shutil.rmtree(temporary, ignore_errors=True)
            if not entry.is_dir():  # another command may have put it there meanwhile
                raise

    def serving(self, digest: str) -> Defined | None:
        """Return a connector that was lowered; None where the cache has none that can be read."""
        try:
            text = _read(self._place / digest / _LOWERED)
        except OSError:
            return None
        provider, _ = _read_back(text)
        return None if provider is None else Defined(provider, self._place / digest, digest)

    def recorded(self) -> dict[str, Recorded]:
        """Return the instance of each connector; nothing where the file is not as this class writes it (CLI-1065)."""
        try:
            root = tomllib.loads(_read(self._place / _RECORDS).decode())
            rows = {name: Recorded(name, **row) for name, row in root["connectors"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {}
        fits = root.get("format") == FORMAT and all(self._is_ours(row) for row in rows.values())
        return rows if fits else {}

    def record(self, row: Recorded) -> None:
        """Note which definition serves a connector's instance, in the place of the one before.

        Raise `invalid_configuration` where as many connectors are recorded as can be.
        """
        rows = self.recorded() | {row.connector: row}
        if len(rows) > limits.DEFINED_CONNECTORS:
            message = f"As many as {limits.DEFINED_CONNECTORS} connectors were defined in this way."
            raise refuse("invalid_configuration", message, safe="Nothing was recorded or sent.")
        lines = [f'format = "{FORMAT}"']
        for one in rows.values():
            lines += [f"[connectors.{one.connector}]", f'instance = "{one.instance}"', f'digest = "{one.digest}"']
        temporary = self._place / f".{_RECORDS}.{os.urandom(8).hex()}"
        _write(temporary, "\n".join([*lines, ""]).encode())
        temporary.rename(self._place / _RECORDS)

    def _is_ours(self, row: Recorded) -> bool:
        """Whether a row names a definition that is in the cache, by names as they are written here."""
        texts = (row.connector, row.instance, row.digest)
        if not all(isinstance(text, str) and NAME.fullmatch(text) for text in texts):
            return False
        return len(row.digest) == _DIGEST_LENGTH and (self._place / row.digest / _LOWERED).is_file()


def _lowered(provider: ProviderDefinition) -> bytes:
    return json.dumps({"id": provider.id, **provider.root}, ensure_ascii=False).encode()


def _read_back(text: bytes) -> tuple[ProviderDefinition | None, list[Fault]]:
    return examine_provider(text, "lowered", toml=False)


def refused() -> HeadwaterError:
    """Refuse a definition file, without a word of what it holds (CLI-1057, CLI-1093)."""
    message = "The definition cannot be used; this says why: headwater definitions check FILE"
    return refuse("invalid_input", message, safe="Nothing was kept or sent.", field="definition")


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(limits.MANIFEST_BYTES + 1)


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
