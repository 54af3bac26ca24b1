"""Which connection is meant, and whether it, or a new one, is admitted: decided before anything is asked or sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from headwater import limits
from headwater.codes import NextAction
from headwater.connect.advice import to_connect
from headwater.connect.changes import USABLE, Standing, standing_of, step_of
from headwater.connect.model import Acquisition, Connection, Target
from headwater.errors import HeadwaterError, refuse

if TYPE_CHECKING:
    from headwater.connect.ports import Registry
    from headwater.manifest.auth import Method

READ_WITH: Final = "connections describe"
_WORDS: Final[dict[NextAction, str]] = {
    "repair_connection": "The instance is connected already; its credential can be replaced.",
    "revalidate_connection": "The instance is connected under an earlier configuration, which can be followed.",
    "revoke_connection": "The instance holds a connection that has to be revoked first.",
    "check_configuration": "The instance is connected to another provider, or in another way: that takes another name.",
    "create_connection": "The connection was made under another configuration; it has to be made anew.",
}


def admit_connect(held: Sequence[Connection], target: Target, now_ms: int) -> None:
    """Refuse a connect of an instance that holds a connection, with the step that helps (CLI-301 to 306).

    Where it has no endpoint yet, that is told first (CLI-239).
    """
    admit_enabled(target)
    if target.lacks_endpoint:
        message = "The instance needs an endpoint: the address of the service, as in --endpoint https://example.org."
        raise refuse("invalid_input", message, safe="Nothing was asked or written.", field="endpoint")
    if not held:
        return
    step = occupied_step([standing_of(connection, target, now_ms) for connection in held])
    raise _conflict(step)


def admit_enabled(target: Target) -> None:
    """Refuse to do anything with an instance of a connector that is disabled (CLI-231)."""
    if not target.enabled:
        raise refuse("invalid_configuration", "The connector of this instance is disabled in the configuration.")


def admit_removal(held: Sequence[Connection], name: str) -> None:
    """Refuse to forget an instance that holds a connection: nothing would lead to its credential any more."""
    if held:
        command = f"headwater connections revoke {name} --expected-revision {held[0].revision}"
        message = "The instance is connected; its connection has to be revoked first."
        raise refuse(
            "lifecycle_conflict", message, next_action="revoke_connection", safe="Nothing was removed.", command=command
        )


def admit_endpoint(registry: Registry, target: Target) -> None:
    """Refuse an endpoint that would strand a connection of the instance, also a revoked one (CLI-234)."""
    page = registry.page(target.owner, target.instance_id, "", limits.CONNECTIONS_PER_INSTANCE)
    if any(connection.binding.authority != target.authority for connection in page):
        message = "The instance was connected to another service; another service takes an instance of another name."
        raise refuse(
            "lifecycle_conflict",
            message,
            stage="configuration",
            next_action="check_configuration",
            safe="Nothing was written.",
            field="endpoint",
        )


def occupied_step(standings: Sequence[Standing]) -> NextAction:
    """Return what frees or mends an instance, by how what it holds stands to the configuration (CLI-302 to 305)."""
    if len(standings) > 1:
        return "revoke_connection"
    (standing,) = standings
    if standing in USABLE:
        return "repair_connection"
    step = step_of(standing)
    return "revoke_connection" if step == "create_connection" else step


def in_flight(acquisition: Acquisition | None) -> HeadwaterError:
    """Refuse a connect while another one of the instance is under way (CLI-307)."""
    message = "Another connect of this instance is under way."
    if acquisition is None:
        return refuse("lifecycle_conflict", message)
    return refuse("lifecycle_conflict", message, acquisition=acquisition.reference)


def admit_use(connection: Connection, target: Target, now_ms: int, *, also: Sequence[Standing] = ()) -> Standing:
    """Return how a connection stands to the configuration, or refuse one that cannot be used so (CLI-467 to 473)."""
    admit_enabled(target)
    if connection.lifecycle == "revoked":
        raise refuse("revoked")
    standing = standing_of(connection, target, now_ms)
    if standing in USABLE or standing in also:
        return standing
    raise _conflict(step_of(standing))


def _conflict(step: NextAction) -> HeadwaterError:
    return refuse("lifecycle_conflict", _WORDS[step], next_action=step, safe="Nothing was asked or sent.")


def method_for(target: Target, profile: str | None) -> Method:
    """Choose how to sign in: what was asked for, else what is configured, else the only one declared (CLI-344)."""
    if not target.methods:
        message = "The connector declares no way to sign in; nothing has to be connected."
        raise refuse("unsupported", message)
    only = target.methods[0].key if len(target.methods) == 1 else None
    key = profile or target.profile or only
    method = None if key is None else target.method(key)
    if method is None:
        known = ", ".join(method.key for method in target.methods)
        raise refuse("invalid_input", f"Choose a way to sign in with --profile: {known}.", safe="Nothing was asked.")
    if target.permitted is not None and method.key not in target.permitted:
        raise refuse("forbidden", "The configuration does not permit this way to sign in.", safe="Nothing was asked.")
    return method


def selected(registry: Registry, target: Target, reference: str | None) -> Connection:
    """Return the connection that is meant: the one named, else the instance's only one (CLI-313 to 315, CLI-341)."""
    if reference is not None:
        return named(registry, target, reference)
    held = registry.held(target.owner, target.instance_id)
    if len(held) > 1:
        raise refuse("invalid_input", "The instance holds several connections; choose one with --connection.")
    if not held:
        message = "The instance is not connected."
        raise refuse("not_found", message, next_action="create_connection", command=to_connect(target))
    return held[0]


def named(registry: Registry, target: Target, reference: str) -> Connection:
    """Return the connection of a reference, or raise `not_found` where it is not the instance's (CLI-561)."""
    connection = registry.find(target.owner, reference)
    if connection is None or connection.instance_id != target.instance_id:
        raise no_such()
    return connection


def no_such() -> HeadwaterError:
    """Answer a reference that is nowhere, or somebody else's, in one and the same way (INT-473)."""
    return refuse("not_found", "There is no such connection at this instance.")


def admit_change(connection: Connection, target: Target, expected_revision: str) -> None:
    """Refuse to change a connection that was revoked, or is not what the caller saw."""
    if connection.lifecycle == "revoked":
        raise refuse("revoked", safe="Nothing was changed.")
    expect_revision(connection, target, expected_revision)


def expect_revision(connection: Connection, target: Target, given: str) -> None:
    """Compare the revision that a person saw with the one of now (CLI-317, CLI-336, CLI-337)."""
    if given == str(connection.revision):
        return
    told: dict[str, Any] = {"field": "expected_revision", "revision_expected": "connection", "read_with": READ_WITH}
    command = f"headwater connections describe {target.name}"
    if given == target.configuration_revision:
        message = "That is the revision of the configuration; the connection has one of its own."
        raise refuse("invalid_input", message, command=command, revision_given="configuration", **told)
    message = "The connection has changed since its revision was read."
    raise refuse("lifecycle_conflict", message, safe="Nothing was changed.", command=command, **told)
