"""`headwater gaps`: details that are known to be missing."""

import click

from headwater.cli.output import table
from headwater.cli.session import Cli, page_options, pass_cli

COLUMNS = {
    "instance": "instance",
    "stream": "stream",
    "parent": "of",
    "key": "key",
    "reason": "reason",
    "status": "status",
    "times": "times",
}


@click.group()
def gaps() -> None:
    """Details that are known to be missing."""


@gaps.command("list")
@click.argument("instance", required=False, metavar="[<connector>/<instance>]")
@click.option("--all", "healed", is_flag=True, help="Those that healed too.")
@page_options
@pass_cli
def list_(cli: Cli, instance: str | None, healed: bool, limit: int, cursor: str | None) -> None:
    """List open gaps, newest first. Exit status: 0."""
    with cli.host.reading() as reader:
        page = reader.gaps(instance, limit, cursor, healed=healed)
    cli.output.result(page, lambda: table(page["items"], COLUMNS, empty="No gap is open."))
