"""The configuration file, read to the letter: any defect refuses all of it, and none is repeated.

    format = "connectors-local/5"
    owner_uid = 1000
    [connectors.zendesk.instances.support]
    endpoint = "https://acme.zendesk.com"

Five formats are read; what each allows is in `docs/reference/configuration.md`.
"""

import os
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, get_args

from msgspec.structs import replace

from headwater import limits
from headwater.configuration import checks, rows
from headwater.configuration.files import read_owned
from headwater.configuration.model import CATALOG, Configuration, Consumer, Entry, Executable, Format, unpinned
from headwater.configuration.refusals import unusable

NEWEST: Final = "connectors-local/5"
Shipped = Callable[[], Collection[str]]
BOM: Final = "\ufeff"
_ALL: Final = frozenset(
    {"format", "owner_uid", "default_adapter", "secret_service_socket", "adapters", "approval_clock"}
)


def read(path: Path, shipped: Shipped = frozenset) -> Configuration:
    """Read the configuration at a path, or raise `invalid_configuration` with its rule.

    `shipped` returns the connectors that this build brings along, and is asked where there is a legacy catalog entry:
    one that serves such a connector has its names.
    """
    return parse(read_owned(path), shipped)


def read_if_there(path: Path, shipped: Shipped = frozenset) -> Configuration:
    """Read the configuration, or return an empty one where there is no file. Any other file is refused as by `read`."""
    if not os.path.lexists(path):
        return Configuration(NEWEST, os.geteuid())
    return read(path, shipped)


def parse(content: bytes, shipped: Shipped = frozenset) -> Configuration:
    """Read a configuration's bytes."""
    root = _root(content)
    format_ = checks.choice(root.get("format"), get_args(Format), "format")
    checks.closed(root, _known(format_), "the file")
    entries = (*_legacy(root, shipped), *_instances(root))
    _check_entries(entries)
    socket = root.get("secret_service_socket")
    path = None if socket is None else checks.absolute(socket, "secret_service_socket")
    found = Configuration(
        format=format_,
        owner_uid=_owner(root),
        entries=entries,
        secret_service_socket=path,
        consumers=_consumers(root, entries),
        custody=rows.custody(root["custody"], path) if "custody" in root else None,
        disabled=frozenset(name for name, row in root.get("connectors", {}).items() if row.get("enabled") is False),
        default_adapter=_default_adapter(root, entries),
        default_instance=_default_instance(root, entries),
        approval_clock=_approval_clock(root),
    )
    _check_protocols(format_, entries)
    return found


def _approval_clock(root: Mapping[str, Any]) -> str | None:
    """Return the format of the clock that approvals are to be timed by; nothing else of it is read (CLI-758)."""
    if "approval_clock" not in root:
        return None
    named = checks.table(root["approval_clock"], "approval_clock").get("format")
    return named if isinstance(named, str) else ""


def beside(configuration: Configuration, collected: Iterable[tuple[str, str]]) -> Configuration:
    """Return a configuration with the instances that only `collect.toml` has, each a connector and a name.

    Raise `invalid_configuration` where one would share its id with another: the one's account is not the other's.
    """
    known = {(entry.connector, entry.instance) for entry in configuration.instances}
    entries = (*configuration.entries, *(unpinned(*pair) for pair in collected if pair not in known))
    _check_unique([entry.alias for entry in entries], "alias")
    _check_unique([entry.instance_id for entry in entries], "instance_id")
    return replace(configuration, entries=entries)


def text_of(content: bytes) -> str:
    """Return a configuration's text, without a byte order mark."""
    try:
        return content.decode("utf-8").removeprefix(BOM)
    except UnicodeDecodeError as error:
        raise unusable("it is not UTF-8") from error


def _root(content: bytes) -> dict[str, Any]:
    if len(content) > limits.CONFIG_BYTES:
        raise unusable("it is larger than 1 MiB")
    try:
        return tomllib.loads(text_of(content))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise unusable("it is not valid TOML") from error


def _known(format_: Format) -> frozenset[str]:
    """Return the members of a format: each one adds to the one before (CLI-152 to CLI-156)."""
    known = _ALL
    if format_ >= "connectors-local/3":
        known |= {"consumers"}
    if format_ >= "connectors-local/4":
        known |= {"custody"}
    if format_ >= "connectors-local/5":
        known |= {"default_instance", "connectors"}
    return known


