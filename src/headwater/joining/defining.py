"""Definitions that a person names on the command line: read, lowered, and recorded as an instance."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headwater import clock, limits
from headwater.catalog.defined import Defined, examined, refused
from headwater.catalog.definitions import Definitions, Recorded
from headwater.configuration.model import unpinned
from headwater.configuration.refusals import unusable
from headwater.configuration.selecting import Selection
from headwater.connect.changes import standing_of
from headwater.errors import HeadwaterError, refuse
from headwater.joining.configured import configuration_of
from headwater.joining.targets import Targets
from headwater.manifest.document import digest
from headwater.store.locks import exclusive, private
from headwater.store.sqlite.connections import looked_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.connect.model import Connection, Target
    from headwater.settings import Settings

INSTANCE = "definition"
_MOVED_DIGITS = 16


class Defining:
    """The definition of one file, for one command."""

    def __init__(self, settings: Settings, path: Path, root: Path | None) -> None:
        """Read the file. Raise `invalid_input` naming `definition` where it cannot be used (CLI-1057)."""
        self._settings = settings
        self._targets = Targets(settings)
        try:
            provider, self._digest, _ = examined(path, root)
        except OSError:
            raise refused() from None
        if provider is None:
            raise refused()
        self.defined = Defined(provider, settings.definitions_dir / self._digest, self._digest)

    def named(self, target: str | None) -> str:
        """Return the instance that the definition runs as. Raise where that is configured, or another one is meant.

        It is `definition` of its connector, or another name where connections of that were made under another service
        or another way to sign in: they are not this definition's (CLI-1059, CLI-1076).
        """
        connector = self.defined.name
        instance = self._instance()
        self._check_configured(connector, instance)
        if target not in (None, connector, f"{connector}/{instance}"):
            message = "The definition is of another connector or instance than the one that is named."
            raise refuse("invalid_input", message, safe="Nothing was kept or sent.", field="target")
        return instance

    @contextmanager
    def recorded(self, instance: str) -> Iterator[str]:
        """Lower the definition, record it as the instance, and yield the instance's whole name, to select it by.

        Raise `revision_conflict` where another command recorded another definition of the connector before that was
        done: what was selected is not this one's then, or nothing was.
        """
        definitions = Definitions(self._settings.definitions_dir)
        private(self._settings.state_dir)
        row = Recorded(self.defined.name, instance, self._digest)
        if definitions.recorded().get(row.connector) != row or definitions.serving(row.digest) is None:
            try:
                with _alone(definitions.lock):
                    definitions.keep(self.defined.provider, self._digest)
                    definitions.record(row)
            except OSError:
                raise refuse("metadata_unavailable", "The state directory cannot be written.") from None
        try:
            yield f"{row.connector}/{instance}"
        finally:
            if definitions.recorded().get(row.connector) != row:
                message = "Another command recorded a definition of this connector meanwhile."
                raise refuse("revision_conflict", message, safe="Nothing was sent.")

    def is_connected(self, name: str) -> bool:
        """Whether the instance holds a connection. Raise `invalid_input` where it holds several (CLI-1074)."""
        _, target = self._targets.configured(Selection(*name.split("/")))
        held = self._held(target)
        if len(held) > 1:
            message = "The instance holds several connections; choose one with --connection."
            raise refuse("invalid_input", message, safe="Nothing was sent.", field="connection")
        return bool(held)

    @property
    def is_mounted(self) -> bool:
        """Whether credentials are mounted by the machine's owner, and nobody enters one."""
        custody = configuration_of(self._settings).custody
        return custody is not None and custody.directory is not None

    def _held(self, target: Target) -> list[Connection]:
        if not self._settings.database_path.exists():
            return []
        with looked_at(self._settings.database_path) as registry:
            return registry.held(target.owner, target.instance_id)

    def _check_configured(self, connector: str, instance: str) -> None:
        """Refuse to stand in for an instance that the configuration has (CLI-1068)."""
        name = f"{connector}.{instance}"
        for entry in configuration_of(self._settings, defined=False).entries:
            if entry.name == f"{connector}/{instance}" or name in (entry.alias, entry.instance_id):
                why = "it has the instance already that the definition would run as"
                raise unusable(why, "definition_instance_configured")

    def _instance(self) -> str:
        connector, provider = self.defined.name, self.defined.provider
        target = self._served(INSTANCE)
        if not self._settings.database_path.exists():
            return INSTANCE
        with looked_at(self._settings.database_path) as registry:
            past = registry.page(target.owner, target.instance_id, "", limits.CONNECTIONS_PER_INSTANCE)
        if all(_is_of(connection, target) for connection in past):
            return INSTANCE
        authentication = provider.methods[provider.profile].authentication
        moved = digest([connector, target.authority, provider.profile, authentication])
        return f"{INSTANCE}-{moved[:_MOVED_DIGITS]}"

    def _served(self, instance: str) -> Target:
        entry = replace(unpinned(self.defined.name, instance), definition=self._digest)
        return self._targets.served(entry, self.defined)


def _is_of(connection: Connection, target: Target) -> bool:
    """Whether a connection was made under the service and the way to sign in that a definition has now."""
    return target.method(connection.profile) is not None and standing_of(connection, target, 0) != "foreign"


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Be the only one who changes what is recorded; others take a moment."""
    until = clock.monotonic() + limits.LOCK_SECONDS
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(exclusive(lock))
                break
            except HeadwaterError as error:
                if error.code != "run_active" or clock.monotonic() >= until:
                    raise
            clock.pause(limits.LOCK_LOOK_SECONDS)
        yield


def checked(path: Path, root: Path | None) -> list[dict[str, Any]]:
    """Return what is wrong with a definition file. Raise `invalid_input` where it cannot be read."""
    try:
        _, _, faults = examined(path, root)
    except OSError:
        message = "The definition's file cannot be read."
        raise refuse("invalid_input", message, field="definition") from None
    return [{"pointer": fault.pointer, "rule": fault.rule, "message": fault.message} for fault in faults]
