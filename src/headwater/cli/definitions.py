"""`headwater definitions`: definitions, which say what services can be asked, and releases of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from headwater.cli.output import plain, table, typed
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
    """Fetch a release, check every file of it against its index, and keep it. No instance uses it by itself.

    Exit status: 0 it is installed; 1 there is no such release, or it cannot be read, taken or kept; 2 what was typed
    or the configuration does not fit.
    """
    told = cli.host.releases.install(source, tag)
    new = "is installed" if told["cache_entry"] == "created" else "was there already, and is the one in the lock"
    lines = [
        f"Release {told['tag']} {new}: {told['files']:,} files.",
        f"  In {plain(told['cache_path'])}",
        f"  Named in {plain(told['lock_path'])}",
        f"  Next: {typed('headwater')} definitions use <connector>/<instance> --release {told['index_sha256']}",
    ]
    cli.output.result(told, lambda: lines)


@definitions.command("list")
@pass_cli
def list_(cli: Cli) -> None:
    """List the releases that are installed, and the instances that each one serves. Exit status: 0."""
    told = cli.host.opting.releases()
    columns = {"release": "release", "tag": "tag", "files": "files", "instances": "serves"}
    cli.output.result(
        told, lambda: table([_row(row) for row in told["releases"]], columns, empty="No release is installed.")
    )


@definitions.command()
@click.argument("instance", metavar="<connector>/<instance>")
@click.option("--release", metavar="DIGEST", help="The release, by the SHA-256 of its index that installing it told.")
@click.option("--none", "leaves", is_flag=True, help="No release: its connector serves it again.")
@pass_cli
def use(cli: Cli, instance: str, release: str | None, leaves: bool) -> None:
    """Have an instance served by an installed release: what it can be asked, and how it is signed in to.

    Exit status: 0 it is; 1 there is no such release, or none of the connector in it, or it is not as it was installed;
    2 what was typed or the configuration does not fit.
    """
    if leaves is (release is not None):
        message = "Say which release with --release DIGEST, or --none for no release."
        raise refuse("invalid_input", message, safe="Nothing was written.", command="headwater definitions list")
    told = cli.host.opting.leave(instance) if release is None else cli.host.opting.use(instance, release)
    cli.output.result(told, lambda: _left(told) if release is None else _used(told))


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a person reads of a release: of one that cannot be read, why."""
    tag = row["fault"]["message"] if "fault" in row else row["tag"]
    return {**row, "tag": tag, "instances": ", ".join(row["instances"])}


def _used(told: Mapping[str, Any]) -> list[str]:
    name, digits = plain(told["instance"]), told["release"]
    how = {"created": "is set up, and served by", "changed": "is served from now on by", "unchanged": "is served by"}
    states = [one["state"] for one in told["connections"]]
    step = f"connections connect {name}" if told["profiles"] and not states else f"operations list {name}"
    lines = [f"{name} {how[told['disposition']]} release {digits}."]
    if any(state != "ready" for state in states):
        lines.append(f"  Its connection is not ready under it ({', '.join(states)}).")
        lines.append("  The release that served it before, or --none, brings back what was.")
        step = f"connections status {name}"
    return [*lines, f"  Next: {typed('headwater')} {step}"]


def _left(told: Mapping[str, Any]) -> list[str]:
    name = plain(told["instance"])
    if told["is_served"]:
        return [f"{name} is served by its connector, and by no release."]
    return [f"{name} is served by no release, and there is no connector of its name. A connection that it has stays."]
