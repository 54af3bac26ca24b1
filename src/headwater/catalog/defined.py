"""A connector that is a definition and nothing else: read with what it shares, lowered, and serving an instance.

The digest of one is of every file that was read, each by its path below the definitions' root, and of the release that
lowered them.
"""

import json
import os
from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from headwater import limits
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.definition import Definition
from headwater.manifest.document import digest
from headwater.manifest.faults import Fault
from headwater.manifest.integration import Integration
from headwater.manifest.provider_definition import ProviderDefinition, examine_provider
from headwater.owned import folder, plain_at
from headwater.version import RELEASE


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
    with path.open("rb") as file:
        text = file.read(limits.MANIFEST_BYTES + 1)
    read = {os.path.relpath(path.absolute(), above.absolute()): text}

    def shared(name: str) -> bytes | None:
        try:
            with folder(above.resolve()) as within, folder(Path(name).parent, within) as inner:
                read[name] = plain_at(inner, Path(name).name, limits.MANIFEST_BYTES)
        except OSError:
            return None
        return read[name]

    provider, faults = examine_provider(text, path.stem, toml=path.suffix != ".json", shared=shared)
    if provider is not None:
        provider, faults = read_back(lowered(provider))
    parts = [[name, sha256(content).hexdigest()] for name, content in sorted(read.items())]
    return provider, digest({"release": RELEASE, "files": parts}), faults


def lowered(provider: ProviderDefinition) -> bytes:
    """Return a definition with nothing left to read beside it."""
    return json.dumps({"id": provider.id, **provider.root}, ensure_ascii=False).encode()


def read_back(text: bytes) -> tuple[ProviderDefinition | None, list[Fault]]:
    """Read what a definition was lowered to, or return None and the faults."""
    return examine_provider(text, "lowered", toml=False)


def refused() -> HeadwaterError:
    """Refuse a definition file, without a word of what it holds (CLI-1057, CLI-1093)."""
    message = "The definition cannot be used; this says why: headwater definitions check FILE"
    return refuse("invalid_input", message, safe="Nothing was kept or sent.", field="definition")
