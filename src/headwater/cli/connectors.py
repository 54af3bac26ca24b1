"""`headwater connectors`: what can be run; make one; check one; add somebody else's."""

import shlex
from pathlib import Path
from typing import Any

import click

from headwater.cli.adding import add, remove, upgrade
from headwater.cli.certifying import certify
from headwater.cli.checking import check
from headwater.cli.integrations import disable, enable, integrations
from headwater.cli.output import clip, pairs, table, typed
from headwater.cli.session import Cli, pass_cli
from headwater.cli.validating import declared, streams_table, validate

_DIGEST_SHOWN = len("sha256:") + 12


@click.group()
def connectors() -> None:
    """What can be run; make one; check one; add somebody else's."""


@connectors.command("list")
@pass_cli
def list_(cli: Cli) -> None:
    """List the connectors of this machine. Exit status: 0."""
    members = ("origin", "version", "digest", "description")
    rows = [
        {"connector": folder.name, **{member: getattr(folder, member) for member in members}}
        for folder in cli.host.catalog.all()
    ]
    columns = {"connector": "connector", "origin": "origin", "version": "version", "pinned": "digest"}
    columns["description"] = "what it collects"
    shown = [{**row, "pinned": row["digest"][:_DIGEST_SHOWN]} for row in rows]
    cli.output.result({"connectors": rows}, lambda: table(shown, columns, empty="There is no connector."))


@connectors.command()
@click.argument("name")
@pass_cli
def show(cli: Cli, name: str) -> None:
    """Show what a connector declares: streams, bindings, options. Exit status: 0, or 1 where there is none."""
    folder = cli.host.catalog.find(name)
    declaration, package = folder.declaration, folder.package
    options = dict(package.options.get("properties", {}))
    result: dict[str, Any] = {
        "connector": name,
        **declared(declaration),
        "origin": folder.origin,
        "digest": folder.digest,
        "changes": folder.changes,
        "command": list(package.command),
        "compatibility": package.compatibility,
        "options": options,
        "required_options": list(package.options.get("required", [])),
    }

    def human() -> list[str]:
        facts: dict[str, Any] = {key: result[key] for key in ("connector_id", "version", "display_name", "origin")}
        facts |= {"command": shlex.join(package.command), "bindings": ", ".join(result["bindings"]) or "none"}
        facts |= {key: result[key] or None for key in ("digest", "compatibility")}
        facts["changed since"] = "; ".join(folder.changes) or None
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


for command in (add, certify, check, disable, enable, integrations, remove, upgrade, validate):
    connectors.add_command(command)
