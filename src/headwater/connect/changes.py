"""What a change of the configuration does to a connection that was made before it (spec/002 section 6)."""

from typing import Literal

from headwater.codes import NextAction
from headwater.connect.model import Binding, Connection, Target
from headwater.manifest.auth import Method
from headwater.manifest.document import digest

Standing = Literal["current", "moved", "other_executable", "followable", "refused", "changed", "foreign"]
"""How a connection stands to the configuration of now.

`current`: it is the one it was made under. `moved`: only what can be done with it moved. `other_executable`: something
else sends the credential; its account is asked for once before that counts. `followable`: a revalidation may bring it
along. `refused`: one has tried, and the provider did not accept it. `changed`: it has to be made anew. `foreign`:
another provider, or another way to authenticate.
"""

USABLE = frozenset({"current", "moved", "other_executable"})


def binding_of(target: Target, method: Method) -> Binding:
    """Return what a credential of a method would be admitted under now."""
    authentication = method.authentication
    where = {"endpoint": target.endpoint, "trust": target.trust, "authentication": authentication}
    return Binding(
        authority=target.authority,
        authentication=digest(authentication),
        declaration=digest({**authentication, "evidence_lifetime_ms": method.evidence_lifetime_ms}),
        configuration_revision=target.configuration_revision,
        credential_revision=digest({"authority": target.authority, **where}),
        executable=target.executable,
    )


def standing_of(connection: Connection, target: Target, now_ms: int) -> Standing:
    """Compare what a connection was admitted under with what is configured; the first difference that counts wins."""
    method = target.method(connection.profile)
    held = connection.binding
    if held.authority != target.authority:
        return "foreign"
    if method is None:
        return "changed"
    now = binding_of(target, method)
    if held.authentication != now.authentication:
        return "foreign"
    if held.declaration != now.declaration:
        return "changed"
    if held.credential_revision is not None and held.credential_revision == now.credential_revision:
        return _under_equal_credentials(held, now)
    if held.configuration_revision == now.configuration_revision:
        return "current"
    if connection.refused_configuration_revision == now.configuration_revision:
        return "refused"
    is_good = connection.lifecycle == "live" and not credential_expired(connection, now_ms)
    return "followable" if is_good else "changed"


def _under_equal_credentials(held: Binding, now: Binding) -> Standing:
    if held.executable != now.executable:
        return "other_executable"
    return "current" if held.configuration_revision == now.configuration_revision else "moved"


def credential_expired(connection: Connection, now_ms: int) -> bool:
    """Whether the credential itself is past its time."""
    expires_at = connection.evidence.credential_expires_at_ms
    return expires_at is not None and expires_at <= now_ms


def step_of(standing: Standing) -> NextAction:
    """Return what brings a connection back that cannot be used as it stands (CLI-467 to 473)."""
    if standing == "followable":
        return "revalidate_connection"
    return "check_configuration" if standing == "foreign" else "create_connection"
