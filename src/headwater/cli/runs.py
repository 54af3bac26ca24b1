"""`headwater runs`: what committed, what was withheld, and why."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from headwater.cli.output import clip, pairs, plain, table, typed
from headwater.cli.session import Cli, page_options, pass_cli
from headwater.collect.hints import SENTENCES, action_of
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
    cli.output.result(row, lambda: _explained(row))


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


def _explained(run: Mapping[str, Any]) -> Iterable[str]:
    columns = {"stream": "stream", "seen": "seen", "kept": "kept", "unchanged": "unchanged", "deleted": "deleted"}
    columns |= {"rejected": "rejected", "gaps": "gaps"}
    yield f"{run['run_id']} of {run['instance']}: {run['status']}. {plain(run['message'])}"
    yield from (f"  {line}" for line in table(run["streams"], columns, empty="No stream was in scope."))
    yield ""
    yield from _cursors(run["checkpoints"])
    yield from _details(run)
    yield from _words(run)


def _cursors(checkpoints: Mapping[str, Any]) -> Iterable[str]:
    for stream in checkpoints["committed"]:
        yield f"Cursor of {stream}: committed. The next run goes on from there."
    for held in checkpoints["withheld"]:
        yield f"Cursor of {held['stream']}: withheld ({held['reason']}). {plain(held['message'])}"
        for key in held.get("keys", []):
            yield f"    {clip(key, 100)}"
    for row in checkpoints["covered"]:
        yield f"{row['stream']} rides on the cursor of {row['by']}: {row['status'].replace('_', ' ')}."
    if not checkpoints["committed"] and not checkpoints["withheld"]:
        yield "No cursor was sent."


def _details(run: Mapping[str, Any]) -> Iterable[str]:
    for report in run["facts"].get("coverage", []):
        counts = ", ".join(
            f"{report[name]:,} {name}" for name in ("required", "hydrated", "gaps", "skipped") if name in report
        )
        missing = f"{len(report['unaccounted'])} unaccounted"
        yield f"Details of {report['parent']} in {report['stream']}: {counts}, {missing}."
    for kind, count in run["facts"].get("extensions", {}).items():
        yield f"Not of the protocol, but of the connector's compatibility: {count:,} {kind}."
    for stream, counts in run["facts"].get("evidence", {}).items():
        yield f"{stream} by its own count: {_evidence(counts)}"
    if run["healed"]:
        yield f"Gaps that healed, because their record came: {run['healed']:,}"
    if run["gaps"]:
        yield "Gaps that are still open:"
        yield from (
            f"    {gap['stream']} {clip(gap['key'] or gap['locator'], 60)}: {clip(gap['reason'], 60)}"
            for gap in run["gaps"][:20]
        )
    for skip in run["facts"].get("skips", [])[:20]:
        stream = plain(skip["stream"] or "something")
        if (page := skip["continuation"]) is not None:
            bounds = f"{clip(page['slice_start'], 40)} to {clip(page['slice_end'], 40)}"
            counts = f"{page['covered']:,} of {page['considered']:,}"
            yield f"{stream} from {bounds}: {counts} covered. What lies outside is not claimed; more remains."
        else:
            yield f"Skipped {stream}: {clip(skip['message'] or skip['reason'], 120)}"


def _evidence(counts: Mapping[str, int]) -> str:
    """Say what a stream's evidence covers, and never more (CP-631, CP-632)."""
    covered, missing = counts["emitted"] + counts["unchanged"], counts["gapped"] + counts["unaccounted"]
    if not missing:
        return f"{covered:,} of {counts['considered']:,} covered."
    parts = f"{counts['gapped']:,} gapped, {counts['unaccounted']:,} unaccounted"
    return f"{covered:,} of {counts['considered']:,} covered, {parts}: not complete."


def _words(run: Mapping[str, Any]) -> Iterable[str]:
    error = run["facts"].get("error")
    if error:
        yield f"The connector says: {clip(error['message'], 200)}"
        yield f"What now: {SENTENCES[action_of(error)]}"
    if any(stream["rejected"] for stream in run["streams"]):
        yield f"Refused records: {typed('headwater')} rejections list --run {run['run_id']}"
    if run["stderr_tail"] and run["status"] != "succeeded":
        yield "The end of the connector's stderr:"
        yield from (f"    {plain(line)}" for line in run["stderr_tail"].splitlines()[-12:])
