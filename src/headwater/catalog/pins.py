"""What is remembered of an added connector, beside its folder: each file as it was accepted, and where it came from."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from headwater.catalog.tree import Tree, read_tree
from headwater.errors import refuse

FORMAT: Literal["headwater-added/1"] = "headwater-added/1"


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An added connector as it was accepted. `built` are the entries of its folder that Headwater itself made.

    `manifest` and `package` are the texts that were accepted, which a changed folder no longer tells.
    """

    format: Literal["headwater-added/1"]
    digest: str
    tree: Tree
    manifest: str
    package: str
    built: tuple[str, ...]
    source: str
    added_at: str

    def changes(self, folder: Path) -> list[str]:
        """Say what is otherwise in the folder now, a file a sentence."""
        return self.tree.changes(read_tree(folder, self.built))


def pin(folder: Path, *, built: Sequence[str], source: str, added_at: str) -> Pin:
    """Pin the files of an added connector's folder as they are now."""
    tree = read_tree(folder, built)
    manifest, package = (folder / "manifest.json").read_text("utf-8"), (folder / "connector.toml").read_text("utf-8")
    made = Pin(FORMAT, tree.digest, tree, manifest, package, tuple(built), source, added_at)
    path = _beside(folder)
    path.write_bytes(msgspec.json.encode(made))
    path.chmod(0o600)
    return made


def pin_of(folder: Path) -> Pin:
    """Return the pin of an added connector, or raise `connector_changed` where it cannot be read."""
    try:
        return msgspec.json.decode(_beside(folder).read_bytes(), type=Pin)
    except (OSError, msgspec.DecodeError) as error:
        raise refuse("connector_changed", "What was remembered of the added connector cannot be read.") from error


def _beside(folder: Path) -> Path:
    return folder.parent / "added.json"
