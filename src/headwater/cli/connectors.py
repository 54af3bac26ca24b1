"""`headwater connectors`: what can be run; make one; check one."""

from pathlib import Path

import click

from headwater.cli.checking import check
from headwater.cli.output import clip, pairs, table, typed
from headwater.cli.session import Cli, pass_cli
from headwater.cli.validating import declared, streams_table, validate


@click.group()
def connectors() -> None:
    """What can be run; make one; check one."""


@connectors.command("list")
@pass_cli
def list_(cli: Cli) -> None:
    """List the connectors of this machine. Exit status: 0."""
    rows = [
        {"connector": folder.name, "origin": folder.origin, "description": folder.description}
        for folder in cli.host.catalog.all()
    ]
    columns = {"connector": "connector", "origin": "origin", "description": "what it collects"}
    cli.output.result({"connectors": rows}, lambda: table(rows, columns, empty="There is no connector."))


@connectors.command()
@click.argument("name")
@pass_cli
def show(cli: Cli, name: str) -> None:
    """Show what a connector declares: streams, bindings, options. Exit status: 0, or 1 where there is none."""
    folder = cli.host.catalog.find(name)
    declaration, package = folder.declaration, folder.package
    options = dict(package.options.get("properties", {}))
    result = {
        "connector": name,
        **declared(declaration),
        "options": options,
        "required_options": list(package.options.get("required", [])),
    }

    def human() -> list[str]:
        facts = {key: result[key] for key in ("connector_id", "version", "display_name")}
        named = [{"option": key, "what": clip(rule.get("description", ""), 80)} for key, rule in options.items()]
        tables = [*streams_table(result["streams"]), ""]
        return [*pairs(facts), "", *tables, *table(named, {"option": "option", "what": "meaning"}, empty="No options.")]

    cli.output.result(result, human)


@connectors.command()
@click.argument("name")
@click.option("--into", type=click.Path(path_type=Path), default=Path(), help="The folder to make it in.")
@pass_cli
def new(cli: Cli, name: str, into: Path) -> None:
    """Make a working connector in a folder of its own, with a test. Exit status: 0, or 1 where the folder exists."""
    from headwater.catalog.scaffold import scaffold

    folder = scaffold(name, into)
    commands = [f"headwater connectors check {folder}", f"headwater collect {name}/me --from {folder}"]
    result = {"folder": str(folder), "next": commands}
    cli.output.result(
        result, lambda: [f"{folder} is a working connector.", *(f"  Next: {typed(text)}" for text in commands)]
    )


connectors.add_command(check)
