"""The public state of a connection: an observation, made anew at each look and stored nowhere."""

from typing import Literal

from headwater.connect.changes import USABLE, Standing, credential_expired
from headwater.connect.model import Connection

ConnectionState = Literal[
    "ready",
    "pending",
    "reauthorization_required",
    "custody_unavailable",
    "parent_degraded",
    "disabled",
    "revoked",
]
"""No connection of this host has a parent, so that none is ever `parent_degraded`."""

_CUT_OFF = frozenset({"missing", "invalid", "insufficient"})


def state_of(connection: Connection, standing: Standing, now_ms: int, *, enabled: bool = True) -> ConnectionState:
    """Return the state of a connection; the first condition that holds wins (CLI-345)."""
    if connection.lifecycle == "revoked":
        return "revoked"
    if not enabled:
        return "disabled"
    if needs_another_credential(connection, now_ms):
        return "reauthorization_required"
    if connection.evidence.checks.get("custody_reachable", "ok") != "ok":
        return "custody_unavailable"
    if standing not in USABLE or not is_fresh(connection, now_ms):
        return "pending"
    return "ready"


def needs_another_credential(connection: Connection, now_ms: int) -> bool:
    """Whether nothing but a reconnect makes it good again."""
    checks = connection.evidence.checks
    found = {checks.get(name, "ok") for name in ("credential_present", "credential_valid", "scope_check")}
    return connection.lifecycle == "stale" or credential_expired(connection, now_ms) or bool(found & _CUT_OFF)


def is_fresh(connection: Connection, now_ms: int) -> bool:
    """Whether the last check still counts. A clock that went back behind it makes it count for nothing."""
    evidence = connection.evidence
    return evidence.collected_at_ms <= now_ms < evidence.valid_until_ms


def is_stale(connection: Connection, standing: Standing, now_ms: int) -> bool:
    """Whether what is shown of it may no longer be so (CLI-326, CLI-467)."""
    return standing not in USABLE or not is_fresh(connection, now_ms)
