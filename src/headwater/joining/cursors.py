"""Reading and putting the cursors of an instance from outside a run, in the owner's name or in that of a grant."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from headwater.collect.plan import Authority
from headwater.errors import HeadwaterError, refuse
from headwater.limits import GRANT_ID_CHARACTERS
from headwater.settings import Settings
from headwater.store.locks import Locks
from headwater.store.sqlite.cursors import StreamState, instances_of, put_cursors, read_cursors, streams_of
from headwater.store.sqlite.database import open_database, reading
from headwater.store.sqlite.ledger import NARROWING, InstanceName
from headwater.wire.decode import NotAMessage, decode
from headwater.wire.messages import State

Declared = Mapping[str, Collection[str]]
"""The streams that the instances of a connector declare, by the instance's whole name."""


@dataclass(frozen=True)
class StateAddress:
    """Whose cursors. `instance` is a name such as `me`, or `git/me`; it may be None where there is one instance.

    `grant_id` names the grant's namespace, None the global one.
    """

    connector_id: str
    instance: str | None = None
    grant_id: str | None = None

    @property
    def namespace(self) -> str:
        """The namespace's name. Raise `invalid_input` for a grant that could be named nowhere."""
        grant = self.grant_id
        if grant is None:
            return "global"
        if not 0 < len(grant) <= GRANT_ID_CHARACTERS or not grant.isprintable() or NARROWING.search(grant):
            raise refuse("invalid_input", "It is no name of a grant.", param="grant_id")
        return str(Authority(grant).namespace)


@dataclass(frozen=True)
class Cursors:
    """The cursors of one connector's instances. `declared` adds what is set up and has not been collected yet."""

    settings: Settings
    declared: Declared

    def read(self, address: StateAddress) -> StreamState:
        """Return the cursors at an address. Raise `not_found` or `invalid_input`."""
        namespace = address.namespace
        instance, _ = self._find(address)
        with reading(self.settings.database_path) as connection:
            return read_cursors(connection, instance, namespace)

    def put(self, address: StateAddress, cursors: Mapping[str, str]) -> StreamState:
        """Write cursors over those of their streams, all or none; return all at the address.

        Each is JSON text that a STATE could carry, and is kept as it is but for line breaks between its tokens, which
        become spaces because a message is one line. Raise `not_found`, `invalid_input`, or `run_active`.
        """
        namespace = address.namespace
        instance, streams = self._find(address)
        if cursors.keys() - streams:
            raise refuse("not_found", "The connector has no such stream.", param="state")
        checked = {stream: _checked(stream, text) for stream, text in cursors.items()}
        if not checked:
            return self.read(address)
        with Locks(self.settings.locks_dir).alone(instance.chosen):
            connection = open_database(self.settings.database_path)
            try:
                return put_cursors(connection, instance, namespace, checked)
            finally:
                connection.close()

    def _find(self, address: StateAddress) -> tuple[InstanceName, set[str]]:
        """Return the instance at an address, and the streams that it has or declares."""
        with reading(self.settings.database_path) as connection:
            names = {instance.chosen for instance in instances_of(connection, address.connector_id)}
            name = _chosen(names.union(self.declared), address.instance)
            instance = InstanceName(address.connector_id, *name.split("/"))
            return instance, streams_of(connection, instance).union(self.declared.get(name, ()))


def _chosen(names: Collection[str], asked: str | None) -> str:
    if not names:
        raise refuse("not_found", "There is no such connector here.", param="connector_id")
    matching = [name for name in names if asked is None or asked in (name, name.partition("/")[2])]
    if not matching:
        raise refuse("not_found", "The connector has no such instance.", param="connector_instance_id")
    if len(matching) > 1:
        message = "The connector has several instances; name one, as `me` or `git/me`."
        raise refuse("invalid_input", message, param="connector_instance_id")
    return matching[0]


def _checked(stream: str, text: str) -> str:
    """Hold a cursor to what the host takes from a connector: START could not carry another one."""
    text = text.replace("\r", " ").replace("\n", " ")
    try:
        message, _ = decode(b'{"type":"STATE","stream":"s","cursor":%b}' % text.encode())
    except (NotAMessage, UnicodeEncodeError) as error:
        raise _no_cursor(stream) from error
    if not isinstance(message, State) or bytes(message.cursor) != text.encode():
        raise _no_cursor(stream)
    return text


def _no_cursor(stream: str) -> HeadwaterError:
    return refuse("invalid_input", "A cursor must be a JSON object that has one reading.", param=f"state.{stream}")
