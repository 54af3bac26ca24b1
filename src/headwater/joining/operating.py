"""Operating for real: the verb joined to configuration, connector, connection, provider and journal."""

from __future__ import annotations

from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headwater import clock
from headwater.catalog.folders import ConnectorFolder
from headwater.configuration.model import unpinned
from headwater.configuration.selecting import invoked, select
from headwater.connect.looking import selectors
from headwater.errors import HeadwaterError, refuse
from headwater.joining.configured import configuration_of
from headwater.joining.targets import Targets
from headwater.joining.ways import Stamp, Way, check_running, way_of
from headwater.operate.admission import admit_read, admit_scopes, exposed
from headwater.operate.describing import descriptor_of, told_of, told_page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from headwater.catalog.defined import Defined
    from headwater.configuration.model import Entry
    from headwater.configuration.selecting import Selection
    from headwater.connect.model import Connection, Target
    from headwater.connect.ports import Registry
    from headwater.connect.using import Used, Using
    from headwater.joining.connecting import Connecting
    from headwater.operate.description import Described, Description
    from headwater.operate.ports import Asker
    from headwater.operate.reading import Reading
    from headwater.settings import Settings
    from headwater.store.sqlite.invocations import Invocations

Shown = dict[str, Any]
Pins = tuple[str | None, str | None]
"""The schema and the revision that an operation has to have, where they were given."""


@dataclass(frozen=True)
class Aimed:
    """An operation of an instance, exposed and permitted."""

    target: Target
    described: Described
    way: Way

    @property
    def selectors(self) -> Shown:
        """How an answer names what was asked: never by its alias (CLI-578)."""
        operation = self.described.operation.id
        return {"connector": self.target.connector, "instance": self.target.instance, "operation": operation}

    def check(self, given: Any) -> None:
        """Raise `invalid_input` where the operation does not take what was given."""
        self.way.check(self.described, given)

    def describe(self) -> Shown:
        """Return how the operation is described, without asking anybody."""
        one = self.described
        told = {"description": one.operation.description, "effect": one.operation.effect}
        shown = {"schema": one.schema, "revision": one.revision, "input_schema": one.input_schema}
        return {**self.selectors, **told, **shown}


class Operating:
    """What can be asked of the providers of one Headwater."""

    def __init__(self, settings: Settings, connecting: Connecting) -> None:
        self._settings = settings
        self._connecting = connecting
        self._targets = Targets(settings)

    # Looking.

    def list_(self, selection: Selection, family: str | None, limit: int, cursor: str | None) -> Shown:
        """Return a page of the operations that an instance permits, those of a family where one is named."""
        target, way = self.served(selection)
        return told_page(selectors(target), way.description(None, launches=True), family, limit, cursor)

    def describe(self, selection: Selection, operation: str) -> Shown:
        """Return an operation with its schemas."""
        target, way = self.served(selection)
        description = way.description(None, launches=True)
        return told_of(selectors(target), description, exposed(description, operation))

    def descriptor(self, selection: Selection) -> Shown:
        """Return what an instance's code last said, and where that is from; nothing where it said nothing (CLI-284)."""
        entry = select(configuration_of(self._settings, needed=False), selection)
        folder = None if entry.pins is not None else self._targets.folder(entry)
        if not isinstance(folder, ConnectorFolder) or folder.integration is None or not folder.coded:
            return {}
        try:
            description = self._way(entry)[1].description(None, launches=False)
        except HeadwaterError:  # what cannot be told takes nothing from what is configured
            return {}
        one = folder.integration
        told = descriptor_of(description, one.key, one.version, folder.package.options)
        return {"descriptor": told, **description.labels}

    # Asking.

    def aimed(
        self,
        name: str,
        operation: str,
        pins: Pins = (None, None),
        *,
        reference: str | None = None,
        launches: bool = True,
    ) -> Aimed:
        """Return the operation that is meant, or raise why it cannot be asked. No provider is, and no custody.

        Where the description differs from a pin, it is `stale_description` (CLI-567). `reference` and `launches` are
        those of `Way.description`.
        """
        target, way = self._way(invoked(configuration_of(self._settings), name))
        return _aimed(target, way, way.description(reference, launches=launches), operation, pins)

    def selected(
        self, selection: Selection, operation: str, pins: Pins = (None, None), *, launches: bool = True
    ) -> Aimed:
        """Return the operation that is meant as `aimed` does, of an instance that is selected by its options."""
        target, way = self.served(selection)
        return _aimed(target, way, way.description(None, launches=launches), operation, pins)

    def served(self, selection: Selection) -> tuple[Target, Way]:
        """Return an instance that is selected by its options, and how it is described and asked."""
        return self._way(select(configuration_of(self._settings), selection))

    def rehearsed(self, defined: Defined, instance: str, operation: str, pins: Pins) -> Aimed:
        """Return an operation of a definition as `aimed` does, without that anything is recorded of it (CLI-1092)."""
        entry = replace(unpinned(defined.name, instance), definition=defined.digest)
        target = self._targets.served(entry, defined)
        way = way_of(self._settings, entry, target, defined)
        return _aimed(target, way, way.description(None, launches=False), operation, pins)

    @asynccontextmanager
    async def reading(self, aimed: Aimed, reference: str | None) -> AsyncIterator[Reads]:
        """Open what reads with an operation: any number of requests, each admitted for itself. A write is refused."""
        admit_read(aimed.described, aimed.target.name)
        from headwater.store.sqlite.connections import opened
        from headwater.store.sqlite.invocations import Asking, Invocations

        target = aimed.target
        asking = Asking(target.owner, target.instance_id, target.connector, target.instance)
        path = self._settings.database_path
        with opened(path) as registry, closing(Invocations(path, asking)) as journal:
            using = self._connecting.using(registry, configuration_of(self._settings), target)
            async with aimed.way.opened() as asker:
                yield Reads(self, aimed, reference, (using, journal, asker))

    def again(self, aimed: Aimed) -> Aimed:
        """Return an operation as it is now. Raise where it is not configured or defined as it was (CLI-589)."""
        now = self.aimed(aimed.target.name, aimed.described.operation.id, launches=False)
        if now.described.revision != aimed.described.revision:
            raise refuse("stale_description", safe="Nothing was sent.")
        if now.target.configuration_revision != aimed.target.configuration_revision:
            message = "The configuration of the instance changed meanwhile."
            raise refuse("lifecycle_conflict", message, safe="Nothing was sent.")
        return now

    def check_running(self, target: Target) -> None:
        """Raise `description_unavailable` for an instance that was stopped."""
        check_running(self._settings, target)

    def _way(self, entry: Entry) -> tuple[Target, Way]:
        target = self._targets.target(entry)
        return target, way_of(self._settings, entry, target, self._targets.folder(entry))


