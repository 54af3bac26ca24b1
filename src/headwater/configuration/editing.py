"""Giving an instance its endpoint in the configuration file: one place is added to, and every other byte stays."""

import re
import tomllib
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any, Final

from headwater.configuration.files import read_owned, replace_owned
from headwater.configuration.model import Configuration, Entry
from headwater.configuration.reading import BOM, NEWEST, Shipped, parse
from headwater.configuration.refusals import unusable
from headwater.configuration.selecting import DISABLED
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.endpoints import is_reachable
from headwater.toml_tables import line_end, with_members

_MINE: Final = "the instance is written in a way that only you can edit"


def give_endpoint(
    path: Path,
    connector: str,
    instance: str,
    endpoint: str,
    *,
    admit: Callable[[Entry], None],
    shipped: Shipped = frozenset,
) -> Configuration:
    """Write the endpoint of an instance, and return the configuration as it then is. What is written already stays.

    `admit` is shown the instance with its new endpoint before anything is written, and raises where a connection would
    be stranded (CLI-234). Raise `invalid_input` of the field `endpoint` for one that cannot be used, or an instance
    with pins; `lifecycle_conflict` where the instance has another one; `invalid_configuration` where the file is no
    /5, or the connector is disabled; `revision_conflict` where somebody else wrote meanwhile. The file is then as it
    was (CLI-229 to CLI-245).
    """
    if not is_reachable(endpoint):
        raise _invalid("The endpoint has to be an https address without a user, a query or a fragment.")
    before = read_owned(path)
    known = parse(before, shipped)
    if not _lacks_endpoint(known, connector, instance, endpoint):
        return known
    try:
        after = with_endpoint(before.decode(), connector, instance, endpoint).encode()
    except ValueError as error:
        raise unusable(_MINE) from error
    entry = parse(after, shipped).find(connector, instance)
    if entry is None or entry.endpoint != endpoint:
        raise unusable(_MINE)
    admit(entry)
    replace_owned(path, before, after)
    return _read_back(path, before, entry, shipped)


def with_endpoint(text: str, connector: str, instance: str, endpoint: str) -> str:
    """Return a configuration's text with the endpoint added in one place, or raise ValueError."""
    mark = BOM if text.startswith(BOM) else ""
    before = text.removeprefix(mark)
    wanted = tomllib.loads(before)
    _put(wanted, connector, instance, endpoint)
    try:
        after = _with_tables(before, connector, instance, endpoint)
    except ValueError:  # the tables have no headers of their own
        after = _within(before, connector, instance, endpoint)
    after = _added(before, after)
    if tomllib.loads(after) != wanted:
        raise ValueError(instance)
    return mark + after


def _invalid(message: str) -> HeadwaterError:
    return refuse("invalid_input", message, safe="Nothing was written.", field="endpoint")


def _lacks_endpoint(known: Configuration, connector: str, instance: str, endpoint: str) -> bool:
    """Whether the endpoint is to be written; False where it is there, and raised where it may not be."""
    entry = known.find(connector, instance)
    if entry is not None and entry.pins is not None:
        raise _invalid("The endpoint of this instance belongs to the program that it pins.")
    if known.format != NEWEST:
        raise unusable("only a file of the newest format is written", configuration_format=known.format)
    if connector in known.disabled:
        raise unusable(DISABLED)
    if entry is None or entry.endpoint is None:
        return True
    if entry.endpoint != endpoint:
        raise refuse(
            "lifecycle_conflict",
            "The instance has another endpoint: another host takes another instance, of another name.",
            stage="configuration",
            next_action="check_configuration",
            safe="The configuration was left as it is.",
            field="endpoint",
        )
    return False


def _read_back(path: Path, before: bytes, entry: Entry, shipped: Shipped) -> Configuration:
    """Return what was written as it is read; where it does not hold the endpoint, bring the old text back (CLI-244)."""
    written = read_owned(path)
    found = parse(written, shipped)
    if found.find(entry.connector, entry.instance) != entry:
        replace_owned(path, written, before)
        raise unusable("it did not hold the endpoint after it was written; it is as it was before")
    return found


def _with_tables(text: str, connector: str, instance: str, endpoint: str) -> str:
    if connector not in tomllib.loads(text).get("connectors", {}):
        text = with_members(text, ("connectors", connector), {"enabled": True})
    return with_members(text, ("connectors", connector, "instances", instance), {"endpoint": endpoint})


def _within(text: str, connector: str, instance: str, endpoint: str) -> str:
    """Add the endpoint where tables are written in one line, or by dotted keys."""
    import tomlkit

    document = tomlkit.parse(text)
    _put(document, connector, instance, endpoint, tomlkit.inline_table)
    return tomlkit.dumps(document)


def _put(
    root: Any, connector: str, instance: str, endpoint: str, table: Callable[[], MutableMapping[str, Any]] = dict
) -> None:
    """Set the endpoint in what was read of a file; `table` makes each table that it lacks."""
    row: Any = table()
    missing = ["connectors", connector, "instances", instance]
    while missing and missing[0] in root:
        root = root[missing.pop(0)]
    if not missing:
        root["endpoint"] = endpoint
        return
    row["endpoint"] = endpoint
    for name in reversed(missing[1:]):
        outer = table()
        if name == "instances":
            outer["enabled"] = True
        outer[name] = row
        row = outer
    root[missing[0]] = row


def _added(before: str, after: str) -> str:
    """Return the text before with what the one after adds: white space that was lost on the way is brought back."""
    start = _alike(before, after)
    end = _alike(before[start:][::-1], after[start:][::-1])
    more = after[start : len(after) - end]
    if line_end(before) == "\r\n":
        more = re.sub(r"(?<!\r)\n", "\r\n", more)
    return before[:start] + more + before[start:]


def _alike(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common."""
    pairs = zip(one, other, strict=False)
    return next((place for place, (mine, yours) in enumerate(pairs) if mine != yours), min(len(one), len(other)))
