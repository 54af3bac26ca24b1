"""Whether an operation may be asked: it is exposed, permitted, and covered by what the credential was granted."""

from collections.abc import Sequence

from headwater.errors import refuse
from headwater.operate.description import Described, Description

APPROVAL_STEPS = ("approvals prepare", "approvals clock-check", "approvals issue")


def exposed(description: Description, operation: str) -> Described:
    """Return an operation that is exposed and permitted.

    Absence is told before permission is looked at: what is not there is never `forbidden` (CLI-580, CLI-581).
    """
    described = description.operations.get(operation)
    if described is None:
        command = f"headwater operations list --connector {description.connector}"
        raise refuse("not_found", "The connector has no such operation.", command=command)
    if operation not in description.allowed:
        message = "The configuration does not permit this operation."
        raise refuse("forbidden", message, safe="Nothing was asked or sent.")
    return described


def admit_read(described: Described, instance: str) -> None:
    """Refuse a write, which needs an approval of exactly what it does (CLI-574)."""
    if described.operation.effect == "write":
        message = "This changes something at the service: it needs an approval first, here with --approve or as a file."
        command = f"headwater approvals prepare {instance} {described.operation.id}"
        steps = list(APPROVAL_STEPS)
        raise refuse("approval_required", message, safe="Nothing was sent.", command=command, approval_steps=steps)


def admit_write(described: Described) -> None:
    """Refuse to approve a read: it needs no approval, and none would be of any use."""
    if described.operation.effect == "read":
        message = "This is a read: it needs no approval."
        raise refuse("invalid_input", message, safe="Nothing was sent.", field="operation")


def admit_scopes(described: Described, profile: str, granted: Sequence[str] | None) -> None:
    """Refuse what a connection's way to sign in does not serve, or its credential does not cover (CLI-825).

    What is not known to have been granted is taken to be: the provider decides.
    """
    operation = described.operation
    if operation.profiles and profile not in operation.profiles:
        message = "The way in which the account is connected does not serve this operation."
        raise refuse("not_granted", message, safe="Nothing was sent.")
    if granted is not None and not set(operation.scopes) <= set(granted):
        message = "The credential was granted less than this operation needs."
        raise refuse("not_granted", message, safe="Nothing was sent.")
