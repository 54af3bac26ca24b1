"""`headwater setup`: what this machine has for Headwater to stand on."""

from typing import TYPE_CHECKING

import click
import msgspec

from headwater.cli.output import table
from headwater.cli.session import Cli, pass_cli

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.readiness import Readiness

COLUMNS = {"name": "what", "state": "state", "detail": "detail"}
WAYS = {"name": "confinement", "works": "works", "holds": "holds", "why": "why not"}


@click.group()
def setup() -> None:
    """What this machine has for Headwater to stand on."""


@setup.command()
@pass_cli
def check(cli: Cli) -> None:
    """Look at the configuration, the database and the folders, and try each way to confine connectors.

    Nothing is changed. Exit status: 0 whatever was found, 2 the configuration cannot be used.
    """
    settings = cli.host.settings
    found = cli.host.readiness()
    result = {
        "config_path": str(settings.config_path),
        "state_path": str(settings.state_dir),
        "os": found.system,
        "prerequisites": msgspec.to_builtins(found.prerequisites),
        "confinement": msgspec.to_builtins(found.confinement),
    }
    cli.output.result(result, lambda: _lines(found))


def _lines(found: "Readiness") -> "Iterator[str]":
    yield from table([msgspec.to_builtins(row) for row in found.prerequisites], COLUMNS, empty="")
    yield ""
    rows = [{**msgspec.to_builtins(way), "holds": ", ".join(way.holds)} for way in found.confinement.ways]
    yield from table(rows, WAYS, empty="")
    for way in found.confinement.ways:
        if way.name == found.confinement.used:
            yield from (f"  {sentence}" for sentence in way.weaker)
    commands = [row.command for row in found.prerequisites if row.command]
    if found.confinement.command and found.confinement.command not in commands:
        commands.append(found.confinement.command)
    yield from (f"  Next: {command}" for command in commands)
