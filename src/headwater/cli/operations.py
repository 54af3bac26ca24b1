"""`headwater operations`: what can be asked of the services that are connected."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from headwater import limits
from headwater.cli.connections import on_instance
from headwater.cli.output import pairs, plain, table, typed
from headwater.cli.selection import SelectingGroup
from headwater.cli.session import Cli, pass_cli
from headwater.errors import refuse

if TYPE_CHECKING:
    from headwater.configuration.selecting import Selection

_FAMILY: Final = re.compile(r"[A-Za-z0-9._/-]{1,128}")


@click.group(cls=SelectingGroup)
def operations() -> None:
    """What can be asked of the services that are connected."""


@operations.command("list")
@on_instance
@click.option("--family", metavar="NAME", help="Only the operations of this family.")
@click.option("--limit", type=int, default=limits.CONNECTION_PAGE_DEFAULT, help="How many at most (default 100).")
@click.option("--cursor", help="Go on where a page ended.")
@pass_cli
def list_(cli: Cli, selection: Selection, family: str | None, limit: int, cursor: str | None) -> None:
    """List the operations that an instance permits. Exit status: 0, 1 where there is no such instance."""
    if family is not None and not _FAMILY.fullmatch(family):
        raise refuse("invalid_input", "A family is 1 to 128 letters, digits, '-', '_', '.' and '/'.")
    if not 1 <= limit <= limits.CONNECTION_PAGE_MAX:
        raise refuse("invalid_input", f"A page is of 1 to {limits.CONNECTION_PAGE_MAX} operations.")
    page = cli.host.operating.list_(selection, family, limit, cursor)
    columns = {"id": "operation", "effect": "effect", "description": "what it asks"}
    more = [f"  Go on with --cursor {page['next_cursor']}"] if "next_cursor" in page else []
    empty = "The instance permits no operation."
    cli.output.result(page, lambda: [*table(page["operations"], columns, empty=empty), *more])


@operations.command()
@click.argument("operation")
@on_instance
@pass_cli
def describe(cli: Cli, selection: Selection, operation: str) -> None:
    """Show an operation with its schemas. Exit status: 0, or 1 where there is none that is permitted."""
    told = cli.host.operating.describe(selection, operation)
    name = f"{told['connector']}/{told['instance']}"

    def human() -> list[str]:
        one = told["operation"]
        shown = {"operation": one["id"], "what it asks": one["description"], "effect": one["effect"]}
        shown |= {"revision": told["revision"], "schema": told["schema"]}
        ask = f"  Next: {typed('headwater')} invoke {name} {operation}"
        return [*pairs(shown), *taken(one["input_schema"]), ask]

    cli.output.result(told, human)


def taken(schema: Mapping[str, Any]) -> list[str]:
    """Lay out what an operation takes: a line a member, with what it is where the schema says that."""
    required = schema.get("required", ())
    lines = []
    for name, one in schema.get("properties", {}).items():
        about = one.get("description") if isinstance(one, dict) else None
        optional = "" if name in required else " (optional)"
        lines.append(f"  {plain(name)}{optional}{f': {plain(about)}' if isinstance(about, str) else ''}")
    return ["takes:", *lines] if lines else ["takes: {}"]
