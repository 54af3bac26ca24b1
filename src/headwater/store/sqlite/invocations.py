"""What was asked of providers, as rows: the port `Journal`. The newest of an instance are kept."""

from pathlib import Path
from typing import Any, NamedTuple

from headwater import clock, limits
from headwater.manifest.operation import Effect
from headwater.store.sqlite.database import open_database, queries, reading, transaction, translated


class Asking(NamedTuple):
    """Who asks: the owner, and the instance with its names."""

    owner: int
    instance_id: str
    connector: str
    instance: str


class Invocations:
    """The requests of one instance, one after the other. That one is sent is durable when `dispatched` returns.

    What came of a read is written together with the next request, or at the end: a walk waits for the disk once a page.
    What came of a write is written at once.
    """

    def __init__(self, path: Path, asking: Asking) -> None:
        self._asking = asking
        self._sql = queries("invocations")
        self._connection = open_database(path)
        self._unwritten: list[tuple[int, str, str]] = []

    def close(self) -> None:
        """Write what is left, and let go of the database."""
        try:
            self._flush()
        finally:
            self._connection.close()

    def dispatched(self, connection: str, operation: str, revision: str, effect: Effect) -> str:
        """See `Journal.dispatched`. Reads that are older than the newest ones are forgotten."""
        request_id = clock.identifier("request")
        who, now = self._asking, clock.millis()
        old = (who.owner, who.instance_id, who.owner, who.instance_id, limits.INVOCATIONS_KEPT)
        row = (request_id, *who, connection, operation, revision, effect, now)
        with translated(), transaction(self._connection):
            self._write_outcomes()
            self._connection.execute(self._sql["dispatched"], row)
            self._connection.execute(self._sql["forget_old"], old)
        return request_id

    def answered(self, request_id: str, outcome: str, *, at_once: bool = False) -> None:
        """See `Journal.answered`."""
        self._unwritten.append((clock.millis(), outcome, request_id))
        if at_once:
            try:
                self._flush()
            finally:
                self._unwritten.clear()  # whoever asks is told so now, and not once more at the end

    def _flush(self) -> None:
        if self._unwritten:
            with translated(), transaction(self._connection):
                self._write_outcomes()

    def _write_outcomes(self) -> None:
        while self._unwritten:
            self._connection.execute(self._sql["answered"], self._unwritten[0])
            del self._unwritten[0]


def past(path: Path, asking: Asking, before: int, limit: int) -> list[dict[str, Any]]:
    """Return the newest requests of an instance whose number is below `before`, the newest first."""
    if not path.exists():
        return []
    with reading(path) as connection:
        rows = connection.execute(
            queries("invocations")["page"], (asking.owner, asking.instance_id, before, limit)
        ).fetchall()
    names = ("number", "request_id", "connector", "instance", "connection", "operation", "revision", "effect")
    times = ("dispatched_at_ms", "answered_at_ms", "outcome")
    return [dict(zip((*names, *times), row, strict=True)) for row in rows]
