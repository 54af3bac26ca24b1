"""`headwater connectors add|upgrade|remove`: connectors that somebody else wrote."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headwater.cli.output import plain, typed
from headwater.cli.session import Cli, pass_cli

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.catalog.folders import ConnectorFolder
    from headwater.catalog.offers import Offer


def _offered(command: "Callable[..., Any]") -> "Callable[..., Any]":
    """Add what says what a connector is: its folder, its manifest, the command that runs it."""
    options = (
        click.argument("path", type=click.Path(path_type=Path, file_okay=False)),
        click.argument("command", nargs=-1, metavar="[-- CMD [ARG]...]"),
        click.option("--manifest", type=click.Path(path_type=Path), help="The manifest, if not PATH/manifest.json."),
        click.option("--variable", "variables", multiple=True, metavar="NAME", help="A variable to set as an option."),
        click.option("--compatibility", default="", metavar="NAME", help="A way to speak: pdpp-reference/1."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@_offered
@click.option("--name", help="What to call it here; if not given, the last part of its connector_id.")
@pass_cli
def add(cli: Cli, /, name: str | None, **offered: Any) -> None:
    """Take a connector over from a folder: its files are copied and pinned, its packages installed.

    The folder holds manifest.json and connector.toml. Where it holds only a manifest, the command that runs the
    connector follows after --, and connector.toml is made here.

    Exit status: 0, 1 it could not be added, 2 the connector does not fit.
    """
    with cli.host.shelf() as shelf:
        folder = shelf.add(name, _offer(offered), _teller(cli))
    commands = [f"headwater connectors show {folder.name}", f"headwater collect {folder.name}/me"]
    result = {**_described(folder), "next": commands}
    lines = [f"{folder.name} was added.", *_lines(folder), *(f"  Next: {typed(text)}" for text in commands)]
    cli.output.result(result, lambda: lines)


@click.command()
@click.argument("name")
@_offered
@click.option("--accept", is_flag=True, help="Let it have the bindings and variables that it newly asks for.")
@pass_cli
def upgrade(cli: Cli, /, name: str, *, accept: bool, **offered: Any) -> None:
    """Put another version of an added connector in its place. Instances, cursors and records stay as they are.

    Exit status: 0, 1 it could not be upgraded or asks for more than before, 2 the connector does not fit.
    """
    with cli.host.shelf(name) as shelf:
        upgraded = shelf.upgrade(name, _offer(offered), _teller(cli), accept=accept)
    changes, asks = list(upgraded.difference.changes), list(upgraded.difference.asks)
    result = {**_described(upgraded.folder), "changed": upgraded.is_new, "changes": changes, "asks": asks}
    lines = [
        f"{name} was upgraded." if upgraded.is_new else f"{name} has the same files as before.",
        *_lines(upgraded.folder),
        *(f"  {plain(text)}" for text in changes),
        *(f"  It may use {plain(text)}." for text in asks),
        "  Its instances, their cursors and what they collected were not touched.",
    ]
    cli.output.result(result, lambda: lines)


@click.command()
@click.argument("name")
@pass_cli
def remove(cli: Cli, name: str) -> None:
    """Take an added connector away. What it collected stays, and so do its instances and their cursors.

    Exit status: 0, or 1 where there is none, or a run of it is active.
    """
    instances = sorted(text for text, one in cli.host.instances.all().items() if one.connector == name)
    with cli.host.shelf(name) as shelf:
        shelf.remove(name)
    lines = [f"{name} was removed. What it collected stays, with its cursors."]
    lines += [f"  The instance {text} stays in collect.toml." for text in instances]
    cli.output.result({"connector": name, "instances": instances, "kept": ["records", "cursors"]}, lambda: lines)


def _offer(offered: dict[str, Any]) -> "Offer":
    from headwater.catalog.offers import Offer

    return Offer(source=offered.pop("path"), **offered)


def _teller(cli: Cli) -> "Callable[[str], None]":
    return lambda what: cli.output.note(f"Installing {what} ...")


def _described(folder: "ConnectorFolder") -> dict[str, Any]:
    pin, declaration = folder.pin, folder.declaration
    assert pin is not None
    return {
        "connector": folder.name,
        "connector_id": declaration.connector_id,
        "version": folder.version,
        "digest": pin.digest,
        "files": len(pin.tree.entries),
        "installed": list(pin.built),
        "streams": sorted(declaration.streams),
        "bindings": sorted(declaration.bindings),
    }


def _lines(folder: "ConnectorFolder") -> list[str]:
    """Say what was taken over, and what its pin does not hold."""
    facts = _described(folder)
    lines = [
        f"  {facts['files']:,} files, {facts['digest']}",
        f"  Streams: {', '.join(facts['streams'])}",
        f"  It asks for: {', '.join(facts['bindings']) or 'nothing'}",
    ]
    outside = [word for word in folder.package.command if word.startswith("/")]
    return [*lines, *(f"  Not copied, and not pinned: {plain(word)}" for word in outside)]
