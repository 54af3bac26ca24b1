"""What the owner keeps: which instances were stopped for good, and which access tokens were handed out."""

from pathlib import Path
from typing import Literal

from headwater import clock
from headwater.store.sqlite.database import open_database, queries, reading, transaction, translated

Delivery = Literal["metadata_only", "revealed"]


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
        self._write("set_suppression", (self._owner, instance_id, int(suppressed), clock.millis()))

    def note_issue(self, connection: str, delivery: Delivery, *, refreshed: bool) -> str:
        """Note that an access token is handed out; return the id of the issue."""
        issue = clock.identifier("issue")
        self._write("add_issue", (issue, self._owner, connection, delivery, int(refreshed), clock.millis()))
        return issue

    def _write(self, name: str, values: tuple[object, ...]) -> None:
        connection = open_database(self._path)
        try:
            with translated(), transaction(connection):
                connection.execute(queries("owner")[name], values)
        finally:
            connection.close()
