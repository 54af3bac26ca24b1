"""What every command has: the chosen output, and the host."""

from functools import cache, cached_property
from typing import TYPE_CHECKING

import click

from headwater import limits
from headwater.cli.output import Output

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from headwater.host import Host
    from headwater.secret import Secret


class Cli:
    """One invocation of the command line."""

    def __init__(self, output: Output, config: str | None = None, state_dir: str | None = None) -> None:
        self.output = output
        self.config = config
        self.state_dir = state_dir

    @cached_property
    def host(self) -> "Host":
        """The host, over the paths that flags and environment choose."""
        from headwater.host import Host
        from headwater.settings import resolve

        return Host(resolve(self.config, self.state_dir), _passphrase)

    def note_crash(self, error: BaseException) -> "Path | None":
        """Note where something went wrong inside, and return the note; None where that cannot be written."""
        from headwater.errors import HeadwaterError

        try:
            return self.host.note_crash(error)
        except (OSError, HeadwaterError):
            return None


@cache
def _passphrase(label: str) -> "Secret":
    """Ask for a passphrase at the terminal, once for each label."""
    from headwater.cli.hidden import entered

    return entered(label)


pass_cli = click.make_pass_decorator(Cli)


def page_options(command: "Callable[..., Any]") -> "Callable[..., Any]":
    """Add `--limit` and `--cursor` to a command that lists."""
    size = click.IntRange(1, limits.PAGE_MAX)
    limit = click.option("--limit", type=size, default=limits.PAGE_DEFAULT, help="How many at most (default 25).")
    cursor = click.option("--cursor", help="Go on where a page ended.")
    return limit(cursor(command))
