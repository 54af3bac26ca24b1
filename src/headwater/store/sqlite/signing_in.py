"""What the owner's processes share of signing in: used states, counted attempts, and exchanges that are under way."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import apsw

from headwater import clock, limits
from headwater.connect.refreshing import Exchange
from headwater.connect.throttle import Counted, room_in
from headwater.errors import refuse
from headwater.store.locks import private
from headwater.store.sqlite.database import open_database, queries, transaction


class SignInStore:
    """Fills `UsedStates`, `Counters` and `Exchanges` by one database. Each call is one transaction.

    Raise `metadata_unavailable` where it cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sql = queries("signing_in")

    def claim(self, nonce: str, expires_at_ms: int, now_ms: int) -> bool:
        """See `UsedStates.claim`."""
        with self._writing():
            self._run("forget_auth_states", (now_ms,))
            return self._run("claim_auth_state", (nonce, expires_at_ms)).fetchone() is not None

    def settle(self, nonce: str, *, wrong: bool) -> bool:
        """See `UsedStates.settle`."""
        with self._writing():
            return not self._run("settle_auth_state", (nonce, int(wrong), limits.AUTH_STATE_ANSWERS)).get

    def add(self, counted: Sequence[Counted], now_ms: int) -> int:
        """See `Counters.add`."""
        with self._writing():
            self._run("forget_auth_attempts", (now_ms,))
            wait = max(room_in(one, self._times(one, now_ms), now_ms) for one in counted)
            if not wait:
                for one in counted:
                    self._run("add_auth_attempt", (one.key, now_ms, now_ms + one.seconds * 1000))
            return wait

    def _times(self, one: Counted, now_ms: int) -> list[int]:
        return [at for (at,) in self._run("auth_attempts_of", (one.key, now_ms - one.seconds * 1000))]

    def find(self, connection: str, generation: int) -> Exchange | None:
        """See `Exchanges.find`."""
        with self._understood():
            row = self._run("refresh_at", (connection, generation)).fetchone()
        return None if row is None else Exchange(*row)

    def put(self, connection: str, generation: int, exchange: Exchange) -> None:
        """See `Exchanges.put`."""
        with self._writing():
            self._run("put_refresh", (connection, generation, exchange.state, exchange.version, clock.millis()))

    def forget(self, connection: str, generation: int) -> None:
        """See `Exchanges.forget`."""
        with self._writing():
            self._run("forget_refreshes", (connection, generation))

    def close(self) -> None:
        """Let go of the database, where it was opened."""
        if "_connection" in self.__dict__:
            self._connection.close()
            del self._connection

    @cached_property
    def _connection(self) -> apsw.Connection:
        private(self._path.parent)
        return open_database(self._path)

    def _run(self, name: str, values: Sequence[Any]) -> apsw.Cursor:
        return self._connection.execute(self._sql[name], values)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._understood(), transaction(self._connection):
            yield

    @contextmanager
    def _understood(self) -> Iterator[None]:
        try:
            yield
        except apsw.Error as error:
            raise refuse("metadata_unavailable", safe="Nothing was sent.") from error
