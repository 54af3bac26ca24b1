"""A command group that imports a command when it is run, and none to print its help."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from headwater.cli.output import GivenTwice
from headwater.cli.systems import admitting

Table = dict[str, tuple[str, str]]


class LazyGroup(click.Group):
    """A group over a table of name: (module:attribute, one line of help). A name may be two words."""

    def __init__(self, *args: Any, commands_table: Table, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = commands_table
        self._imported: dict[str, click.Command] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands, in the order of the table."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in self._table:
            return None
        if cmd_name not in self._imported:
            module, _, attribute = self._table[cmd_name][0].partition(":")
            command = getattr(import_module(f"headwater.cli.{module}"), attribute)
            self._imported[cmd_name] = _strict(admitting(command))
        return self._imported[cmd_name]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first words name: two where the table has both."""
        words = " ".join(args[:2])
        if len(args) > 1 and words in self._table:
            return words, self.get_command(ctx, words), args[2:]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table, without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_, help_) in self._table.items()])


def _strict(command: click.Command) -> click.Command:
    """Let a command, and all below it, refuse an option that is given twice: which of the two counts? (CLI-016)."""
    make_parser = command.make_parser

    def make_strict_parser(ctx: click.Context) -> Any:
        parser = make_parser(ctx)
        parse_args = parser.parse_args

        def parse_once(args: list[str]) -> tuple[dict[str, Any], list[str], list[click.Parameter]]:
            options, rest, order = parse_args(args)
            for parameter in order:
                if isinstance(parameter, click.Option) and not parameter.multiple and order.count(parameter) > 1:
                    raise GivenTwice("", ctx)
            return options, rest, order

        parser.parse_args = parse_once  # type: ignore[method-assign]
        return parser

    command.make_parser = make_strict_parser  # type: ignore[method-assign]
    below: Mapping[str, click.Command] = getattr(command, "commands", {})
    for one in below.values():
        _strict(one)
    return command
