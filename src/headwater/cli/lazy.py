"""A command group that imports a command when it is run, and none to print its help."""

from importlib import import_module
from typing import Any

import click

Table = dict[str, tuple[str, str]]


class LazyGroup(click.Group):
    """A group over a table of name: (module:attribute, one line of help). A name may be two words."""

    def __init__(self, *args: Any, commands_table: Table, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = commands_table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands, in the order of the table."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in self._table:
            return None
        module, _, attribute = self._table[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(f"headwater.cli.{module}"), attribute)
        return command

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
