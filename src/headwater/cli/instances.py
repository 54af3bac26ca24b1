"""`headwater instances`: set up what is collected, without running it."""

from pathlib import Path

import click

from headwater.cli.output import table, typed
from headwater.cli.session import Cli, pass_cli


@click.group()
def instances() -> None:
    """Set up what is collected, without running it."""


@instances.command()
@click.argument("name", metavar="<connector>/<instance>")
@click.option("--set", "settings", multiple=True, metavar="OPTION=VALUE", help="Set an option.")
@click.option("--from", "folder", type=click.Path(path_type=Path), help="The connector's folder, for one of your own.")
@pass_cli
def add(cli: Cli, name: str, settings: tuple[str, ...], folder: Path | None) -> None:
    """Remember an instance. Exit status: 0, or 2 where the options do not fit."""
    instance = cli.host.set_up(name, settings, folder)
    result = {"instance": instance.name, "options": dict(instance.options)}
    cli.output.result(
        result, lambda: [f"{instance.name} is set up.", f"  Next: {typed('headwater')} collect {instance.name}"]
    )


@instances.command("list")
@pass_cli
def list_(cli: Cli) -> None:
    """List the instances that are set up. Exit status: 0."""
    rows = [
        {
            "instance": item.name,
            "folder": None if item.folder is None else str(item.folder),
            "options": dict(item.options),
            "shown": ", ".join(f"{key}={value}" for key, value in item.options.items()),
        }
        for item in cli.host.instances.all().values()
    ]
    columns = {"instance": "instance", "shown": "options", "folder": "folder"}
    result = [{name: value for name, value in row.items() if name != "shown"} for row in rows]
    cli.output.result({"instances": result}, lambda: table(rows, columns, empty="No instance is set up."))
