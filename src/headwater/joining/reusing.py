"""Reusing a credential for real: the connections that are configured beside a definition's instance, and the copy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headwater import clock, limits
from headwater.connect.refusals import source_changed
from headwater.connect.reusing import Source, sources_for
from headwater.errors import HeadwaterError, refuse
from headwater.joining.configured import configuration_of
from headwater.joining.targets import Targets
from headwater.store.sqlite.connections import looked_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.configuration.selecting import Selection
    from headwater.connect.model import Connection, Target
    from headwater.connect.ports import Registry
    from headwater.joining.connecting import Connecting
    from headwater.settings import Settings


class Reusing:
    """The credentials that one Headwater holds, for instances of definitions that were named on the command line."""

    def __init__(self, settings: Settings, connecting: Connecting) -> None:
        self._settings, self._connecting = settings, connecting
        self._targets = Targets(settings)

    def offers(self, target: Target) -> list[Source]:
        """Return the connections that a person may choose from, in the order of the configuration (CLI-1083)."""
        with looked_at(self._settings.database_path) as registry:
            return self._sources(registry, target)[: limits.COPY_OFFERS]

    async def copy(self, selection: Selection, reference: str, configuration_revision: str) -> dict[str, Any]:
        """Connect the instance of a definition with a copy of the credential of a connection. Only an owner does it.

        Every check is made again. Raise `lifecycle_conflict` where the instance is not configured as it was.
        """
        from headwater.connect.advice import advised
        from headwater.connect.entries import Copied

        with self._connecting.acquiring(selection) as acquiring, advised(acquiring.registry, acquiring.target):
            self._check(acquiring.target, configuration_revision)
            source = self._source(acquiring.registry, acquiring.target, reference)
            copying = replace(acquiring, source=source, seconds=limits.COPY_SECONDS)
            done = await copying.connect(None, lambda _: Copied(source, acquiring.custody))
        return self._connecting.connected(acquiring.target, done)

    def _check(self, target: Target, configuration_revision: str) -> None:
        entry = configuration_of(self._settings).find(target.connector, target.instance)
        if entry is None or entry.definition is None:
            message = "A credential is copied for the instance of a definition only."
            raise refuse("unsupported", message, stage="admission", safe="Nothing was read or sent.")
        if target.configuration_revision != configuration_revision:
            message = "The definition of the instance changed meanwhile."
            raise refuse("lifecycle_conflict", message, safe="Nothing was read or sent.")

    def _source(self, registry: Registry, target: Target, reference: str) -> Connection:
        for source in self._sources(registry, target):
            if source.connection.reference == reference:
                return source.connection
        raise source_changed(registry.find(target.owner, reference))

    def _sources(self, registry: Registry, target: Target) -> list[Source]:
        configuration = configuration_of(self._settings)
        if configuration.custody is not None and configuration.custody.directory is not None:
            return []  # what is mounted is each instance's own item (CLI-1085)
        return sources_for(target, self._held(registry, target), clock.millis())

    def _held(self, registry: Registry, target: Target) -> Iterator[Source]:
        for own in self._siblings(target):
            for connection in registry.held(own.owner, own.instance_id):
                yield Source(connection, own)

    def _siblings(self, target: Target) -> Iterator[Target]:
        """Yield the configured instances of a connector; one that cannot be served has nothing to offer."""
        for entry in configuration_of(self._settings, defined=False).instances:
            if entry.connector != target.connector or entry.in_adapters:
                continue
            try:
                yield self._targets.target(entry)
            except HeadwaterError:
                continue
