"""The definitions that one state directory has lowered, and which of them serves the instance of a connector.

    definitions/<digest>/definition.json    one lowered definition
    definitions/instances.toml              a row a connector

An entry is what its digest says, and is reused as it is.
"""

import os
import shutil
import tomllib
from pathlib import Path
from typing import Final

import msgspec

from headwater import limits
from headwater.catalog.defined import Defined, lowered, read_back
from headwater.errors import refuse
from headwater.manifest.provider_definition import NAME, ProviderDefinition

FORMAT: Final = "headwater-definitions/1"
_LOWERED: Final = "definition.json"
_RECORDS: Final = "instances.toml"
_DIGEST_LENGTH: Final = 64


class Recorded(msgspec.Struct, frozen=True):
    """The instance that a connector's definition runs as, and the lowered definition that serves it."""

    connector: str
    instance: str
    digest: str


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
        for left in (entry, *self._place.glob(".*.*")):  # also what a command that was killed left of its own
            shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
        temporary = self._place / f".{digest}.{os.urandom(8).hex()}"
        temporary.mkdir(0o700)
        try:
            _write(temporary / _LOWERED, lowered(provider))
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
        provider, _ = read_back(text)
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


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(limits.MANIFEST_BYTES + 1)


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
