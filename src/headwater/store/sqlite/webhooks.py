"""Where webhooks come in, and which of them did: each call opens the database, and is one transaction."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import apsw

from headwater.store.sqlite.database import open_database, queries, reading, transaction, translated

Fate = Literal["accepted", "repeated", "dropped"]


class Endpoint(NamedTuple):
    """Where the webhooks of one connection come in, and what became of them. `version` is the secret's in custody."""

    endpoint: str
    instance_id: str
    connection: str
    version: str
    made_at_ms: int
    accepted: int = 0
    repeated: int = 0
    dropped: int = 0


class WebhookRecords:
    """The endpoints of an owner, and the deliveries whose time is not over."""

    def __init__(self, path: Path, owner: int) -> None:
        self._path, self._owner = path, owner

    def find(self, endpoint: str) -> Endpoint | None:
        """Return an endpoint."""
        return next(iter(self._endpoints("webhook_endpoint", endpoint)), None)

    def of(self, instance_id: str) -> list[Endpoint]:
        """Return the endpoints of an instance's connections, the newest last."""
        return self._endpoints("webhook_endpoints_of", instance_id)

    def add(self, one: Endpoint) -> None:
        """Note a new endpoint."""
        with self._writing() as run:
            run("add_webhook_endpoint", self._owner, *one[:5])

    def forget(self, endpoint: str) -> None:
        """Forget an endpoint: what comes there is not found any more."""
        with self._writing() as run:
            run("forget_webhook_endpoint", self._owner, endpoint)

    def claim(self, endpoint: str, delivery: str, now_ms: int, until_ms: int) -> bool:
        """Take a delivery, once; False where it was taken before. `until_ms` is when its time is over."""
        with self._writing() as run:
            run("forget_webhook_deliveries", now_ms)
            return run("claim_webhook_delivery", endpoint, delivery, until_ms).fetchone() is not None

    def release(self, endpoint: str, delivery: str) -> None:
        """Let a delivery that did not get through be taken again."""
        with self._writing() as run:
            run("release_webhook_delivery", endpoint, delivery)

    def count(self, endpoint: str, fate: Fate) -> None:
        """Count what became of a delivery."""
        with self._writing() as run:
            run("count_webhook", self._owner, endpoint, fate)

    def _endpoints(self, name: str, value: str) -> list[Endpoint]:
        if not self._path.exists():
            return []
        with reading(self._path) as connection:
            return [Endpoint(*row) for row in connection.execute(queries("webhooks")[name], (self._owner, value))]

    @contextmanager
    def _writing(self) -> Iterator[Any]:
        connection = open_database(self._path)

        def run(name: str, *values: object) -> apsw.Cursor:
            return connection.execute(queries("webhooks")[name], values)

        try:
            with translated(), transaction(connection):
                yield run
        finally:
            connection.close()
