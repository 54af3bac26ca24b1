"""`headwater streams`: what has been collected."""

import click

from headwater.cli.output import table
from headwater.cli.session import Cli, pass_cli

COLUMNS = {
    "instance": "instance",
    "stream": "stream",
    "records": "records",
    "semantics": "kind",
    "updated_at": "last change",
    "checkpoint_at": "cursor of",
}


@click.group()
def streams() -> None:
    """What has been collected, stream by stream."""


@streams.command("list")
@click.argument("instance", required=False, metavar="[<connector>/<instance>]")
@pass_cli
def list_(cli: Cli, instance: str | None) -> None:
    """List the streams, with how many records each holds. Exit status: 0."""
    with cli.host.reading() as reader:
        rows = reader.streams(instance)
    shown = [{**row, "records": f"{row['records']} (inactive)"} if row["inactive_since_ms"] else row for row in rows]
    cli.output.result({"streams": rows}, lambda: table(shown, COLUMNS, empty="No stream has been collected yet."))
