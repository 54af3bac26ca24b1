"""Writes that were begun, as rows: the port `Ledger` of one instance. Each call is one transaction."""

from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict

from headwater import clock, limits
from headwater.errors import refuse
from headwater.operate.writes.model import Admitted, Attempt, Cause, Told
from headwater.store.sqlite.database import open_database, queries, reading, transaction, translated

Row = dict[str, Any]


class Attempts:
    """The attempts of one instance of an owner."""

    def __init__(self, path: Path, owner: int, instance_id: str) -> None:
        self._where = (owner, instance_id)
        self._sql = queries("attempts")
        self._connection = open_database(path)

    def close(self) -> None:
        """Let go of the database."""
        self._connection.close()

    def recover(self) -> None:
        """See `Ledger.recover`. Keys whose time is over are free again, and attempts beyond their bound forgotten."""
        now = clock.millis()
        with translated(), transaction(self._connection):
            self._run("abort_left", (now, *self._where))
            self._run("give_up_left", (now, *self._where))
            self._run("forget_keys", (*self._where, now - limits.REPLAY_SECONDS * 1000))
            self._run("forget_old", (*self._where, *self._where, limits.ATTEMPTS_KEPT))

    def used(self, key: str) -> Attempt | None:
        """See `Ledger.used`."""
        with translated():
            cursor = self._connection.execute(self._sql["attempt_of_key"], (*self._where, key))
            rows = [dict(zip((column for column, *_ in cursor.description), row, strict=True)) for row in cursor]
        return next(map(_attempt, rows), None)

    def is_spent(self, issuer: str, reference: str) -> bool:
        """See `Ledger.is_spent`."""
        with translated():
            return self._did("redemption", (issuer, reference))

    def prepare(self, attempt: Attempt) -> None:
        """See `Ledger.prepare`."""
        row = {**_row(attempt), "now_ms": clock.millis()}
        with translated(), transaction(self._connection):
            if not self._did("redeem", row):
                raise refuse("approval_replayed", safe="Nothing was sent.")
            if not self._did("add_attempt", row):
                raise refuse("idempotency_conflict", safe="Nothing was sent.")

    def dispatch(self, attempt: Attempt, admitted: Admitted) -> None:
        """See `Ledger.dispatch`."""
        with translated(), transaction(self._connection):
            approved = self._connection.execute(self._sql["approved_now"], self._where).fetchone()
            if approved != (admitted.issuer_revision, admitted.policy_revision):
                raise refuse("approval_refused", "The keys or the policy were changed meanwhile.")
            held = self._connection.execute(self._sql["connection_now"], (attempt.owner, attempt.connection)).fetchone()
            if held is None or held[0] == "revoked":
                raise refuse("revoked", "The connection was revoked meanwhile.", safe="Nothing was sent.")
            if held != ("live", admitted.generation) or not self._did("dispatch", (attempt.attempt_id,)):
                raise refuse("lifecycle_conflict", "The connection changed meanwhile.", safe="Nothing was sent.")

    def settle(self, attempt: Attempt) -> None:
        """See `Ledger.settle`."""
        with translated(), transaction(self._connection):
            self._run("settle", {**_row(attempt), "now_ms": clock.millis()})

    def _run(self, name: str, values: tuple[Any, ...] | Row) -> None:
        self._connection.execute(self._sql[name], values)

    def _did(self, name: str, values: tuple[Any, ...] | Row) -> bool:
        return self._connection.execute(self._sql[name], values).fetchone() is not None


def newest(path: Path, owner: int, instance_id: str, limit: int) -> list[tuple[Attempt, int]]:
    """Return the newest attempts of an instance, each with when it began; nothing is settled by looking."""
    if not path.exists():
        return []
    with reading(path) as connection:
        cursor = connection.execute(queries("attempts")["newest"], (owner, instance_id, limit))
        rows = [dict(zip((column for column, *_ in cursor.description), row, strict=True)) for row in cursor]
    times = [row.pop("prepared_at_ms") for row in rows]
    return [(_attempt({**row, "result": None}), at_ms) for row, at_ms in zip(rows, times, strict=True)]


def _row(attempt: Attempt) -> Row:
    row = asdict(attempt)
    for name in ("cause", "failure"):
        row[name] = None if row[name] is None else msgspec.json.encode(row[name]).decode()
    return row


def _attempt(row: Row) -> Attempt:
    try:
        cause = None if row["cause"] is None else msgspec.json.decode(row["cause"], type=Cause)
        failure = None if row["failure"] is None else msgspec.json.decode(row["failure"], type=Told)
    except msgspec.DecodeError as error:
        raise refuse("metadata_unavailable", safe="Nothing was sent.") from error
    return Attempt(**{**row, "cause": cause, "failure": failure})
