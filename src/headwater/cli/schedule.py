"""`headwater collect schedule`: when instances are collected, and the scheduler that collects them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from headwater import clock, limits
from headwater.cli.output import plain, table, typed
from headwater.cli.session import Cli, pass_cli
from headwater.errors import refuse

if TYPE_CHECKING:
    from headwater.scheduler import Standing

RUN = "headwater collect schedule run"
COLUMNS = {
    "instance": "instance",
    "when": "when",
    "next": "next",
    "last": "last run",
    "failures": "failed in a row",
}


@click.group()
def schedule() -> None:
    """Collect on a schedule: set when, and run the scheduler."""


@schedule.command("set")
@click.argument("instance", metavar="<connector>/<instance>")
@click.option("--cron", metavar="TEXT", help='Five fields, such as "0 7 * * *": minute, hour, day, month, weekday.')
@click.option("--zone", metavar="NAME", help="The zone of --cron, such as Europe/Zurich; this machine's if not given.")
@click.option("--every", metavar="DURATION", help="After each success, such as 30m, 6h or 1d; at least 1m.")
@click.option("--jitter", metavar="DURATION", help="Put each start off by up to this, such as 5m.")
@pass_cli
def set_(cli: Cli, /, instance: str, **given: str | None) -> None:
    """Set when an instance is collected, in place of its schedule before. Nothing is started.

    Exit status: 0, 1 where there is no such instance, 2 where the schedule does not fit.
    """
    members: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if "cron" in members:
        members.setdefault("zone", clock.zone())
    _write(cli, instance, {**members, "since": clock.now().replace(microsecond=0)})


@schedule.command()
@click.argument("instance", metavar="<connector>/<instance>")
@pass_cli
def pause(cli: Cli, instance: str) -> None:
    """Start no more runs of an instance until `resume`; one that runs goes on.

    Exit status: 0, or 1 where there is no such schedule.
    """
    members = {**_members(cli, instance), "paused": True}
    _write(cli, instance, members, next_command=f"headwater collect schedule resume {instance}")


@schedule.command()
@click.argument("instance", metavar="<connector>/<instance>")
@pass_cli
def resume(cli: Cli, instance: str) -> None:
    """Go on after `pause`. Times that passed meanwhile are not caught up, and failures before are forgotten.

    Exit status: 0, or 1 where there is no such schedule.
    """
    members = {**_members(cli, instance), "since": clock.now().replace(microsecond=0)}
    members.pop("paused", None)
    _write(cli, instance, members)


@schedule.command()
@click.argument("instance", metavar="<connector>/<instance>")
@pass_cli
def remove(cli: Cli, instance: str) -> None:
    """Take the schedule of an instance away; the instance stays.

    Exit status: 0, or 1 where there is no such schedule.
    """
    _members(cli, instance)
    cli.host.instances.remove_schedule(instance)
    cli.output.result({"instance": instance}, lambda: [f"{instance} has no schedule any more."])


@schedule.command("list")
@pass_cli
def list_(cli: Cli) -> None:
    """List the schedules, with what is due first. Exit status: 0."""
    from headwater.scheduler import standings

    now = clock.now()
    found = standings(cli.host, now)
    cli.output.result({"schedules": [_row(standing) for standing in found]}, lambda: _listed(found, now))


@schedule.command()
@click.option("--once", is_flag=True, help="Run what is due now, and exit.")
@click.option(
    "--at-once",
    type=click.IntRange(1, limits.SCHEDULE_AT_ONCE_MAX),
    default=limits.SCHEDULE_AT_ONCE,
    help="How many runs at the same time (default 2).",
)
@pass_cli
def run(cli: Cli, once: bool, at_once: int) -> None:
    """Run the scheduler until it is stopped: it starts what is due, and tells of it on stderr.

    Exit status: 0 stopped by SIGTERM, or with --once nothing failed; 1 with --once something failed, or another
    scheduler is active; 130 interrupted.
    """
    from headwater.cli.scheduling import keep_schedules, run_due

    (run_due if once else keep_schedules)(cli.host, cli.output, at_once)


def _members(cli: Cli, instance: str) -> Mapping[str, Any]:
    members = cli.host.instances.find(instance).schedule
    if members is None:
        raise refuse("not_found", "The instance has no schedule.", command="headwater collect schedule list")
    return members


def _write(cli: Cli, instance: str, members: Mapping[str, Any], *, next_command: str = RUN) -> None:
    """Remember a schedule that fits, and show how it stands."""
    from headwater.catalog.schedules import read_schedule
    from headwater.scheduler import standings

    read_schedule(members)
    cli.host.instances.set_schedule(instance, members)
    now = clock.now()
    (standing,) = [item for item in standings(cli.host, now) if item.name == instance]
    cli.output.result(_row(standing), lambda: _told(standing, now, next_command))


def _row(standing: Standing) -> dict[str, Any]:
    """Return a standing as a result: what was set, what is due, and what is known of past runs."""
    due, last, fault = standing.due, standing.last, standing.fault
    return {
        "instance": standing.name,
        **{name: value for name, value in standing.members.items() if name != "since"},
        "paused": standing.schedule is not None and standing.schedule.paused,
        "next_at": None if due is None else clock.text(due.at),
        "last_started_at": None if last is None else clock.text(last.started_at),
        "last_status": None if last is None else last.status,
        "failures": 0 if due is None else due.failures,
        "fault": None if fault is None else {"code": fault.code, "message": fault.message},
    }


def _listed(found: Sequence[Standing], now: datetime) -> Iterator[str]:
    rows = [
        {**_row(standing), "when": _when(standing), "next": next_start(standing, now), "last": _last(standing)}
        for standing in found
    ]
    yield from table(rows, COLUMNS, empty="Nothing is collected on a schedule.")
    for standing in found:
        if standing.fault is not None:
            yield f"{standing.name}: {plain(standing.fault.message)}"
    if found:
        yield f"Runs start while this runs: {typed(RUN)}"


def _told(standing: Standing, now: datetime, next_command: str) -> Iterator[str]:
    yield f"{standing.name}: {_when(standing)}. Next start: {next_start(standing, now)}."
    if standing.fault is not None:
        yield f"  {plain(standing.fault.message)}"
    yield f"  Next: {typed(next_command)}"


def _when(standing: Standing) -> str:
    """Say in words what was set."""
    members = {name: plain(value) for name, value in standing.members.items()}
    rhythm = f"every {members['every']}" if "every" in members else members.get("cron", "?")
    zone = f" {members['zone']}" if "zone" in members else ""
    return f"{rhythm}{zone}" + (f", jitter {members['jitter']}" if "jitter" in members else "")


def _last(standing: Standing) -> str:
    return "" if standing.last is None else f"{standing.last.status} {_written(standing.last.started_at, standing)}"


def next_start(standing: Standing, now: datetime) -> str:
    """Say when a run may start next."""
    if standing.fault is not None:
        return "cannot run"
    if standing.schedule is not None and standing.schedule.paused:
        return "paused"
    if standing.due is None:
        return "never"
    return "now" if standing.due.at <= now else _written(standing.due.at, standing)


def _written(moment: datetime, standing: Standing) -> str:
    """Write a moment in the zone of the schedule, or in this machine's where it has none."""
    rhythm = None if standing.schedule is None else standing.schedule.rhythm
    return f"{moment.astimezone(getattr(rhythm, 'zone', None)):%Y-%m-%d %H:%M %Z}"
