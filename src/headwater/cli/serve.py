"""`headwater serve`: the personal server."""

import click

from headwater.cli.session import Cli, pass_cli
from headwater.errors import refuse

PORT = 7663
STOPPED = "The server was stopped."


@click.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, help="The port; 0 picks a free one (default 7663)."
)
@pass_cli
def serve(cli: Cli, port: int) -> None:
    """Answer requests of programs on this machine that have the owner's token, until it is stopped.

    Exit status: 0 stopped by SIGTERM, 1 it cannot listen or another server is active here, 2 others can read the
    token, 130 interrupted.
    """
    import asyncio
    import signal
    import sys

    from headwater.host import Host
    from headwater.server.app import application
    from headwater.server.listening import ADDRESS, listen
    from headwater.server.listening import serve as answer

    with cli.host.serving() as token, listen(port) as listener:
        address = f"http://{ADDRESS}:{listener.getsockname()[1]}"
        told = {"listening": address, "token_file": str(cli.host.settings.token_path)}

        def listening() -> None:
            lines = [f"Listening on {address}", f"The owner's token is in {told['token_file']}", "Ctrl-C stops it."]
            cli.output.result(told, lambda: lines)
            sys.stdout.flush()

        host = Host(cli.host.settings)  # nobody is asked at this terminal for what a request needs
        stopped_by = asyncio.run(answer(application(host, token), listener, listening))
    if stopped_by == signal.SIGINT:
        raise refuse("interrupted", STOPPED, safe="What was stored is kept.")
    cli.output.note(STOPPED)
