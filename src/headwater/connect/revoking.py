"""Revoking: local, final, and committed before it is told. The provider is not asked (CLI-330 to 335)."""

from collections.abc import Collection

from msgspec.structs import replace

from headwater import clock
from headwater.connect.admission import expect_revision, no_such, selected
from headwater.connect.model import Connection, Evidence, Target
from headwater.connect.ports import Registry


def revoke(registry: Registry, target: Target, connection: Connection, expected_revision: str) -> Connection:
    """Revoke a connection for good. One that is revoked already is told again, whatever revision was seen (CLI-348).

    What races with it has its publication refused by the fence; one that came first is revoked with it, since it
    moves no revision.
    """
    while connection.lifecycle != "revoked":
        expect_revision(connection, target, expected_revision)
        now = clock.millis()
        after = replace(
            connection, lifecycle="revoked", revision=connection.revision + 1, evidence=Evidence(now, now, checks={})
        )
        if registry.publish(connection, after, now):
            return after
        found = registry.find(connection.owner, connection.reference)
        if found is None:
            raise no_such()
        connection = found
    return connection


def of_revocable(registry: Registry, target: Target, reference: str | None, configured: Collection[str]) -> Connection:
    """Return the connection to revoke: the instance's, or one that its connector left behind.

    A connection whose instance id is configured nowhere any more is reached through the instance that moved, and one
    of another configured instance never is (CLI-471).
    """
    found = None if reference is None else registry.find(target.owner, reference)
    if found is not None and found.connector == target.connector and found.instance_id not in configured:
        return found
    return selected(registry, target, reference)