def _owner(root: Mapping[str, Any]) -> int:
    owner = root.get("owner_uid")
    if type(owner) is not int:
        raise unusable("owner_uid is not the number of a user")
    if owner != os.geteuid():
        raise unusable("it is another user's", "owner_uid_mismatch")
    return owner


def _legacy(root: Mapping[str, Any], shipped: Shipped) -> list[Entry]:
    def connector_of(executable: Executable) -> str | None:
        words = executable.args
        named = [value for option, value in pairwise(words) if option == "--connector"]
        return named[0] if named and named[0] in shipped() else None

    table = checks.table(root.get("adapters", {}), "[adapters]")
    return [rows.legacy(alias, row, connector_of) for alias, row in table.items()]


def _instances(root: Mapping[str, Any]) -> list[Entry]:
    found = []
    for connector, row in checks.table(root.get("connectors", {}), "[connectors]").items():
        where = "a connector"
        checks.selector(connector, f"the name of {where}")
        checks.closed(checks.table(row, where), {"enabled", "instances"}, where)
        enabled = row.get("enabled", True)
        if not isinstance(enabled, bool):
            raise unusable(f"enabled of {where} is neither true nor false")
        instances = checks.table(row.get("instances", {}), f"the instances of {where}")
        found += [rows.instance(connector, name, value, enabled=enabled) for name, value in instances.items()]
    return found


def _check_entries(entries: Sequence[Entry]) -> None:
    """Refuse what stands twice, and too many (CLI-165, CLI-170, CLI-172)."""
    if len(entries) > limits.CONFIGURED_ENTRIES:
        raise unusable(f"it has more than {limits.CONFIGURED_ENTRIES} instances")
    _check_unique([entry.alias for entry in entries], "alias")
    _check_unique([entry.instance_id for entry in entries], "instance_id")
    _check_unique([entry.name for entry in entries if not _is_derived(entry)], "connector and name")


def _is_derived(entry: Entry) -> bool:
    """Whether the connector of a legacy entry is the one that it would be migrated to, and nothing that it says."""
    return entry.in_adapters and entry.pins is not None and entry.pins.adapter_id == CATALOG


def _check_unique(names: Sequence[str], what: str) -> None:
    if any(count > 1 for count in Counter(names).values()):
        raise unusable(f"two instances have one {what}")


def _consumers(root: Mapping[str, Any], entries: Sequence[Entry]) -> dict[str, Consumer]:
    table = checks.table(root.get("consumers", {}), "[consumers]")
    if len(table) > limits.CONSUMERS:
        raise unusable(f"it has more than {limits.CONSUMERS} consumers")
    found = {name: rows.consumer(name, row) for name, row in table.items()}
    aliases = {entry.alias for entry in entries}
    if not all(aliases.issuperset(consumer.connections) for consumer in found.values()):
        raise unusable("a consumer names an instance that is not there")
    return found


def _default_adapter(root: Mapping[str, Any], entries: Sequence[Entry]) -> str | None:
    if "default_adapter" in root and "default_instance" in root:
        raise unusable("default_adapter does not stand beside default_instance")
    return _named(root, "default_adapter", [entry.alias for entry in entries])


def _default_instance(root: Mapping[str, Any], entries: Sequence[Entry]) -> str | None:
    return _named(root, "default_instance", [entry.name for entry in entries if not entry.unmigrated])


def _named(root: Mapping[str, Any], member: str, names: Sequence[str]) -> str | None:
    """Return the one of some names that a member holds (CLI-168, CLI-169)."""
    name = root.get(member)
    if name is not None and name not in names:
        raise unusable(f"{member} names no instance that is there")
    return name


def _check_protocols(format_: Format, entries: Sequence[Entry]) -> None:
    """Refuse the first pinned entry, by its alias, that contradicts the format (CLI-175, CLI-176, CLI-180)."""
    for entry in sorted(entries, key=lambda entry: entry.alias):
        if entry.pins and (entry.pins.private_protocol is None) is not (format_ == "connectors-local/1"):
            why = "the format and the private_protocol of an entry contradict each other"
            raise unusable(why, configuration_format=format_, instance_id=entry.instance_id)
