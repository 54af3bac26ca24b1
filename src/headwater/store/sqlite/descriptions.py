"""What integrations' code said of its operations, as rows: the cache of descriptions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from headwater import clock
from headwater.store.sqlite.database import open_database, queries, reading, transaction, translated


class Kept(NamedTuple):
    """What was said, as JSON, and under which selection; `observed_at_ms` is when, in milliseconds since 1970."""

    selection: str
    said: bytes
    observed_at_ms: int


class Descriptions:
    """The cached descriptions of one owner. Each call opens the database, and is one transaction."""

    def __init__(self, path: Path, owner: int) -> None:
        self._path, self._owner = path, owner

    def keep(self, instance_id: str, selection: str, said: Mapping[str, Any]) -> None:
        """Keep what was said of an instance, in place of what was said before."""
        row = (self._owner, instance_id, selection, msgspec.json.encode(said).decode(), clock.millis())
        connection = open_database(self._path)
        try:
            with translated(), transaction(connection):
                connection.execute(queries("descriptions")["keep"], row)
        finally:
            connection.close()

    def last(self, instance_id: str) -> Kept | None:
        """Return what was last said of an instance, None where nothing was."""
        if not self._path.exists():
            return None
        with reading(self._path) as connection:
            where = (self._owner, instance_id)
            row = connection.execute(queries("descriptions")["last"], where).fetchone()
        return None if row is None else Kept(row[0], row[1].encode(), row[2])
