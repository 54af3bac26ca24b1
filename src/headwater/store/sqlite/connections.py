"""Connections as rows: the port `Registry`. A change is one transaction that compares the fence it was made from."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec
from msgspec.structs import asdict

from headwater import limits
from headwater.connect.model import Acquisition, AcquisitionFailure, Binding, Connection, Evidence, Identity
from headwater.errors import HeadwaterError, refuse
from headwater.store.locks import ours
from headwater.store.sqlite.database import nothing, open_database, queries


class ConnectionRegistry:
    """The connections of one database."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._sql = queries("connections")

    def held(self, owner: int, instance_id: str) -> list[Connection]:
        """See `Registry.held`."""
        return self._found("connections_held", (owner, instance_id))

    def page(self, owner: int, instance_id: str, after: str, limit: int) -> list[Connection]:
        """See `Registry.page`."""
        return self._found("connections_page", (owner, instance_id, after, limit))

    def epoch(self, owner: int, instance_id: str) -> int:
        """See `Registry.epoch`."""
        with _understood():
            return int(self._connection.execute(self._sql["connections_epoch"], (owner, instance_id)).get)

    def find(self, owner: int, reference: str) -> Connection | None:
        """See `Registry.find`."""
        return next(iter(self._found("connection_at", (owner, reference))), None)

    def acquisition(self, owner: int, reference: str) -> Acquisition | None:
        """See `Registry.acquisition`."""
        return next((Acquisition(**row) for row in self._rows("acquisition_at", (owner, reference))), None)

    def open_connect(self, owner: int, instance_id: str, now_ms: int) -> Acquisition | None:
        """See `Registry.open_connect`."""
        rows = self._rows("open_connect", (owner, instance_id, now_ms))
        return next((Acquisition(**row) for row in rows), None)

    def begin(self, acquisition: Acquisition) -> None:
        """See `Registry.begin`."""
        where = (acquisition.owner, acquisition.instance_id)
        with self._writing():
            if not acquisition.renews:
                self._run("end_cut_off", where)
                had = self._connection.execute(self._sql["connections_count"], where).get
                if had >= limits.CONNECTIONS_PER_INSTANCE:
                    raise refuse("capacity", "The instance has had as many connections as one may have.")
            self._run("forget_acquisitions", (*where, limits.ACQUISITIONS_PER_INSTANCE - 2))
            self._run("add_acquisition", asdict(acquisition))

    def consume(self, acquisition: Acquisition, now_ms: int) -> bool:
        """See `Registry.consume`."""
        with self._writing():
            return self._did("consume_acquisition", (acquisition.owner, acquisition.reference, now_ms))

    def note_candidate(self, acquisition: Acquisition, version: str, now_ms: int) -> None:
        """See `Registry.note_candidate`."""
        with self._writing():
            self._run("add_candidate", {**asdict(acquisition), "version": version, "now_ms": now_ms})

    def fail(self, acquisition: Acquisition, reason: AcquisitionFailure, now_ms: int) -> None:
        """See `Registry.fail`."""
        with self._writing():
            self._run("fail_acquisition", (acquisition.owner, acquisition.reference, reason))
            self._run("abandon_candidates", (acquisition.connection, now_ms))

    def publish(
        self,
        before: Connection | None,
        after: Connection,
        now_ms: int,
        acquisition: Acquisition | None = None,
        *,
        source: Connection | None = None,
    ) -> bool:
        """See `Registry.publish`."""
        try:
            with self._writing():
                if source is not None and not self._did("connection_as_read", _row(source)):
                    raise _OvertakenError
                self._publish(before, after, now_ms, acquisition)
        except _OvertakenError:
            return False
        return True

    def _publish(
        self, before: Connection | None, after: Connection, now_ms: int, acquisition: Acquisition | None
    ) -> None:
        row = {**_row(after), "now_ms": now_ms}
        if acquisition is not None and not self._did(
            "complete_acquisition", (acquisition.owner, acquisition.reference, now_ms)
        ):
            raise _OvertakenError
        if before is None:
            if self.held(after.owner, after.instance_id):
                raise _OvertakenError
            self._run("add_connection", row)
        elif not self._did("change_connection", {**row, "fence": before.fence}):
            raise _OvertakenError
        kept = None if after.lifecycle == "revoked" else after.version
        if kept is not None and not self._did("store_version", row):
            raise _OvertakenError
        self._run("supersede_versions", (after.reference, kept, now_ms))

    def retire(self, owner: int, now_ms: int) -> list[tuple[str, str]]:
        """See `Registry.retire`."""
        wanted = (owner, now_ms - limits.CREDENTIAL_RETENTION_SECONDS * 1000, limits.CREDENTIAL_VERSIONS)
        if not self._rows("erasable_versions", wanted):
            return []
        with self._writing():
            rows = [(row["connection"], row["version"]) for row in self._rows("erasable_versions", wanted)]
            for row in rows:
                self._run("retire_version", row)
        return rows

    def versions(self, owner: int, instance_id: str) -> list[tuple[str, str]]:
        """See `Registry.versions`."""
        return [(row["connection"], row["version"]) for row in self._rows("versions_of", (owner, instance_id))]

    def forget(self, connection: str, version: str) -> None:
        """See `Registry.forget`."""
        with self._writing():
            self._run("forget_version", (connection, version))

    def close(self) -> None:
        """Let go of the database."""
        self._connection.close()

    def _found(self, name: str, values: Sequence[Any]) -> list[Connection]:
        try:
            return [_connection(row) for row in self._rows(name, values)]
        except msgspec.DecodeError as error:
            raise _unavailable() from error

    def _rows(self, name: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        with _understood():
            cursor = self._connection.execute(self._sql[name], values)
            return [dict(zip((column for column, *_ in cursor.description), row, strict=True)) for row in cursor]

    def _run(self, name: str, values: Sequence[Any] | Mapping[str, Any]) -> None:
        self._connection.execute(self._sql[name], values)

    def _did(self, name: str, values: Sequence[Any] | Mapping[str, Any]) -> bool:
        return self._connection.execute(self._sql[name], values).fetchone() is not None

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the write lock over a change; say whether what was not acknowledged may have been written."""
        with _understood():
            self._connection.execute("BEGIN IMMEDIATE")
        try:
            with _understood():
                yield
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        try:
            self._connection.execute("COMMIT")
        except apsw.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
                raise _unavailable() from error
            raise refuse("outcome_unknown") from error


class _OvertakenError(Exception):
    """Somebody else wrote first; the transaction is given up."""


@contextmanager
def opened(path: Path) -> Iterator[ConnectionRegistry]:
    """Open the registry of a database, made where there is none yet. Raise `forbidden` where others may write there."""
    ours(path.parent)
    registry = ConnectionRegistry(open_database(path))
    try:
        yield registry
    finally:
        registry.close()


@contextmanager
def looked_at(path: Path) -> Iterator[ConnectionRegistry]:
    """Open the registry for looking: where there is no database, nothing is connected, and none is made."""
    registry = ConnectionRegistry(open_database(path, readonly=True) if path.exists() else nothing())
    try:
        yield registry
    finally:
        registry.close()


@contextmanager
def _understood() -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise _unavailable() from error


def _unavailable() -> HeadwaterError:
    return refuse("metadata_unavailable", safe="Nothing was changed.")


def _row(connection: Connection) -> dict[str, Any]:
    row = {name: value for name, value in asdict(connection).items() if name not in ("binding", "identity", "evidence")}
    return {
        **row,
        "binding": msgspec.json.encode(connection.binding).decode(),
        "evidence": msgspec.json.encode(connection.evidence).decode(),
        "identity_kind": connection.identity.kind,
        "identity_subject": connection.identity.subject,
        "identity_display": connection.identity.display,
    }


def _connection(row: Mapping[str, Any]) -> Connection:
    plain = {
        name: value for name, value in row.items() if not name.startswith("identity_") and name != "published_at_ms"
    }
    plain["identity"] = Identity(row["identity_kind"], row["identity_subject"], row["identity_display"])
    plain["binding"] = msgspec.json.decode(row["binding"], type=Binding)
    plain["evidence"] = msgspec.json.decode(row["evidence"], type=Evidence)
    return Connection(**plain)
