"""One table of the configuration read into one value: legacy entries, instances, consumers, custody."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args

from msgspec.structs import replace

from headwater import limits
from headwater.configuration import checks
from headwater.configuration.model import (
    CATALOG,
    Consumer,
    Custody,
    CustodyBinding,
    Entry,
    Executable,
    Permissions,
    Pins,
    Startup,
    unpinned,
)
from headwater.configuration.refusals import unusable

# The words of management, which no alias may take (CLI-167).
RESERVED: Final = frozenset(
    {"setup", "adapters", "connections", "operations", "approvals", "auth", "describe", "invoke", "serve", "server"}
)
_PRIVATE_PROTOCOLS: Final = ("connectors-private/1", "connectors-private/2", "connectors-private/3")
_PINNED: Final = frozenset({"adapter_id", "configuration_revision", "protocol", "executable"})
_PINS: Final = _PINNED | {"credential_revision", "private_protocol", "startup", "restart", "permissions"}
_LEGACY: Final = _PINS | {"instance_id"}
_INSTANCE: Final = _PINS | {"endpoint", "profile", "description", "alias", "instance_id"}
_UNPINNED: Final = _INSTANCE - _PINS | {"permissions", "startup"}
_RESTART: Final[tuple[Literal["never"]]] = ("never",)
_HERE: Final[Mapping[str, CustodyBinding]] = {"linux": "secret_service", "darwin": "macos_keychain"}

ConnectorOf = Callable[[Executable], str | None]
"""Tells which connector a legacy catalog entry serves, None where none is known."""


def legacy(alias: str, row: Any, connector_of: ConnectorOf) -> Entry:
    """Read `[adapters.<alias>]`."""
    where = "an entry of [adapters]"
    checks.selector(alias, f"the alias of {where}")
    if alias in RESERVED:
        raise unusable(f"the alias of {where} is a word of management")
    checks.closed(checks.table(row, where), _LEGACY, where)
    instance_id = checks.selector(row.get("instance_id"), f"instance_id of {where}")
    entry = _pinned(Entry("", alias, alias, instance_id, in_adapters=True), row, where)
    assert entry.pins is not None
    if entry.pins.adapter_id != CATALOG:
        return replace(entry, connector=entry.pins.adapter_id)
    connector = connector_of(entry.pins.executable)
    return replace(entry, connector=connector or CATALOG, unmigrated=connector is None)


def instance(connector: str, name: str, row: Any, *, enabled: bool) -> Entry:
    """Read `[connectors.<connector>.instances.<name>]`, with the pins of a legacy entry or without (CLI-181)."""
    where = "an instance"
    checks.selector(name, f"the name of {where}")
    checks.closed(checks.table(row, where), _INSTANCE, where)
    plain = unpinned(connector, name)
    entry = replace(
        plain,
        alias=checks.selector(row.get("alias", plain.alias), f"the alias of {where}"),
        instance_id=checks.selector(row.get("instance_id", plain.instance_id), f"instance_id of {where}"),
        endpoint=checks.endpoint(row["endpoint"], f"the endpoint of {where}") if "endpoint" in row else None,
        profile=checks.selector(row["profile"], f"the profile of {where}") if "profile" in row else None,
        description=checks.line(row.get("description", ""), f"the description of {where}"),
        startup=_startup(row, where),
        permissions=_permissions(row["permissions"], where) if "permissions" in row else None,
        enabled=enabled,
    )
    if entry.alias in RESERVED:
        raise unusable(f"the alias of {where} is a word of management")
    return entry if _UNPINNED.issuperset(row) else _pinned(entry, row, where)


def consumer(name: str, row: Any) -> Consumer:
    """Read `[consumers.<name>]` (CLI-183)."""
    where = "a consumer"
    checks.selector(name, f"the name of {where}")
    checks.closed(checks.table(row, where), {"executable", "pass_env", "permissions"}, where)
    permissions = checks.table(row.get("permissions", {}), f"permissions of {where}")
    checks.closed(permissions, {"connections"}, f"permissions of {where}")
    aliases = checks.identifiers(permissions.get("connections", []), limits.CONSUMER_ALIASES, "permissions.connections")
    passed = checks.prefixes(row.get("pass_env", []), f"pass_env of {where}")
    return Consumer(name, _executable(row.get("executable"), where), passed, aliases)


def custody(row: Any, socket: Path | None) -> Custody:
    """Read `[custody]` (CLI-157 to CLI-159)."""
    where = "[custody]"
    checks.closed(checks.table(row, where), {"binding", "directory"}, where)
    binding = checks.choice(row.get("binding"), get_args(CustodyBinding), f"binding of {where}")
    if binding not in ("mounted_secret", _HERE.get(sys.platform)):
        raise unusable(f"binding of {where} is one that this machine does not have")
    if (binding == "mounted_secret") is not ("directory" in row):
        raise unusable(f"directory of {where} stands with mounted_secret, and with nothing else")
    if binding != "mounted_secret":
        return Custody(binding)
    if socket is not None:
        raise unusable("mounted_secret does not stand beside secret_service_socket")
    directory = checks.absolute(row["directory"], f"directory of {where}")
    if any(os.path.islink(path) for path in (directory, *directory.parents)):
        raise unusable(f"directory of {where} has a symbolic link in it")
    return Custody(binding, directory)


def _pinned(entry: Entry, row: Mapping[str, Any], where: str) -> Entry:
    if not _PINNED.issubset(row):
        raise unusable(f"{where} lacks a key that a pinned one has")
    private = row.get("private_protocol")
    if "private_protocol" in row:
        private = checks.choice(private, _PRIVATE_PROTOCOLS, f"private_protocol of {where}")
    protocol = checks.choice(row["protocol"], ("v1alpha1",), f"protocol of {where}")
    adapter_id = checks.selector(row["adapter_id"], f"adapter_id of {where}")
    revision = row.get("credential_revision")
    return replace(
        entry,
        startup=_startup(row, where),
        restart=checks.choice(row.get("restart", "never"), _RESTART, f"restart of {where}"),
        permissions=_permissions(row.get("permissions", {}), where),
        pins=Pins(adapter_id, protocol, private, _executable(row["executable"], where)),
        configuration_revision=checks.selector(row["configuration_revision"], f"configuration_revision of {where}"),
        credential_revision=None if revision is None else checks.digest(revision, f"credential_revision of {where}"),
    )


def _startup(row: Mapping[str, Any], where: str) -> Startup:
    return checks.choice(row.get("startup", "on-demand"), get_args(Startup), f"startup of {where}")


def _executable(row: Any, where: str) -> Executable:
    where = f"the executable of {where}"
    checks.closed(checks.table(row, where), {"path", "sha256", "args"}, where)
    path = checks.absolute(row.get("path"), f"the path of {where}")
    return Executable(path, checks.digest(row.get("sha256"), where), checks.arguments(row.get("args", []), where))


def _permissions(row: Any, where: str) -> Permissions:
    where = f"permissions of {where}"
    checks.closed(checks.table(row, where), {"profiles", "operations"}, where)
    profiles = checks.identifiers(row.get("profiles", []), limits.PERMITTED_PROFILES, where)
    return Permissions(profiles, checks.identifiers(row.get("operations", []), limits.PERMITTED_OPERATIONS, where))
