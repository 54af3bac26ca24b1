"""What every command has: the chosen output, and the host."""

from functools import cached_property
from typing import TYPE_CHECKING

import click

from headwater import limits
from headwater.cli.output import Output
from headwater.host import Host
from headwater.settings import resolve

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Cli:
    """One invocation of the command line."""

    def __init__(self, output: Output, config: str | None = None, state_dir: str | None = None) -> None:
        self.output = output
        self.config = config
        self.state_dir = state_dir

    @cached_property
    def host(self) -> Host:
        """The host, over the paths that flags and environment choose."""
        return Host(resolve(self.config, self.state_dir))


pass_cli = click.make_pass_decorator(Cli)


def page_options(command: "Callable[..., Any]") -> "Callable[..., Any]":
    """Add `--limit` and `--cursor` to a command that lists."""
    size = click.IntRange(1, limits.PAGE_MAX)
    limit = click.option("--limit", type=size, default=limits.PAGE_DEFAULT, help="How many at most (default 25).")
    cursor = click.option("--cursor", help="Go on where a page ended.")
    return limit(cursor(command))
