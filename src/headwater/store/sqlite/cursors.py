"""Cursors read and put from outside a run, a namespace at a time.

A put is a run of mode `put` that is over when it begins: so the list of runs tells who wrote a cursor, and undoing
it brings back what it replaced.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import apsw

from headwater import clock
from headwater.errors import refuse
from headwater.store.sqlite.database import queries, transaction, translated
from headwater.store.sqlite.ledger import InstanceName, add_instance, find_instance


@dataclass(frozen=True)
class StreamState:
    """The cursors of one namespace as JSON text by stream, and when one was last written; None where there is none."""

    cursors: Mapping[str, str]
    updated_at: str | None


def instances_of(connection: apsw.Connection, connector_id: str) -> list[InstanceName]:
    """Return the instances of a connector that the store has."""
    return [InstanceName(connector_id, *row) for row in connection.execute(queries()["instances_of"], (connector_id,))]


def streams_of(connection: apsw.Connection, instance: InstanceName) -> set[str]:
    """Return the streams that the store has of an instance."""
    row = find_instance(connection, instance)
    return {name for _, name in connection.execute(queries()["streams_of"], (row,))}


def read_cursors(connection: apsw.Connection, instance: InstanceName, namespace: str) -> StreamState:
    """Return the committed cursors of a namespace."""
    place = (find_instance(connection, instance), namespace)
    rows: list[Any] = connection.execute(queries()["state_of"], place).fetchall()
    return StreamState({stream: cursor for stream, cursor, _ in rows}, max((at for *_, at in rows), default=None))


@translated()
def put_cursors(
    connection: apsw.Connection, instance: InstanceName, namespace: str, cursors: Mapping[str, str]
) -> StreamState:
    """Write cursors over those of their streams, all of them or none, and return the whole namespace.

    Call it while no run of the instance can begin. Raise `run_active` where one was cut off and is not settled: its
    cursors may still commit over these.
    """
    sql, now = queries(), clock.stamp()
    with transaction(connection):
        row = find_instance(connection, instance) or add_instance(connection, instance)
        if connection.execute(sql["orphans_of"], (row,)).fetchone():
            message = "A run of the instance was cut off, and is settled when it is next collected."
            raise refuse("run_active", message, safe="Nothing was changed.")
        run = connection.execute(sql["add_put"], (clock.identifier("run"), row, namespace, now)).get
        for stream, cursor in cursors.items():
            replaced = connection.execute(sql["checkpoint_at"], (row, namespace, stream)).fetchone()
            connection.execute(sql["add_run_stream"], (run, stream))
            connection.execute(sql["stage_cursor"], (run, stream, cursor))
            connection.execute(sql["commit_checkpoint"], (row, namespace, stream, run, now))
            connection.execute(sql["add_commit"], (run, stream, *(replaced or ("null", None))))
        connection.execute(sql["drop_staged"], (run,))
    return read_cursors(connection, instance, namespace)
