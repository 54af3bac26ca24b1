"""`headwater list`: the connectors of this build, how each is signed in to, and the instances of it."""

from typing import Final

import click

from headwater.cli.output import table
from headwater.cli.session import Cli, pass_cli
from headwater.errors import HeadwaterError
from headwater.host import Host
from headwater.settings import resolve

NOWHERE: Final = "/nonexistent/headwater/config.toml"
COLUMNS = {"connector": "CONNECTOR", "profiles": "PROFILES", "instances": "INSTANCES"}


@click.command("list")
@pass_cli
def list_(cli: Cli) -> None:
    """List the connectors that can be connected and collected, each with the instances that are configured.

    Nothing has to be configured for this. Exit status: 0, or 2 where a configuration cannot be used.
    """
    found = _host(cli).configuring.connectors()
    rows = [
        {**row, "profiles": ", ".join(row["profiles"]) or "-", "instances": ", ".join(row["instances"]) or "-"}
        for row in found["connectors"]
    ]
    cli.output.result(found, lambda: table(rows, COLUMNS, empty="There is no connector."))


def _host(cli: Cli) -> Host:
    """Return the host. Only the configuration's path counts; without one, nothing is configured (CLI-251)."""
    try:
        return Host(resolve(cli.config, cli.state_dir or NOWHERE))
    except HeadwaterError:
        if cli.config or cli.state_dir:
            raise
        return Host(resolve(NOWHERE, NOWHERE))
