"""Which instance a command is for: the options that say it, and the old words that are still understood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

import click

from headwater.cli.output import Output
from headwater.cli.session import Cli
from headwater.errors import refuse

if TYPE_CHECKING:
    from headwater.configuration.selecting import Selection

Command = Callable[..., Any]
_PAIR: Final = ["--connector", "--instance"]


def selectors(command: Command) -> Command:
    """Add how an instance is selected."""
    for name, help_ in (
        ("--adapter", "The instance's alias (deprecated)."),
        ("--instance", "The instance of that connector."),
        ("--connector", "The connector."),
    ):
        command = click.option(name, metavar="NAME", help=help_)(command)
    return command


def selected(connector: str | None, instance: str | None, adapter: str | None, target: str | None = None) -> Selection:
    """Return which instance is meant, or raise `invalid_input` where it is named twice (CLI-226)."""
    from headwater.configuration.selecting import Selection, well_formed
    from headwater.configuration.selecting import target as read_target

    if target is None:
        return well_formed(Selection(connector, instance, adapter))
    if (connector, instance, adapter) != (None, None, None):
        raise refuse("invalid_input", "The instance is named twice.", field="target")
    return read_target(target)


class Selecting(click.Command):
    """A command on one instance: it says that `--adapter` is deprecated, whatever else is wrong (CLI-214, CLI-215)."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of the command."""
        before = takewhile(lambda word: word != "--", args)
        takes = any("--adapter" in parameter.opts for parameter in self.params)
        if takes and any(word == "--adapter" or word.startswith("--adapter=") for word in before):
            sentence = "--adapter; select with --connector <connector> --instance <instance>"
            _output(ctx).deprecate(sentence, {"option": "--adapter", "replacement": _PAIR})
        return super().parse_args(ctx, args)


class SelectingGroup(click.Group):
    """Commands on instances. `old` maps words of this group that are deprecated to the paths that took their place."""

    command_class = Selecting

    def __init__(self, *args: Any, old: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._old = old or {}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an old word finds the new one, and is told (CLI-218 to CLI-220)."""
        new = self._old.get(args[0])
        if new is None:
            return super().resolve_command(ctx, args)
        old = f"{ctx.info_name} {args[0]}"
        _output(ctx).deprecate(f"{old}; use {new}", {"command": old, "replacement": [new]})
        return super().resolve_command(ctx, [new.rpartition(" ")[2], *args[1:]])


class OldGroup(SelectingGroup):
    """A group that is deprecated with all of its words; it has no others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the old words that there is a command for."""
        return [name for name in self._old if name in self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find a command among the old words."""
        return super().get_command(ctx, cmd_name) if cmd_name in self._old else None


def _output(ctx: click.Context) -> Output:
    cli: Cli = ctx.find_object(Cli)  # type: ignore[assignment]  # the root sets it
    return cli.output