def _aimed(target: Target, way: Way, description: Description, operation: str, pins: Pins) -> Aimed:
    described = exposed(description, operation)
    now = (described.schema, described.revision)
    if any(pin is not None and pin != held for pin, held in zip(pins, now, strict=True)):
        raise refuse("stale_description", safe="Nothing was asked or sent.")
    return Aimed(target, described, way)


class Still:
    """Whether what a request was admitted by still is so: asked as late as can be, and once more before each page.

    Files are read again where one was changed.
    """

    def __init__(self, operating: Operating, aimed: Aimed, registry: Registry) -> None:
        self._operating, self._aimed, self._registry = operating, aimed, registry
        self._stamp: Stamp | None = None

    def check(self, connection: Connection) -> None:
        """Raise where it is not so any more (CLI-589)."""
        stamp = self._aimed.way.stamp()  # before the files are read: what changes while they are is seen the next time
        if stamp is None or stamp != self._stamp:
            self._operating.again(self._aimed)
            self._stamp = stamp
        else:
            self._operating.check_running(self._aimed.target)
        held = self._registry.find(connection.owner, connection.reference)
        if held is None or held.lifecycle == "revoked":
            raise refuse("revoked", "The connection was revoked meanwhile.", safe="Nothing was sent.")
        if held.generation != connection.generation or held.lifecycle != "live":
            raise refuse("lifecycle_conflict", "The connection changed meanwhile.", safe="Nothing was sent.")


class Reads:
    """Reads with one operation of one instance, one after the other."""

    def __init__(
        self,
        operating: Operating,
        aimed: Aimed,
        reference: str | None,
        parts: tuple[Using, Invocations, Callable[[Used], Asker]],
    ) -> None:
        self._aimed, self._reference = aimed, reference
        self._using, self._journal, self._asker = parts
        self._still = Still(operating, aimed, self._using.validating.registry)

    async def read(self, given: Any, seconds: float) -> Shown:
        """Ask once, within so many seconds, and return the whole answer. What was given is checked before anything."""
        import asyncio

        from headwater.operate.reading import timed_out

        until = clock.monotonic() + seconds
        self._aimed.check(given)
        try:
            async with asyncio.timeout(seconds):
                reading = await self._admitted(until)
        except TimeoutError:
            raise timed_out() from None
        return await self._answered(reading, given)

    async def _admitted(self, until: float) -> Reading:
        """Choose the connection, bring its evidence and credential up to date, and return what reads with it."""
        from headwater.connect.advice import advised
        from headwater.connect.choosing import usable
        from headwater.operate.reading import Reading

        target, described = self._aimed.target, self._aimed.described
        registry = self._using.validating.registry
        with advised(registry, target):
            connection = usable(registry, target, self._reference, clock.millis())
            used = await self._using.use(connection, until - clock.monotonic())
            admit_scopes(described, used.connection.profile, used.connection.evidence.scopes)
            asker = self._asker(used)
        check = partial(self._still.check, used.connection)
        return Reading(asker, self._journal, used.connection.reference, until, check)

    async def _answered(self, reading: Reading, given: Mapping[str, Any]) -> Shown:
        answer = await reading.read(self._aimed.described, given)
        return {**self._aimed.selectors, "revision": self._aimed.described.revision, **answer}
