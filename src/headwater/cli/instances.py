"""`headwater instances`: set up what is collected, without running it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headwater import clock
from headwater.cli.output import table, typed
from headwater.cli.session import Cli, pass_cli

if TYPE_CHECKING:
    from headwater.catalog.instances import Instance
    from headwater.host import Host


@click.group()
def instances() -> None:
    """Set up what is collected, without running it."""


@instances.command()
@click.argument("name", metavar="<connector>/<instance>")
@click.option("--set", "settings", multiple=True, metavar="OPTION=VALUE", help="Set an option.")
@click.option("--from", "folder", type=click.Path(path_type=Path), help="The connector's folder, for one of your own.")
@click.option("--binding", "bindings", multiple=True, metavar="NAME=OBJECT", help="Offer a binding of your own.")
@pass_cli
def add(cli: Cli, name: str, settings: tuple[str, ...], folder: Path | None, bindings: tuple[str, ...]) -> None:
    """Remember an instance. Exit status: 0, or 2 where the options do not fit."""
    instance = cli.host.set_up(name, settings, folder, bindings)
    result = {"instance": instance.name, "options": dict(instance.options), "bindings": dict(instance.bindings)}
    cli.output.result(
        result, lambda: [f"{instance.name} is set up.", f"  Next: {typed('headwater')} collect {instance.name}"]
    )


@instances.command("list")
@pass_cli
def list_(cli: Cli) -> None:
    """List the instances that are set up. Exit status: 0."""
    found = cli.host.instances.all()
    due = _due(cli.host, found)
    rows = [
        {
            "instance": item.name,
            "folder": None if item.folder is None else str(item.folder),
            "options": dict(item.options),
            "shown": ", ".join(f"{key}={value}" for key, value in item.options.items()),
            "next": due.get(item.name),
        }
        for item in found.values()
    ]
    columns = {"instance": "instance", "shown": "options", "folder": "folder"}
    if due:
        columns["next"] = "next run"
    result = [{name: value for name, value in row.items() if name not in ("shown", "next")} for row in rows]
    cli.output.result({"instances": result}, lambda: table(rows, columns, empty="No instance is set up."))


def _due(host: Host, found: Mapping[str, Instance]) -> dict[str, str]:
    """Say of each instance with a schedule when it is collected next."""
    if all(item.schedule is None for item in found.values()):
        return {}
    from headwater.cli.schedule import next_start
    from headwater.scheduler import standings

    now = clock.now()
    return {standing.name: next_start(standing, now) for standing in standings(host, now)}
