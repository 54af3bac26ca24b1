"""The definition of a connector, among the files of a release.

A release says of none of its files what it is. A connector's definition is the TOML or JSON file of the format of
definitions whose `id` is the connector; without an `id`, the file's own name is. What it shares with others stands
below the folder above its own, as for a definition that is named on the command line.
"""

from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from headwater import limits
from headwater.manifest.definition import FORMAT, document_of
from headwater.manifest.provider_definition import ProviderDefinition, examine_provider
from headwater.operate.release_index import File

Read = Callable[[str], bytes]
"""Reads a file of the release by its path; raises KeyError where there is none."""
_MARK: Final = FORMAT.encode()
_KINDS: Final = frozenset({".toml", ".json"})


class Found(NamedTuple):
    """A file that defines a connector. `provider` is None where it cannot be used."""

    path: str
    provider: ProviderDefinition | None


def definitions_of(connector: str, files: Iterable[File], read: Read) -> list[Found]:
    """Return every definition of a connector among files. What does not name it is read, and not understood."""
    found = []
    for file in files:
        path = PurePosixPath(file.path)
        if path.suffix not in _KINDS or file.size > limits.MANIFEST_BYTES:
            continue
        text = read(file.path)
        if _MARK in text and (path.stem == connector or connector.encode() in text) and _is_of(connector, path, text):
            found.append(Found(file.path, _provider(path, text, read)))
    return found


def _is_of(connector: str, path: PurePosixPath, text: bytes) -> bool:
    root, faults = document_of(text, toml=path.suffix == ".toml")
    if faults:
        return path.stem == connector
    return root.get("format") == FORMAT and root.get("id", path.stem) == connector


def _provider(path: PurePosixPath, text: bytes, read: Read) -> ProviderDefinition | None:
    def shared(name: str) -> bytes | None:
        try:
            return read(str(path.parent.parent / name))
        except KeyError:
            return None

    return examine_provider(text, path.stem, toml=path.suffix == ".toml", shared=shared)[0]
