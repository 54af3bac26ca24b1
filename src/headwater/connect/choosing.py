"""Which connection of an instance a request goes out with, where nobody has to say it (CLI-558 to CLI-565)."""

from collections.abc import Sequence

from headwater.codes import NextAction
from headwater.connect.admission import admit_enabled, named
from headwater.connect.changes import USABLE, standing_of
from headwater.connect.model import Connection, Target
from headwater.connect.ports import Registry
from headwater.connect.state import ConnectionState, is_fresh, needs_another_credential, state_of
from headwater.errors import HeadwaterError, refuse


def usable(registry: Registry, target: Target, reference: str | None, now_ms: int) -> Connection:
    """Return the connection that is named, or the one that is ready, or the one whose check only lapsed.

    Raise `not_found` for one that the instance does not hold, `connection_unresolved` where there is not just one.
    """
    admit_enabled(target)
    if reference is not None:
        return named(registry, target, reference)
    held = registry.held(target.owner, target.instance_id)
    states = [_state(connection, target, now_ms) for connection in held]
    ready = [one for one, state in zip(held, states, strict=True) if state == "ready"]
    candidates = ready or [one for one in held if _has_only_lapsed(one, target, now_ms)]
    if len(candidates) == 1:
        return candidates[0]
    raise _unresolved(held, states, several=len(candidates) > 1)


def _state(connection: Connection, target: Target, now_ms: int) -> ConnectionState:
    return state_of(connection, standing_of(connection, target, now_ms), now_ms, enabled=target.enabled)


def _has_only_lapsed(connection: Connection, target: Target, now_ms: int) -> bool:
    """Whether nothing is wrong with a connection but that its check is too old: it is checked again before a read."""
    is_current = standing_of(connection, target, now_ms) in USABLE
    return is_current and not needs_another_credential(connection, now_ms) and not is_fresh(connection, now_ms)


def _unresolved(held: Sequence[Connection], states: Sequence[ConnectionState], *, several: bool) -> HeadwaterError:
    step: NextAction = "create_connection" if not held else "none" if several else "repair_connection"
    messages = {
        "create_connection": "The instance is not connected.",
        "none": "The instance holds several connections; choose one with --connection.",
        "repair_connection": "No connection of the instance can be used as it stands.",
    }
    listed = [{"connection": one.reference, "state": state} for one, state in zip(held, states, strict=True)]
    message, safe = messages[step], "Nothing was asked or sent."
    return refuse("connection_unresolved", message, next_action=step, safe=safe, connections=listed)
