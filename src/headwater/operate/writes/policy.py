"""Policies: which writes of an instance may be approved, published for what the instance is at that time."""

from collections.abc import Collection
from typing import Final, Protocol

import msgspec
from msgspec.structs import replace

from headwater import limits
from headwater.errors import HeadwaterError, refuse
from headwater.operate.description import Description
from headwater.operate.documents import Undecodable, decoded
from headwater.operate.writes.model import Issuer, Policy, Selected

_MEMBERS: Final = {"operations"}


class Policies(Protocol):
    """Keeps the policies of one owner, one an instance."""

    def policy(self, instance_id: str) -> Policy | None:
        """Return the policy of an instance; None where none was ever published."""
        ...

    def put_policy(self, before: Policy | None, after: Policy) -> bool:
        """Put one in the place of another; False, and nothing was written, where that is not what stands there."""
        ...


def read_policy(content: bytes) -> tuple[str, ...]:
    """Read a policy's document, `{"operations": […]}`: the writes it permits, of which there may be none."""
    try:
        root = decoded(content) if len(content) <= limits.POLICY_BYTES else None
    except Undecodable:
        root = None
    names = root["operations"] if isinstance(root, dict) and root.keys() == _MEMBERS else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _unfit('It is one JSON object, {"operations": ["…"]}, of names of writes.')
    if len(names) > limits.OPERATIONS or len(set(names)) < len(names):
        raise _unfit("It names each write once, and at most 256.")
    return tuple(sorted(names))


def check_names(names: Collection[str], description: Description) -> None:
    """Raise `invalid_input` for what is no write of the instance that its configuration permits."""
    writes = {one.operation.id for one in description.permitted() if one.operation.effect == "write"}
    if not writes.issuperset(names):
        raise _unfit("It names something that is no write of this instance, or that its configuration does not permit.")


def published(before: Policy | None, policy: Policy, expected: str | None) -> Policy:
    """Return a policy as it follows the one before, whose revision the caller has to have seen."""
    if before is None:
        if expected is not None:
            raise _moved("There is no policy yet, and so no revision.")
        return policy
    if expected != str(before.revision):
        raise _moved("The policy has changed since its revision was read, or was there already.")
    return replace(policy, policy_id=before.policy_id, revision=before.revision + 1)


def admitted(policy: Policy | None, issuer: Issuer | None, operation: str, now: Selected) -> tuple[Policy, Issuer]:
    """Return the policy and the issuer for a write, or raise `approval_refused`: what is not permitted is denied.

    A policy is for what the instance was when it was published: its configuration, its operations, its program.
    """
    if issuer is None or issuer.active is None:
        raise _refused("No key signs approvals: headwater approvals key-init makes one.")
    if policy is None or operation not in policy.operations:
        raise _refused("The instance's policy does not name this write: headwater approvals policy-set publishes one.")
    if policy.selection != now or policy.issuer_id != issuer.issuer_id:
        message = "The instance has changed since its policy was published: approvals policy-set publishes it again."
        raise _refused(message)
    return policy, issuer


def shown(policy: Policy) -> dict[str, object]:
    """Return a policy as it is shown."""
    told: dict[str, object] = msgspec.to_builtins(policy)
    return told


def _unfit(why: str) -> HeadwaterError:
    message = f"The policy's document does not fit. {why}"
    return refuse("invalid_input", message, safe="Nothing was changed.", field="input_file")


def _moved(message: str) -> HeadwaterError:
    command = "headwater approvals policy-status"
    return refuse(
        "lifecycle_conflict", message, safe="Nothing was changed.", command=command, field="expected_revision"
    )


def _refused(why: str) -> HeadwaterError:
    return refuse("approval_refused", f"This write cannot be approved now. {why}", safe="Nothing was sent.")
