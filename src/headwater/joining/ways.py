"""The two ways in which the operations of an instance come about: a definition's requests, or an integration's code.

Each describes the instance, says what an operation does not take, and asks. Whoever operates knows no more of them.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from headwater import clock, limits
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.definition import NOTHING, Definition
from headwater.operate.description import Described, Description, from_code, from_definition
from headwater.operate.planning import planned
from headwater.operate.reading import check_given, check_input
from headwater.operate.schemas import input_schema
from headwater.operate.writes.guarding import input_of
from headwater.store.sqlite.owner_records import OwnerRecords

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from headwater.catalog.defined import Defined
    from headwater.catalog.folders import ConnectorFolder
    from headwater.configuration.model import Entry
    from headwater.connect.model import Target
    from headwater.connect.using import Used
    from headwater.manifest.hello import Hello
    from headwater.operate.ports import Asker, Journal
    from headwater.operate.writes.ports import Changer
    from headwater.settings import Settings


Stamp = tuple[tuple[int, ...] | None, ...]
_FILES: Final = ("connector.toml", "integration.json", "integration.py", "manifest.json", "operations.toml")


class Way(Protocol):
    """How one instance is described and asked."""

    def description(self, reference: str | None, *, launches: bool) -> Description:
        """Describe the instance, or raise `description_unavailable`. Without `launches` nothing is started for that.

        `reference` is the connection that a command names.
        """
        ...

    def check(self, described: Described, given: Any) -> None:
        """Raise `invalid_input` for what an operation does not take."""
        ...

    def executable(self) -> str:
        """Return what tells the program that does its operations from another."""
        ...

    def request(self, described: Described, given: Any) -> Mapping[str, Any] | None:
        """Return the request that an operation is, as it is shown; None where code does it."""
        ...

    def stamp(self) -> Stamp | None:
        """Return what the files that all of this follows from stand at; None where it follows from more than files."""
        ...

    def opened(self) -> AbstractAsyncContextManager[Callable[[Used], Asker]]:
        """Have what asks, with a credential that was handed out."""
        ...

    def changing(self, journal: Journal) -> AbstractAsyncContextManager[Callable[[Used], Changer]]:
        """Have what does writes, with a credential that was handed out; what it reads for them is in the journal."""
        ...


def way_of(settings: Settings, entry: Entry, target: Target, folder: ConnectorFolder | Defined) -> Way:
    """Return the way of an instance. Raise `invalid_manifest` for a connector that has both."""
    from headwater.catalog.folders import ConnectorFolder

    definition = folder.definition or NOTHING
    named = None if entry.permissions is None else entry.permissions.operations
    if not isinstance(folder, ConnectorFolder) or not folder.coded:
        return ByDefinition(settings, target, folder.path, definition, named)
    if folder.definition is not None:
        message = "The connector's operations stand in operations.toml and in integration.py: only one may have them."
        raise refuse("invalid_manifest", message)
    return ByCode(settings, target, folder, named)


@dataclass(frozen=True)
class ByDefinition:
    """By a definition: described from files alone, so that nothing is ever started for it (CLI-269)."""

    settings: Settings
    target: Target
    path: Path
    definition: Definition
    named: Sequence[str] | None

    def description(self, reference: str | None, *, launches: bool) -> Description:
        """See `Way.description`."""
        check_running(self.settings, self.target)
        return from_definition(self.target.connector, self.target.instance_id, self.definition, self.named)

    def check(self, described: Described, given: Any) -> None:
        """See `Way.check`: also for what fits the schema, and no request can say."""
        check_input(described, given)
        operation = self.definition.operations[described.operation.id]
        planned(operation, self.definition.headers, given)
        for look in operation.guard.looks:
            read = self.definition.operations[look.operation]
            looked = input_of(look, given)
            check_given(input_schema(read), looked)
            planned(read, self.definition.headers, looked)

    def executable(self) -> str:
        """See `Way.executable`: Headwater itself."""
        return self.target.executable or ""

    def request(self, described: Described, given: Any) -> Mapping[str, Any]:
        """See `Way.request`. Headers are not shown: one of them is the credential."""
        from headwater.manifest.parameters import BODY
        from headwater.outbound.probing import below

        operation = self.definition.operations[described.operation.id]
        request = planned(operation, self.definition.headers, given)
        address = {"method": request.method, "url": below(self.target.endpoint, request.target)}
        body = {} if operation.body is None else {"body": given[BODY]}
        compared = {name: given[name] for name in operation.guard.inputs}
        return {**address, **body, **({"compared": compared} if compared else {})}

    def stamp(self) -> Stamp:
        """See `Way.stamp`."""
        ours = self.settings
        above = (ours.config_path, ours.collect_path, ours.definitions_dir / "instances.toml")
        return tuple(_stood(path) for path in (*above, *(self.path / name for name in _FILES)))

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Callable[[Used], Asker]]:
        """See `Way.opened`."""
        from headwater.joining.reaching import asking_of, reach_of
        from headwater.operate.requests import Requests
        from headwater.outbound.client import Client

        async with Client(reach_of(self.settings, self.target)) as client:
            yield lambda used: Requests(self.definition, asking_of(self.target, used, client))

    @asynccontextmanager
    async def changing(self, journal: Journal) -> AsyncIterator[Callable[[Used], Changer]]:
        """See `Way.changing`."""
        from headwater.joining.reaching import asking_of, reach_of
        from headwater.operate.writes.requests import WriteRequests
        from headwater.outbound.client import Client

        async with Client(reach_of(self.settings, self.target)) as client:
            yield lambda used: WriteRequests(
                self.definition, asking_of(self.target, used, client), journal, used.connection.reference
            )


@dataclass(frozen=True)
class ByCode:
    """By an integration's code: described by what its program said when it was last started for this configuration."""

    settings: Settings
    target: Target
    folder: ConnectorFolder
    named: Sequence[str] | None

    def description(self, reference: str | None, *, launches: bool) -> Description:
        """See `Way.description`. Without `launches` it is what was last said, under whatever configuration."""
        hello = self._hello(current=launches)
        if hello is None and launches:
            self._launch(reference)
            hello = self._hello(current=True)
        if hello is None:
            command = f"headwater operations list {self.target.name}"
            raise refuse("description_unavailable", next_action="retry_explicitly", command=command)
        return from_code(self.target.connector, self.target.instance_id, hello, self.named)

    def check(self, described: Described, given: Any) -> None:
        """See `Way.check`."""
        check_input(described, given)

    def executable(self) -> str:
        """See `Way.executable`: the code as it stands, also where its folder is not one that was added."""
        return self.folder.selection("")

    def request(self, described: Described, given: Any) -> None:
        """See `Way.request`."""

    def stamp(self) -> None:
        """See `Way.stamp`: what the program last said stands in the database."""

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Callable[[Used], Asker]]:
        """See `Way.opened`."""
        from headwater.joining.reaching import code_of

        yield lambda used: code_of(self.settings, self.target, used)

    @asynccontextmanager
    async def changing(self, journal: Journal) -> AsyncIterator[Callable[[Used], Changer]]:
        """See `Way.changing`."""
        from headwater.adapters.code_writes import WritesByOwner
        from headwater.joining.reaching import code_of

        yield lambda used: WritesByOwner(code_of(self.settings, self.target, used))

    def _hello(self, *, current: bool) -> Hello | None:
        """Return what was last said, None where nothing was, or where it was not of this configuration and code."""
        from headwater.manifest.hello import examine_hello
        from headwater.store.sqlite.descriptions import Descriptions

        kept = Descriptions(self.settings.database_path, self.target.owner).last(self.target.instance_id)
        if kept is None or (current and kept.selection != self.folder.selection(self.target.configuration_revision)):
            return None
        return examine_hello(kept.said)[0]

    def _launch(self, reference: str | None) -> None:
        """Have the owner start the program, so that it says what it does: it reads no credential and sends nothing."""
        from headwater.adapters.code_by_owner import prepare
        from headwater.connect.advice import advised
        from headwater.connect.describing import admit_description
        from headwater.link.owner import Place, started
        from headwater.store.sqlite.connections import looked_at

        check_running(self.settings, self.target)
        with looked_at(self.settings.database_path) as registry, advised(registry, self.target):
            admit_description(registry, self.target, reference, clock.millis())
        self._verify()
        place = Place.of(self.settings.state_dir)
        started(place, self.settings.config_path)
        until = clock.monotonic() + limits.HOOK_START_SECONDS + limits.STOP_SECONDS
        prepare(place, self.target.instance_id, until, resumes=False)

    def _verify(self) -> None:
        """Raise `description_unavailable` where the connector's files are not those that were added (CLI-263)."""
        try:
            self.folder.verify()
        except HeadwaterError as changed:
            step, command = changed.next_action, changed.command
            message, safe = changed.message, "Nothing was started."
            raise refuse("description_unavailable", message, next_action=step, safe=safe, command=command) from None


def _stood(path: Path) -> tuple[int, ...] | None:
    """Return what tells one state of a file from another; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def check_running(settings: Settings, target: Target) -> None:
    """Raise `description_unavailable` for an instance that was stopped: this does not resume it (CLI-266, CLI-286)."""
    if OwnerRecords(settings.database_path, target.owner).is_suppressed(target.instance_id):
        message = "The instance was stopped, and is not described until it is used again."
        command = f"headwater connections describe {target.name}"
        raise refuse("description_unavailable", message, next_action="revalidate_connection", command=command)
