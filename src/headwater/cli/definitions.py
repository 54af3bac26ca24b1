"""`headwater definitions`: releases of definitions, which say what providers can be asked."""

import click

from headwater.cli.output import plain
from headwater.cli.session import Cli, pass_cli


@click.group()
def definitions() -> None:
    """Releases of definitions, which say what providers can be asked."""


@definitions.command()
@click.option("--source", required=True, help="The URL of a repository, over https, or a folder.")
@click.option("--tag", required=True, help="Which release of it.")
@pass_cli
def install(cli: Cli, source: str, tag: str) -> None:
    """Fetch a release, check every file of it against its index, and keep it. No instance uses it yet.

    Exit status: 0 it is installed; 1 there is no such release, or it cannot be read, taken or kept; 2 what was typed
    or the configuration does not fit.
    """
    told = cli.host.releases.install(source, tag)
    new = "is installed" if told["cache_entry"] == "created" else "was there already, and is the one in the lock"
    lines = [
        f"Release {told['tag']} {new}: {told['files']:,} files.",
        f"  In {plain(told['cache_path'])}",
        f"  Named in {plain(told['lock_path'])}",
    ]
    cli.output.result(told, lambda: lines)
