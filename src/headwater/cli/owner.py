"""`headwater owner`: be the owner of a state directory, in the foreground or detached."""

import click

from headwater.cli.session import Cli, pass_cli


@click.command()
@click.option("--detached", is_flag=True, hidden=True, help="Started by another command: print nothing.")
@pass_cli
def owner(cli: Cli, detached: bool) -> None:
    """Be the owner of the state directory until it is told to end: run the schedules, keep adapters ready.

    Commands start an owner by themselves when they need one; run it yourself where a service manager should.

    Exit status: 0 it was told to end or had nothing to do, 1 another one is active.
    """
    import asyncio

    from headwater.owner.daemon import Owner

    if not detached:
        cli.output.note("The owner answers. Stop it with Control-C, or with: headwater setup owner-stop")
    asyncio.run(Owner(cli.host).serve())
