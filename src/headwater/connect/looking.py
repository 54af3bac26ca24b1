"""What is shown of connections and acquisitions. Nothing here asks a provider or custody."""

from collections.abc import Sequence
from typing import Any

from headwater.connect.changes import standing_of
from headwater.connect.model import Acquisition, Connection, Target
from headwater.connect.state import is_stale, state_of

Shown = dict[str, Any]


def selectors(target: Target) -> Shown:
    """Return how the instance is selected, as every result tells."""
    return {"adapter": target.alias, "connector": target.connector, "instance": target.instance}


def summary_of(connection: Connection, target: Target, now_ms: int) -> Shown:
    """Return one line of a list."""
    standing = standing_of(connection, target, now_ms)
    return {
        **selectors(target),
        "instance_id": connection.instance_id,
        "connection": connection.reference,
        "profile": connection.profile,
        "revision": connection.revision,
        "state": state_of(connection, standing, now_ms, enabled=target.enabled),
    }


def description_of(connection: Connection, target: Target, now_ms: int) -> Shown:
    """Return what is known of a connection; `stale` says that it may no longer be so."""
    shown: Shown = summary_of(connection, target, now_ms)
    shown["external_identity"] = {"kind": connection.identity.kind, "subject": connection.identity.subject}
    shown["observed_at_ms"] = now_ms
    if connection.lifecycle == "live":
        shown["valid_until_ms"] = connection.evidence.valid_until_ms
    standing = standing_of(connection, target, now_ms)
    stale = connection.lifecycle != "revoked" and is_stale(connection, standing, now_ms)
    return {**shown, "source": "authority", "stale": stale}


def page_of(connections: Sequence[Connection], target: Target, now_ms: int) -> Shown:
    """Return a page whose labels cover every row (CLI-324 to 326)."""
    ends = [connection.evidence.valid_until_ms for connection in connections if connection.lifecycle == "live"]
    shown: Shown = {
        "connections": [summary_of(connection, target, now_ms) for connection in connections],
        "source": "authority",
        "stale": not ends or any(_is_stale(connection, target, now_ms) for connection in connections),
        "observed_at_ms": now_ms,
    }
    return {**shown, "valid_until_ms": min(ends)} if ends else shown


def _is_stale(connection: Connection, target: Target, now_ms: int) -> bool:
    if connection.lifecycle == "revoked":
        return False
    return is_stale(connection, standing_of(connection, target, now_ms), now_ms)


def observation_of(acquisition: Acquisition, now_ms: int) -> Shown:
    """Return an acquisition as it is shown: what was not completed in time has failed (CLI-321 to 323)."""
    state, reason = acquisition.state, acquisition.reason
    if state in ("pending", "completing"):
        state, reason = ("pending", None) if acquisition.is_open(now_ms) else ("failed", "expired")
    steps = {"pending": "retry_status", "completed": "none", "failed": "create_connection"}
    if acquisition.renews:
        steps["failed"] = "repair_connection"
    shown: Shown = {
        "instance_id": acquisition.instance_id,
        "acquisition": acquisition.reference,
        "state": state,
        "expires_at_ms": acquisition.expires_at_ms,
        "observed_at_ms": now_ms,
        "next_action": steps[state],
    }
    if reason is not None:
        shown["reason"] = reason
    if state == "completed":
        shown["connection"] = acquisition.connection
    return shown
