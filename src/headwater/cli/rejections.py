"""`headwater rejections`: records that were refused."""

import base64

import click

from headwater.cli.output import pairs, plain, table
from headwater.cli.session import Cli, page_options, pass_cli

COLUMNS = {
    "receipt": "receipt",
    "instance": "instance",
    "stream": "stream",
    "reason": "reason",
    "key": "key",
    "bytes": "bytes",
    "at": "at",
}
SHOWN_BYTES = 4_000


@click.group()
def rejections() -> None:
    """Records that were refused. A receipt keeps the bytes, except of what was not asked for."""


@rejections.command("list")
@click.argument("instance", required=False, metavar="[<connector>/<instance>]")
@click.option("--run", "run_id", help="Only those of one run.")
@click.option("--stream", help="Only those of one stream.")
@page_options
@pass_cli
def list_(
    cli: Cli, instance: str | None, run_id: str | None, stream: str | None, limit: int, cursor: str | None
) -> None:
    """List receipts, newest first. Exit status: 0."""
    with cli.host.reading() as reader:
        page = reader.rejections(instance, run_id, stream, limit, cursor)
    cli.output.result(page, lambda: table(page["items"], COLUMNS, empty="No record was refused."))


@rejections.command()
@click.argument("receipt", type=int)
@pass_cli
def show(cli: Cli, receipt: int) -> None:
    """Show one receipt and the refused line. Exit status: 0, or 1 where there is no such receipt."""
    with cli.host.reading() as reader:
        row = reader.rejection(receipt)
    line: bytes | None = row.pop("line")
    encoded = None if line is None else base64.b64encode(line).decode()
    text = None if line is None else plain(line[:SHOWN_BYTES].decode("utf-8", "replace"))
    cli.output.result({**row, "line_base64": encoded}, lambda: pairs({**row, "line": text or "not kept"}))
