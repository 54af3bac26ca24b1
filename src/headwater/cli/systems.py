"""Which commands work on any system: those that only show what is there. Every other one needs a guarantee of Linux."""

from collections.abc import Mapping
from typing import Any, Final

import click

from headwater.guarantees import admit_system

ANYWHERE: Final = frozenset(
    {
        *("list", "completions", "setup check", "definitions check", "streams list", "state show"),
        *("connectors list", "connectors show", "connectors integrations", "connectors validate", "connectors new"),
        *("instances list", "instances describe", "adapters list", "adapters describe", "collect schedule list"),
        *("connections list", "connections describe", "connections status"),
        *("records list", "records search", "records get", "records history", "records export"),
        *("runs list", "runs show", "runs explain", "gaps list", "gaps explain", "rejections list", "rejections show"),
    }
)


def admitting(command: click.Command) -> click.Command:
    """Let a command, and all below it, refuse a system that it cannot be trusted with. A new one needs Linux."""
    invoke = command.invoke

    def invoke_here(ctx: click.Context) -> Any:
        if ctx.command_path.partition(" ")[2] not in ANYWHERE:
            admit_system()
        return invoke(ctx)

    below: Mapping[str, click.Command] | None = getattr(command, "commands", None)
    if below is None:
        command.invoke = invoke_here  # type: ignore[method-assign]
    for one in (below or {}).values():
        admitting(one)
    return command
