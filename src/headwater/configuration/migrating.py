"""Moving legacy entries to instances of connectors: planned on the bytes of a file, and read back before it is written.

A moved entry keeps its identity, its revisions, its permissions and its program, byte for byte; only its names and
its place change (CLI-1001, CLI-1002). It always carries its pins: nothing here derives what a short form would be.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from headwater import limits
from headwater.configuration.files import read_owned
from headwater.configuration.model import CATALOG, Configuration, Entry
from headwater.configuration.reading import NEWEST, Shipped, parse, text_of
from headwater.configuration.refusals import unusable
from headwater.configuration.revisions import executable_selection
from headwater.errors import HeadwaterError

_FORMAT: Final = re.compile(r"""^[ \t]*(?:format|"format"|'format')[ \t]*=[ \t]*["']connectors-local/""", re.MULTILINE)


class Item(Struct, frozen=True):
    """What becomes of one legacy entry: the connector that it moves to, or the reason that it stays."""

    entry: Entry
    connector: str | None = None
    reason: str = ""
    differing_field: str = ""


class Plan(Struct, frozen=True):
    """A migration: the bytes it was made from, the bytes it comes to (the same where nothing moves), and its items."""

    before: bytes
    after: bytes
    format_before: str
    items: tuple[Item, ...]

    @property
    def format_after(self) -> str:
        """The format that the file then has."""
        return self.format_before if self.before == self.after else NEWEST


def plan(content: bytes, shipped: Shipped) -> Plan:
    """Plan the migration of a configuration, or raise `invalid_configuration`: `config_too_large`, too (CLI-1014)."""
    found = parse(content, shipped)
    items = tuple(_item(found, entry) for entry in found.entries if entry.in_adapters)
    after = content
    if any(item.connector for item in items):
        after = _moved(content, items)
    elif not items and found.format != NEWEST:
        after = _renamed(content)
    if len(after) > limits.CONFIG_BYTES:
        sizes: dict[str, Any] = {"configuration_bytes": len(after), "configuration_limit": limits.CONFIG_BYTES}
        raise unusable("it would be larger than 1 MiB once migrated", "config_too_large", **sizes)
    _check(found, parse(after, shipped), items)
    return Plan(content, after, found.format, items)


def told(item: Item) -> dict[str, Any]:
    """Return an item as the result shows it (CLI-1017)."""
    entry, connector = item.entry, item.connector or (None if item.entry.unmigrated else item.entry.connector)
    row: dict[str, Any] = {"alias": entry.alias, "disposition": "migrated" if item.connector else "kept"}
    if connector is not None:
        row.update({"connector": connector, "instance": entry.instance})
    if item.connector:
        row.update({"form": "pinned", "pinned_field": "configuration_revision"})
    else:
        row["reason"] = item.reason
    if item.differing_field:
        row["differing_field"] = item.differing_field
    return {**row, "before": _identity(entry), "after": _identity(entry)}


def _identity(entry: Entry) -> dict[str, Any]:
    profiles = () if entry.permissions is None else entry.permissions.profiles
    return {
        "instance_id": entry.instance_id,
        "configuration_revision": entry.configuration_revision,
        "executable_selection": executable_selection(entry),
        "custody_items": [f"{entry.alias}/{profile}" for profile in profiles],
    }


def _item(found: Configuration, entry: Entry) -> Item:
    """Decide what becomes of an entry (CLI-1007 to CLI-1012, CLI-1016)."""
    assert entry.pins is not None
    if entry.pins.adapter_id != CATALOG:
        return Item(entry, reason="implementation_unmapped")
    connector = entry.connector
    if entry.unmigrated:
        words = entry.pins.executable.args
        is_named = "--connector" in words or _names_provider(words)
        return Item(entry, reason="connector_undeclared" if is_named else "native_configuration_unreadable")
    if found.format == "connectors-local/1":
        return Item(entry, reason="selection_changes", differing_field="private_protocol")
    taken = {other.instance for other in found.entries if other.connector == connector and not other.in_adapters}
    if connector in found.disabled or entry.alias in taken:
        return Item(entry, reason="instance_conflict")
    return Item(entry, connector)


def _names_provider(words: tuple[str, ...]) -> bool:
    """Whether an entry's native configuration is its owner's alone, and names a provider (CLI-1011)."""
    files = [value for option, value in pairwise(words) if option == "--local-config"]
    try:
        native = json.loads(read_owned(Path(files[0]))) if files else None
    except (HeadwaterError, ValueError, RecursionError):
        return False
    return isinstance(native, dict) and isinstance(native.get("provider"), str)


def _moved(content: bytes, items: tuple[Item, ...]) -> bytes:
    import tomlkit

    root = tomllib.loads(text_of(content))
    root["format"] = NEWEST
    for item in items:
        if item.connector is not None:
            row = {"alias": item.entry.alias, **root["adapters"].pop(item.entry.alias)}
            connector = root.setdefault("connectors", {}).setdefault(item.connector, {"enabled": True})
            connector.setdefault("instances", {})[item.entry.alias] = row
    return tomlkit.dumps(root).encode()


def _renamed(content: bytes) -> bytes:
    """Change the value of the format, and no other byte (CLI-1018)."""
    text = content.decode()
    wanted: Mapping[str, Any] = {**tomllib.loads(text_of(content)), "format": NEWEST}
    for match in _FORMAT.finditer(text):
        after = f"{text[: match.end()]}5{text[match.end() + 1 :]}".encode()
        if tomllib.loads(text_of(after)) == wanted:
            return after
    raise unusable("its format is written in a way that only you can change")


def _check(before: Configuration, after: Configuration, items: tuple[Item, ...]) -> None:
    """Hold what the new file says to what the old one said (CLI-1013, CLI-1014)."""
    names = {item.entry.alias: item.connector for item in items if item.connector}
    wanted = {
        replace(entry, connector=names[entry.alias], in_adapters=False, unmigrated=False)
        if entry.alias in names
        else entry
        for entry in before.entries
    }
    if set(after.entries) != wanted:
        raise unusable("it would not say the same once migrated")
