"""What a command on an account addresses: the configured instance, with what its connector declares of signing in."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from headwater.configuration.revisions import derived
from headwater.configuration.selecting import Selection, admitted, select
from headwater.connect.model import Target
from headwater.errors import HeadwaterError, refuse
from headwater.joining.configured import configuration_of, declared_by, folder_of, shipped
from headwater.settings import Settings

if TYPE_CHECKING:
    from headwater.catalog.defined import Defined
    from headwater.catalog.folders import ConnectorFolder
    from headwater.catalog.instances import Instance
    from headwater.configuration.model import Configuration, Entry
    from headwater.connect.model import Connection

ENGINE: Final = "declared/1"
"""What sends a credential of a declared scheme: it moves when that is done in another way (CLI-465)."""


class Targets:
    """Reads the configuration and what it leads to."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._released: dict[tuple[str, str], ConnectorFolder | Defined] = {}

    def configured(self, selection: Selection) -> tuple[Configuration, Target]:
        """Return the configuration and the instance that is meant, or raise why there is none."""
        configuration = configuration_of(self._settings)
        return configuration, self.target(select(configuration, selection))

    def placed(
        self, selection: Selection, endpoint: str, admit: Callable[[Target], None]
    ) -> tuple[Configuration, Target]:
        """Give an instance its endpoint, where `admit` does not object to the instance as it would be then."""
        from headwater.configuration.editing import give_endpoint

        if selection.connector is None or selection.instance is None:
            message = "An endpoint is given to an instance that is named: <connector>/<instance>."
            raise refuse("invalid_input", message, safe="Nothing was written.", field="endpoint")
        named = (self._settings.config_path, selection.connector, selection.instance)
        give_endpoint(*named, endpoint, admit=lambda entry: admit(self.target(entry)), shipped=shipped)
        return self.configured(selection)

    def known(self, name: str) -> tuple[Configuration, Target] | None:
        """Return an instance by its name as it is collected. See `collected`.

        None where the configuration file says nothing of it, or is not there.
        """
        if not self._settings.config_path.exists():
            return None
        configuration = configuration_of(self._settings)
        entry = configuration.find(*name.split("/"))
        return None if entry is None or entry.pins is not None else (configuration, self.collected(entry))

    def collected(self, entry: Entry) -> Target:
        """Return an instance as its connector's own program is one, whichever release it opted in to (decision 42).

        A credential that goes elsewhere by the release, or in another way, is foreign to the program.
        """
        entry, instance = _lookable(entry), self._instance(entry.name)
        own = None if instance is None else replace(instance, release=None)
        return self.served(entry, folder_of(self._settings, entry, own))

    def of(self, connection: Connection | None) -> tuple[Selection, Target]:
        """Return the configured instance of a connection, or raise `not_found`."""
        if connection is not None:
            for entry in configuration_of(self._settings).instances:
                if entry.instance_id == connection.instance_id:
                    return Selection(entry.connector, entry.instance), self.target(entry)
        raise refuse("not_found", "There is no such connection.")

    def folder(self, entry: Entry) -> ConnectorFolder | Defined:
        """Return what serves a configured instance. One of a release is read once: its digest says all of it."""
        instance = self._instance(entry.name)
        if instance is None or instance.release is None:
            return folder_of(self._settings, entry, instance)
        named = (instance.release, entry.connector)
        if named not in self._released:
            self._released[named] = folder_of(self._settings, entry, instance)
        return self._released[named]

    def release_of(self, name: str) -> str | None:
        """Return the digest of the release that an instance opted in to, None for any other."""
        instance = self._instance(name)
        return None if instance is None else instance.release

    def target(self, entry: Entry) -> Target:
        """Return a configured instance as a target; one of a disabled connector can still be looked at."""
        entry = _lookable(entry)
        return self.served(entry, self.folder(entry))

    def held(self, selection: Selection) -> tuple[Configuration, Target]:
        """Return an instance to look at its connections, or to revoke one: also where nothing serves it any more.

        What was connected stands in the database. It is not lost with a connector, a definition or a release.
        """
        configuration = configuration_of(self._settings)
        entry = select(configuration, selection)
        try:
            return configuration, self.target(entry)
        except HeadwaterError:
            if entry.pins is not None:
                raise
        names = (entry.connector, entry.instance, entry.alias, entry.instance_id)
        return configuration, Target(os.geteuid(), *names, configuration_revision="", authority="")

    def _instance(self, name: str) -> Instance | None:
        from headwater.catalog.instances import Instances

        return Instances(self._settings.collect_path).all().get(name)

    def served(self, entry: Entry, folder: ConnectorFolder | Defined) -> Target:
        """Return an instance as a target, by what serves it."""
        declared = declared_by(self._settings, folder)
        now = derived(entry, declared)
        endpoint, integration = now.endpoint or "", folder.integration
        return Target(
            owner=os.geteuid(),
            connector=entry.connector,
            instance=entry.instance,
            alias=entry.alias,
            instance_id=entry.instance_id,
            configuration_revision=now.configuration_revision,
            authority=_origin(endpoint) or (entry.connector if integration is None else integration.provider),
            endpoint=endpoint,
            trust=declared.trust,
            methods=tuple(declared.methods.values()),
            profile=now.profile,
            executable=folder.program or ENGINE,
            enabled=entry.enabled,
            lacks_endpoint=declared.takes_endpoint and not endpoint,
            is_placed=entry.endpoint is not None or entry.definition is not None,
            permitted=None if entry.permissions is None else entry.permissions.profiles,
            provider="" if integration is None else integration.provider,
            refreshes=integration is not None and "credential_refresh" in integration.capabilities,
        )


def _lookable(entry: Entry) -> Entry:
    return entry if not entry.enabled and entry.pins is None else admitted(entry)


def _origin(endpoint: str) -> str:
    parts = urlsplit(endpoint)
    return f"{parts.scheme}://{parts.netloc}".lower() if endpoint else ""
