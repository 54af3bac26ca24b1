"""`headwater instances`: what is configured, and set up to be collected, without running it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headwater import clock
from headwater.cli.output import pairs, table, typed
from headwater.cli.selection import OldGroup, SelectingGroup, selected, selectors
from headwater.cli.session import Cli, pass_cli

if TYPE_CHECKING:
    from headwater.catalog.instances import Instance
    from headwater.host import Host


@click.group(cls=SelectingGroup)
def instances() -> None:
    """See what is configured, and set up what is collected, without running it."""


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


@instances.command()
@click.argument("name", metavar="<connector>/<instance>")
@pass_cli
def remove(cli: Cli, name: str) -> None:
    """Forget how an instance is collected. What it collected stays, with its cursors.

    Exit status: 0, or 1 where there is none, it is connected, or a run of it is active.
    """
    told = cli.host.configuring.remove(name)
    lines = [f"{name} was removed. What it collected stays, with its cursors."]
    lines += ["  It stays in config.toml, which is yours to edit."] if told["configured"] else []
    cli.output.result(told, lambda: lines)


@instances.command("list")
@pass_cli
def list_(cli: Cli) -> None:
    """List the instances that are configured. Exit status: 0, or 2 where the configuration cannot be used."""
    listed, found = cli.host.configuring.instances(), cli.host.instances.all()
    due = _due(cli.host, found)
    rows = [_row(f"{row['connector']}/{row['instance']}", found, due) for row in listed["instances"]]
    columns = {"instance": "instance", "options": "options", "folder": "folder"}
    if due:
        columns["next"] = "next run"
    cli.output.result(listed, lambda: table(rows, columns, empty="No instance is set up."))


def _row(name: str, found: Mapping[str, Instance], due: Mapping[str, str]) -> dict[str, str | None]:
    """Return what a person reads of an instance."""
    item = found.get(name)
    options = "" if item is None else ", ".join(f"{key}={value}" for key, value in item.options.items())
    folder = None if item is None or item.folder is None else str(item.folder)
    return {"instance": name, "options": options, "folder": folder, "next": due.get(name)}


@instances.command()
@click.argument("target", required=False, metavar="[<connector>/<instance>]")
@selectors
@pass_cli
def describe(cli: Cli, target: str | None, connector: str | None, instance: str | None, adapter: str | None) -> None:
    """Show what is configured of one instance. Exit status: 0, 1 where there is none, 2 what was typed does not fit."""
    selection = selected(connector, instance, adapter, target)
    told = cli.host.configuring.describe(selection) | cli.host.operating.descriptor(selection)
    name = f"{told['connector']}/{told['instance']}"
    said = [one["id"] for one in told.get("descriptor", {}).get("operations", ())]
    more = {"operations": ", ".join(said)} if said else {}
    cli.output.result(told, lambda: pairs({"instance": name, **_flat(told["configuration"]), **more}))


@instances.command()
@click.argument("target", required=False, metavar="[<connector>/<instance>]")
@selectors
@pass_cli
def status(cli: Cli, target: str | None, connector: str | None, instance: str | None, adapter: str | None) -> None:
    """Show how the program of an instance stands, as its owner sees it; nothing is started.

    Exit status: 0 whatever was seen, 1 there is no such instance, 2 what was typed does not fit.
    """
    told = cli.host.owning.observe(selected(connector, instance, adapter, target))
    cli.output.result({"observation": told}, lambda: _observed(told))


@instances.command()
@click.argument("target", required=False, metavar="[<connector>/<instance>]")
@selectors
@click.option("--expected-revision", required=True, help="The configuration revision that `status` showed.")
@click.option("--host-incarnation", required=True, help="The owner's incarnation that `status` showed.")
@click.option("--child-incarnation", required=True, help="The program's incarnation that `status` showed.")
@pass_cli
def stop(
    cli: Cli,
    target: str | None,
    connector: str | None,
    instance: str | None,
    adapter: str | None,
    expected_revision: str,
    host_incarnation: str,
    child_incarnation: str,
) -> None:
    """Stop exactly the program that `status` showed, and keep the instance stopped until it is used by name.

    Exit status: 0 stopped, 1 it is another one by now or nobody owns it, 2 what was typed does not fit.
    """
    named = (expected_revision, host_incarnation, child_incarnation)
    told = cli.host.owning.stop_instance(selected(connector, instance, adapter, target), *named)
    cli.output.result({"observation": told}, lambda: _observed(told))


def _observed(told: Mapping[str, Any]) -> list[str]:
    """Return an observation for people: when it was made is a time of the day."""
    rows = {name: value for name, value in told.items() if name != "observed_at_ms"}
    return pairs({**rows, "observed_at": clock.from_micros(told["observed_at_ms"] * 1000)})


def _flat(told: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Return members of members beside the others, for people."""
    rows: dict[str, Any] = {}
    for name, value in told.items():
        if isinstance(value, dict):
            rows.update(_flat(value, f"{above}{name}."))
        else:
            rows[f"{above}{name}"] = ", ".join(map(str, value)) if isinstance(value, list) else value
    return rows


def _due(host: Host, found: Mapping[str, Instance]) -> dict[str, str]:
    """Say of each instance with a schedule when it is collected next."""
    if all(item.schedule is None for item in found.values()):
        return {}
    from headwater.cli.schedule import next_start
    from headwater.scheduler import standings

    now = clock.now()
    return {standing.name: next_start(standing, now) for standing in standings(host, now)}


adapters = OldGroup(
    "adapters",
    commands=instances.commands,
    help="The old name of instances (deprecated).",
    old={name: f"instances {name}" for name in ("list", "describe", "status", "stop")},
)
