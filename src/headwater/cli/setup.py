"""`headwater setup`: make the configuration, and see what this machine has for Headwater to stand on."""

from typing import TYPE_CHECKING

import click
import msgspec

from headwater.cli.output import table, typed
from headwater.cli.session import Cli, pass_cli
from headwater.errors import refuse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from headwater.joining.readiness import Readiness

COLUMNS = {"name": "what", "state": "state", "detail": "detail"}
WAYS = {"name": "confinement", "works": "works", "holds": "holds", "why": "why not"}


@click.group()
def setup() -> None:
    """Make the configuration, and see what this machine has for Headwater to stand on."""


@setup.command()
@pass_cli
def init(cli: Cli) -> None:
    """Make the configuration and the database, for you alone. What is there is never touched.

    Exit status: 0 made, 1 there is a configuration already, 2 its folder cannot be used.
    """
    made = cli.host.configuring.initialize()
    what = "configuration" if made["disposition"] == "created" else "database"
    cli.output.result(made, lambda: [f"The {what} is made.", f"  Next: {typed('headwater list')}"])


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
        "keyring": found.keyring,
        "prerequisites": msgspec.to_builtins(found.prerequisites),
        "confinement": msgspec.to_builtins(found.confinement),
    }
    cli.output.result(result, lambda: _lines(found))


@setup.command("owner-stop")
@pass_cli
def owner_stop(cli: Cli) -> None:
    """Ask the owner of the state directory to end. Nothing is started, and no process is signalled.

    Exit status: 0 it ended, or none was running; 1 it did not.
    """
    told = cli.host.owning.stop()
    words = {"stopped": "The owner has ended.", "not_running": "No owner was running."}
    cli.output.result(told, lambda: [words[told["disposition"]]])


@setup.command("checkpoints-enable")
@click.option("--confirm", type=click.Choice(["one-way"]), help="That this cannot be taken back.")
@pass_cli
def checkpoints_enable(cli: Cli, confirm: str | None) -> None:
    """Let the database open from a checkpoint; every database of this release does. Exit status: 0, or 1 it cannot."""
    if confirm is None:
        raise refuse("confirmation_required", command="headwater setup checkpoints-enable --confirm one-way")
    told = cli.host.configuring.enable_checkpoints()
    cli.output.result(told, lambda: ["The database opens from a checkpoint already."])


@setup.command()
@click.option("--mode", type=click.Choice(["dry-run", "apply"]), help="Say what would be moved, or move it.")
@click.option("--dry-run", is_flag=True, help="The same as --mode dry-run.")
@click.option("--apply", is_flag=True, help="The same as --mode apply.")
@pass_cli
def migrate(cli: Cli, mode: str | None, dry_run: bool, apply: bool) -> None:
    """Move entries of [adapters] to instances of connectors; the file as it was is kept beside it.

    Exit status: 0 moved, or nothing to move; 1 it was changed meanwhile; 2 the configuration cannot be used.
    """
    modes = [mode, *(["dry-run"] if dry_run else []), *(["apply"] if apply else [])]
    chosen = [one for one in modes if one is not None]
    if len(chosen) != 1:
        raise click.UsageError("")
    found = cli.host.configuring.migrate(apply=chosen == ["apply"])
    cli.output.result(found, lambda: _migrated(found))


def _migrated(found: "Mapping[str, Any]") -> "Iterator[str]":
    done = {"unchanged": "Nothing is to be moved.", "planned": "Nothing is written yet.", "applied": "It is written."}
    before, after = found["format_before"], found["format_after"]
    yield f"{done[found['disposition']]} The format is {before}" + (f", then {after}." if before != after else ".")
    if found["entries"]:
        columns = {"alias": "alias", "disposition": "what", "connector": "connector", "reason": "why not"}
        yield from table(found["entries"], columns, empty="")
    if "backup_path" in found:
        yield f"The file as it was: {found['backup_path']}"


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
