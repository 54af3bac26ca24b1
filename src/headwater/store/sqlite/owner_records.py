"""What the owner keeps: which instances were stopped, which tokens were handed out, who was disconnected."""

from pathlib import Path
from typing import Literal, NamedTuple

from headwater import clock, limits
from headwater.store.sqlite.database import open_database, queries, reading, transaction, translated

Delivery = Literal["metadata_only", "revealed"]


Revocation = Literal["done", "failed", "unsupported"]


class Disconnection(NamedTuple):
    """What became of a connection that was disconnected, and when, in milliseconds since 1970."""

    connection: str
    revocation: Revocation
    at_ms: int


class OwnerRecords:
    """The owner's rows of one database. Each call opens it, and is one transaction."""

    def __init__(self, path: Path, owner: int) -> None:
        self._path, self._owner = path, owner

    def is_suppressed(self, instance_id: str) -> bool:
        """Whether an instance was stopped, and not used by name since."""
        if not self._path.exists():
            return False
        with reading(self._path) as connection:
            where = (self._owner, instance_id)
            return bool(connection.execute(queries("owner")["suppression_of"], where).get)

    def suppress(self, instance_id: str, suppressed: bool) -> None:
        """Note durably that an instance was stopped, or that it is used again."""
        self._write(("set_suppression", (self._owner, instance_id, int(suppressed), clock.millis())))

    def note_issue(self, connection: str, delivery: Delivery, *, refreshed: bool) -> str:
        """Note that an access token is handed out; return the id of the issue. Its instance's oldest are let go."""
        issue = clock.identifier("issue")
        noted = (issue, self._owner, connection, delivery, int(refreshed), clock.millis())
        # First the old ones go: what is noted now stays, also where the clock was put back.
        old = (self._owner, connection, limits.TOKEN_ISSUES_PER_INSTANCE - 1)
        self._write(("forget_issues", old), ("add_issue", noted))
        return issue

    def disconnection(self, instance_id: str) -> Disconnection | None:
        """Return the disconnection that an instance's records are inactive since; None where they are active."""
        if not self._path.exists():
            return None
        with reading(self._path) as connection:
            where = (self._owner, instance_id)
            row = connection.execute(queries("owner")["disconnection_of"], where).fetchone()
        return None if row is None else Disconnection(*row)

    def disconnect(self, instance_id: str, connector: str, instance: str, told: Disconnection) -> None:
        """Note that an account was disconnected: what was collected of it is inactive from now on."""
        self._write(("add_disconnection", (self._owner, instance_id, connector, instance, *told)))

    def connected(self, instance_id: str) -> None:
        """Note that an account is connected: what the instance has collected is active."""
        if self._path.exists():
            self._write(("end_disconnection", (self._owner, instance_id)))

    def _write(self, *changes: tuple[str, tuple[object, ...]]) -> None:
        connection = open_database(self._path)
        try:
            with translated(), transaction(connection):
                for name, values in changes:
                    connection.execute(queries("owner")[name], values)
        finally:
            connection.close()
