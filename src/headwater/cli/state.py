"""`headwater state`: committed cursors."""

import click

from headwater.cli.output import clip, table
from headwater.cli.session import Cli, pass_cli


@click.group()
def state() -> None:
    """The committed cursors of an instance."""


@state.command()
@click.argument("instance", metavar="<connector>/<instance>")
@pass_cli
def show(cli: Cli, instance: str) -> None:
    """Show the cursors that the next run starts from. Exit status: 0."""
    with cli.host.reading() as reader:
        rows = reader.state(instance)
    columns = {"stream": "stream", "namespace": "namespace", "shown": "cursor", "committed_at": "committed at"}
    shown = [{**row, "shown": clip(bytes(row["cursor"]).decode(), 60)} for row in rows]
    cli.output.result({"cursors": rows}, lambda: table(shown, columns, empty="No cursor has been committed yet."))
