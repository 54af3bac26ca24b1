"""What a person types next, where a refusal only names the step."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.codes import NextAction
    from headwater.connect.model import Connection, Target
    from headwater.connect.ports import Registry


@contextmanager
def advised(registry: Registry, target: Target) -> Iterator[None]:
    """Give the refusals of work on an instance the command for their step, with the revision as it is now."""
    try:
        yield
    except HeadwaterError as error:
        with suppress(HeadwaterError):
            held = registry.held(target.owner, target.instance_id)
            error.command = command_for(error.next_action, target, held) or error.command
        raise


def to_connect(target: Target) -> str:
    """Return what to type to connect an instance: with a way to sign in, where one has to be chosen."""
    permitted = [method.key for method in target.methods if target.permitted is None or method.key in target.permitted]
    chosen = f" --profile {permitted[0]}" if target.profile is None and len(target.methods) > 1 and permitted else ""
    return f"headwater connections connect {target.name}{chosen} --credential-prompt"


def command_for(step: NextAction, target: Target, held: Sequence[Connection]) -> str:
    """Return what to type for a step at an instance; nothing for a step that no command takes."""
    if step == "create_connection" and not held:
        return to_connect(target)
    if not held:
        return ""
    seen = f"{target.name} --expected-revision {held[0].revision}"
    commands: dict[NextAction, str] = {
        "repair_connection": f"headwater connections reconnect {seen} --credential-prompt",
        "revalidate_connection": f"headwater connections revalidate {seen}",
        "revoke_connection": f"headwater connections revoke {seen}",
        "create_connection": f"headwater connections revoke {seen}",
    }
    return commands.get(step, "")
