"""What is shown of connections and acquisitions. Nothing here asks a provider or custody."""

from collections.abc import Sequence
from typing import Any

from msgspec import to_builtins

from headwater.connect import labels
from headwater.connect.changes import standing_of
from headwater.connect.model import Acquisition, Connection, Target
from headwater.connect.state import state_of

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
    """Return what is known of a connection."""
    shown = summary_of(connection, target, now_ms)
    identity = {"kind": connection.identity.kind, "subject": connection.identity.subject}
    return {**shown, "external_identity": identity, **to_builtins(labels.of_row(connection, target, now_ms))}


def page_of(connections: Sequence[Connection], target: Target, now_ms: int) -> Shown:
    """Return a page, with labels that cover every row."""
    rows = [labels.of_row(connection, target, now_ms) for connection in connections]
    shown = [summary_of(connection, target, now_ms) for connection in connections]
    return {"connections": shown, **to_builtins(labels.of_page(rows, now_ms))}


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
