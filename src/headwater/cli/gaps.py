"""`headwater gaps`: details that are known to be missing, and trying them again."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from headwater.cli.output import clip, pairs, table, typed
from headwater.cli.session import Cli, page_options, pass_cli
from headwater.errors import refuse

if TYPE_CHECKING:
    from headwater.catalog.instances import Instance
    from headwater.collect.ports import Outcome

COLUMNS = {
    "gap": "gap",
    "instance": "instance",
    "stream": "stream",
    "parent": "of",
    "key": "key",
    "reason": "reason",
    "status": "status",
    "tries": "tries",
    "due_at": "next try after",
}
RETRIED = {"instance": "instance", "tried": "tried", "healed": "healed", "open": "still open", "run_id": "run"}
NEXT = {
    "recovered": "Nothing: its record came.",
    "in_progress": "A run is trying it now.",
    "not_retryable": "Its connector says that trying again will not help. To try all the same:",
    "given_up": "It was tried too often to be tried by itself. To try again:",
    "pending": "It is tried again by itself with the next run after that time. To try now:",
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


@gaps.command()
@click.argument("gap", type=click.IntRange(1, 2**63 - 1), metavar="GAP")
@pass_cli
def explain(cli: Cli, gap: int) -> None:
    """Say what is missing, why, how often it was tried, and what happens next.

    Exit status: 0, or 1 where there is no such gap.
    """
    with cli.host.reading() as reader:
        row = reader.gap(gap)
    cli.output.result(row, lambda: _explained(row))


@gaps.command()
@click.argument("instance", required=False, metavar="[<connector>/<instance>]")
@click.option("--gap", "numbers", type=click.IntRange(1, 2**63 - 1), multiple=True, help="Only this one; repeatable.")
@click.option("--stream", "streams", multiple=True, metavar="NAME", help="Only those of a stream; repeatable.")
@click.option("--due", is_flag=True, help="Only those whose wait is over.")
@pass_cli
def retry(cli: Cli, instance: str | None, numbers: tuple[int, ...], streams: tuple[str, ...], due: bool) -> None:
    """Try open gaps again now: runs that ask their connectors for just the missing keys.

    A gap that its connector called not retryable is tried only when --gap names it.

    Exit status: 0 every run succeeded, 1 one of them failed, 130 interrupted.
    """
    from headwater import clock
    from headwater.cli.running import retry_gaps
    from headwater.collect.gaps import Turn

    turn = Turn(due, streams, numbers, untried_since=clock.stamp())
    results: list[dict[str, Any]] = []
    failed = None
    for name in _instances(cli, instance, numbers):
        for outcome in retry_gaps(cli.host, cli.output, name, turn):
            results.append(_retried(name.name, outcome))
            failed = failed if outcome.verdict.status == "succeeded" else outcome
    if failed is not None:
        code = "interrupted" if failed.verdict.cause == "cancelled" else "run_failed"
        command = f"headwater runs explain {failed.run_id}"
        raise refuse(code, failed.verdict.message, safe="The gaps stay open.", command=command, retried=results)
    cli.output.result({"items": results}, lambda: table(results, RETRIED, empty="No gap can be tried now."))


def _instances(cli: Cli, instance: str | None, numbers: tuple[int, ...]) -> list["Instance"]:
    """Return the instances whose gaps are to be tried; one that was not set up cannot be run again."""
    wanted = _wanted(cli, instance, numbers)
    known = cli.host.instances.all()
    missing = [name for name in wanted if name not in known]
    if missing and (instance is not None or numbers):
        message = "The instance is not set up here: only a run of its own program can try its gaps."
        raise refuse("not_found", message, command="headwater instances list")
    for name in missing:
        cli.output.note(f"{name} is not set up here; its gaps are left open.")
    return [known[name] for name in wanted if name in known]


def _wanted(cli: Cli, instance: str | None, numbers: tuple[int, ...]) -> list[str]:
    with cli.host.reading() as reader:
        if numbers:
            return sorted({reader.gap(number)["instance"] for number in numbers})
        return [instance] if instance is not None else reader.instances_with_gaps()


def _retried(instance: str, outcome: "Outcome") -> dict[str, Any]:
    counts = {"tried": outcome.tried, "healed": outcome.healed, "open": outcome.tried - outcome.healed}
    return {"instance": instance, **counts, "run_id": outcome.run_id, "status": outcome.verdict.status}


def _explained(gap: Mapping[str, Any]) -> Iterable[str]:
    key = f"The record {clip(gap['key'], 100)}" if gap["key"] is not None else "A detail without a key"
    yield f"{key} of {gap['stream']} in {gap['instance']} is {gap['status'].replace('_', ' ')}."
    yield from pairs(
        {
            "reason": gap["reason"],
            "parent": gap["parent"] or None,
            "where": _words(gap["locator"]),
            "last error": _words(gap["last_error"]),
            "reported": f"{_times(gap['times'])}, first by {gap['first_run']}",
            "tried again": _times(gap["tries"]),
            "last try": gap["tried_at"],
            "next try after": gap["due_at"] if gap["status"] == "pending" and gap["key"] is not None else None,
        }
    )
    if gap["key"] is None:
        yield "It has no key to ask for: it heals only when its own connector finds it again."
        return
    yield NEXT[gap["status"]]
    if gap["status"] not in ("recovered", "in_progress"):
        yield f"    {typed('headwater')} gaps retry --gap {gap['gap']}"


def _times(count: int) -> str:
    return f"{count:,} time{'' if count == 1 else 's'}"


def _words(value: Any) -> str | None:
    return None if value is None else clip(bytes(value).decode(), 200)
