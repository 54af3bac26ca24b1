"""`headwater completions`: what a shell needs to complete commands and options."""

import click
from click.shell_completion import get_completion_class

from headwater.cli.session import Cli, pass_cli


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@pass_cli
def completions(cli: Cli, shell: str) -> None:
    """Print the completion script of a shell; in bash: eval "$(headwater completions bash)".

    It is the script itself whatever --output says. Exit status: 0, or 2 for another shell.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root().command
    completion = kind(root, {}, "headwater", "_HEADWATER_COMPLETE")
    cli.output.write((completion.source_template % completion.source_vars()).encode())
