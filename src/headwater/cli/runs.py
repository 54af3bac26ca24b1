"""`headwater runs`: what committed, what was withheld, and why."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from headwater.cli.explaining import explained
from headwater.cli.output import pairs, table
from headwater.cli.session import Cli, page_options, pass_cli
from headwater.errors import refuse

COLUMNS = {
    "run_id": "run",
    "instance": "instance",
    "status": "status",
    "cause": "cause",
    "accepted": "new or changed",
    "unchanged": "unchanged",
    "rejected": "rejected",
    "started_at": "started at",
}
SHOWN = ("run_id", "instance", "mode", "status", "cause", "message", "started_at", "ended_at", "namespace", "undone_by")
STATUSES = click.Choice(["running", "succeeded", "failed", "cancelled", "abandoned"])


@click.group()
def runs() -> None:
    """What committed, what was withheld, and why."""


@runs.command("list")
@click.argument("instance", required=False, metavar="[<connector>/<instance>]")
@click.option("--status", type=STATUSES, help="Only runs that ended so.")
@page_options
@pass_cli
def list_(cli: Cli, instance: str | None, status: str | None, limit: int, cursor: str | None) -> None:
    """List runs, newest first. Exit status: 0."""
    with cli.host.reading() as reader:
        page = reader.runs(instance, status, limit, cursor)
    cli.output.result(page, lambda: table(page["items"], COLUMNS, empty="Nothing has been run yet."))


@runs.command()
@click.argument("run", default="last", metavar="[RUN]")
@pass_cli
def show(cli: Cli, run: str) -> None:
    """Show one run as it is kept; the newest one without RUN. Exit status: 0, or 1 where there is no such run."""
    with cli.host.reading() as reader:
        row = reader.run(run)
    cli.output.result(row, lambda: pairs({name: row[name] for name in SHOWN}))


@runs.command()
@click.argument("run", default="last", metavar="[RUN]")
@pass_cli
def explain(cli: Cli, run: str) -> None:
    """Say what a run saw, kept and refused, and the fate of every cursor, with the exact key or reason.

    Exit status: 0, or 1 where there is no such run.
    """
    with cli.host.reading() as reader:
        row = reader.run(run)
    for stream in row["streams"]:
        stream["seen"] = sum(stream[name] for name in ("accepted", "unchanged", "deleted", "rejected"))
        stream["kept"] = stream.pop("accepted")
    cli.output.result(row, lambda: explained(row))


@runs.command()
@click.argument("run", metavar="RUN")
@pass_cli
def cancel(cli: Cli, run: str) -> None:
    """End a run that is under way. What it stored stays; none of its cursors moves.

    Exit status: 0 it was told to end, 1 where no such run is under way.
    """
    if not cli.host.cancel(run):
        raise refuse("not_found", "No such run is under way.", command="headwater runs list --status running")
    cli.output.result({"run_id": run, "status": "cancelling"}, lambda: ["The run was told to end."])


@runs.command()
@click.argument("run", metavar="RUN")
@click.option("--dry-run", "rehearse", is_flag=True, help="Say what would come back, and change nothing.")
@pass_cli
def undo(cli: Cli, run: str, *, rehearse: bool) -> None:
    """Bring back the records and cursors that a run changed, as they were before it.

    Nothing is erased: the history of each record keeps what the run wrote. A run on which a later one built is
    refused; undo the later one first.

    Exit status: 0, or 1 where there is no such run, or a later run built on it.
    """
    undone = cli.host.undo(run, rehearse=rehearse)
    streams = [
        {"stream": name, "restored": tally.accepted, "removed": tally.deleted} for name, tally in undone.streams.items()
    ]
    result = {"undone": undone.undone, "streams": streams, "cursors": list(undone.cursors), "dry_run": rehearse}
    if not rehearse:
        result["run_id"] = undone.run_id
    cli.output.result(result, lambda: _undone(result))


def _undone(result: Mapping[str, Any]) -> Iterable[str]:
    yield f"{result['undone']} {'would be' if result['dry_run'] else 'is'} undone."
    columns = {"stream": "stream", "restored": "as before", "removed": "gone again"}
    yield from (f"  {line}" for line in table(result["streams"], columns, empty="It had changed no record."))
    if result["cursors"]:
        yield f"Cursors that {'would go' if result['dry_run'] else 'went'} back: {', '.join(result['cursors'])}"
    if not result["dry_run"]:
        yield "The next run collects again from there."
