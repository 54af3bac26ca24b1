"""Whether an integration's program may be started only to describe itself (spec/002, launching for a description).

Its connection has to be good as far as is known here: nobody is asked about that, and no credential is read.
"""

from headwater.codes import NextAction
from headwater.connect.admission import admit_enabled, no_such
from headwater.connect.changes import USABLE, standing_of, step_of
from headwater.connect.model import Connection, Target
from headwater.connect.ports import Registry
from headwater.connect.state import needs_another_credential
from headwater.errors import refuse


def admit_description(registry: Registry, target: Target, reference: str | None, now_ms: int) -> None:
    """Raise `description_unavailable` unless the connection that is named, or any of the instance, is current and good.

    It says the step that would make one so (CLI-264, CLI-268). Raise `not_found` for one that the instance never held.
    """
    admit_enabled(target)
    if reference is None:
        connections = list(registry.held(target.owner, target.instance_id))
    else:
        named = registry.find(target.owner, reference)
        if named is None or named.instance_id != target.instance_id:
            raise no_such()
        connections = [named]
    steps = [_step(connection, target, now_ms) for connection in connections] or ["create_connection"]
    if "none" not in steps:
        message = "What the instance can be asked is not known before it has a connection that is good and current."
        raise refuse("description_unavailable", message, next_action=steps[0], safe="Nothing was started.")


def _step(connection: Connection, target: Target, now_ms: int) -> NextAction:
    """Return what a connection needs first."""
    if connection.lifecycle == "revoked":
        return "create_connection"
    if needs_another_credential(connection, now_ms):
        return "repair_connection"
    standing = standing_of(connection, target, now_ms)
    return "none" if standing in USABLE else step_of(standing)
