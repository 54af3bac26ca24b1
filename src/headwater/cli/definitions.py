"""`headwater definitions`: definitions, which say what services can be asked, and releases of them."""

from pathlib import Path

import click

from headwater.cli.output import plain, typed
from headwater.cli.session import Cli, pass_cli
from headwater.errors import refuse


@click.group()
def definitions() -> None:
    """Definitions, which say what services can be asked, and releases of them."""


@definitions.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--definitions-root", "root", type=click.Path(path_type=Path), help="Where definitions share files.")
@pass_cli
def check(cli: Cli, file: Path, root: Path | None) -> None:
    """Say what is wrong with a definition file, each fault with its place.

    Exit status: 0 nothing is, 1 something is, 2 the file cannot be read.
    """
    from headwater.joining.defining import checked

    faults = checked(file, root)
    if faults:
        lines = [f"{fault['pointer'] or '/'}: {fault['message']}" for fault in faults]
        raise refuse("not_conforming", "The definition cannot be used.", explanation=lines)
    ask = f"  Next: {typed('headwater')} invoke --definition {plain(file)} OPERATION --describe"
    cli.output.result({"definition": str(file), "faults": []}, lambda: ["The definition is in order.", ask])


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
