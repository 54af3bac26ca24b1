"""The integrations of this machine: read, checked as a whole, and offered where the operator enabled them.

A bundled integration with a fault refuses everything: it must not have shipped. One that a person added is told of
and left out, and the others serve (decision 32). Nothing of an integration runs to find that out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from headwater import limits
from headwater.adapters.confirmation import Confirmation, confirmations
from headwater.catalog.folders import ConnectorFolder
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.faults import Fault, refusal
from headwater.manifest.hook_source import hook_faults
from headwater.manifest.integration import Integration, examine_integration

MANIFEST: Final = "integration.json"
CODE: Final = "integration.py"


@dataclass(frozen=True)
class Operator:
    """What the operator says: which integrations are enabled or not, and what is configured for a provider."""

    enabled: Mapping[str, bool]
    providers: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Registered:
    """An integration that is in order. `settings` are the operator's for its provider, and protected."""

    connector: str
    path: Path
    origin: str
    integration: Integration
    is_enabled: bool
    confirmed: Sequence[Confirmation]

    def warnings(self, today: date) -> tuple[str, ...]:
        """Return what the operator should know of it."""
        old = any(one.is_old(today) for one in self.confirmed)
        late = ("That the provider permits this was confirmed more than a year ago.",) if old else ()
        unknown = () if self.confirmed else ("Nobody has confirmed that the provider permits this.",)
        return (*self.integration.warnings, *late, *unknown)


@dataclass(frozen=True)
class LeftOut:
    """An integration that cannot be used, and why."""

    connector: str
    faults: Sequence[Fault]


class Integrations:
    """Finds integrations among connector folders."""

    def __init__(self, folders: Sequence[ConnectorFolder], operator: Operator) -> None:
        self._folders = [folder for folder in folders if (folder.path / MANIFEST).is_file()]
        self._operator = operator

    @cached_property
    def _examined(self) -> tuple[Mapping[str, Registered], Sequence[LeftOut]]:
        found: dict[str, Registered] = {}
        out: list[LeftOut] = []
        keys: dict[str, str] = {}
        for folder in sorted(self._folders, key=lambda one: (one.origin != "bundled", one.name)):
            registered, faults = self._one(folder)
            if (
                registered is not None
                and (other := keys.setdefault(registered.integration.key, folder.name)) != folder.name
            ):
                faults = [*faults, Fault("/key", "repeated", f"is the key of {other} too")]
            if registered is None or faults:
                out.append(LeftOut(folder.name, faults))
            else:
                found[folder.name] = registered
        shipped = {folder.name for folder in self._folders if folder.origin == "bundled"}
        if bad := [one for one in out if one.connector in shipped]:
            raise _refused(bad)
        return found, out

    @property
    def all(self) -> Mapping[str, Registered]:
        """Those that are in order, by their connector. Raise `invalid_manifest` where a bundled one is not."""
        return self._examined[0]

    @property
    def left_out(self) -> Sequence[LeftOut]:
        """Those that a person added and that are not in order."""
        return self._examined[1]

    def find(self, connector: str) -> Registered:
        """Return the integration of a connector, whether it is enabled or not; raise `not_found` without one."""
        if connector in self.all:
            return self.all[connector]
        for one in self.left_out:
            if one.connector == connector:
                raise _refused([one])
        raise refuse(
            "not_found", "No connector of this name signs in to a service.", command="headwater connectors integrations"
        )

    def usable(self, connector: str) -> Registered:
        """Return the integration of a connector. Raise `forbidden` until the operator enables it (INT-106)."""
        registered = self.find(connector)
        if not registered.is_enabled:
            message = "This integration is not enabled here."
            raise refuse("forbidden", message, command=f"headwater connectors enable {connector}")
        return registered

    def settings(self, registered: Registered) -> Mapping[str, Any]:
        """Return what the operator configured for the provider of an integration (INT-176)."""
        return self._operator.providers.get(registered.integration.provider, {})

    def _one(self, folder: ConnectorFolder) -> tuple[Registered | None, list[Fault]]:
        integration, faults = examine_integration(_read(folder.path / MANIFEST) or b"")
        confirmed, unconfirmed = confirmations(folder.path)
        faults = [*faults, *unconfirmed, *self._same_provider(integration)]
        if integration is None:
            return None, faults
        faults += hook_faults(integration, _read(folder.path / CODE))
        if folder.origin == "bundled" and not confirmed:
            faults.append(Fault("", "permission", "has no confirmation that the provider permits it"))
        enabled = self._operator.enabled.get(integration.key, integration.enabled_by_default)
        return Registered(folder.name, folder.path, folder.origin, integration, enabled, confirmed), faults

    def _same_provider(self, integration: Integration | None) -> Iterator[Fault]:
        """Find a provider of which the operator keeps two records: which of them counts is nobody's guess (INT-104)."""
        if integration is not None:
            records = [name for name in self._operator.providers if name.lower().rstrip(".") == integration.provider]
            if len(records) > 1 or (records and records != [integration.provider]):
                yield Fault("/provider/name", "records", "must be the name of exactly one provider in collect.toml")


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(limits.MANIFEST_BYTES + 1)
    except OSError:
        return None


def _refused(out: Sequence[LeftOut]) -> HeadwaterError:
    """Make the one refusal of several integrations: each fault with its connector and its place (INT-107)."""
    faults = [
        Fault(f"/{one.connector}{fault.pointer}", fault.rule, fault.message) for one in out for fault in one.faults
    ]
    return refusal("invalid_manifest", "An integration is refused; nothing was started.", faults)
