"""`headwater connections`: accounts, connected once to the instances that need them."""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn

import click

from headwater import clock, limits
from headwater.cli.output import pairs, table, typed
from headwater.cli.selection import Command, SelectingGroup, selected, selectors
from headwater.cli.session import Cli, pass_cli
from headwater.errors import refuse

if TYPE_CHECKING:
    from headwater.configuration.selecting import Selection
    from headwater.connect.entries import Means


@click.group(cls=SelectingGroup, old={"repair": "connections reconnect"})
def connections() -> None:
    """Accounts, connected once to the instances that need them."""


def on_instance(command: Command) -> Command:
    """Give a command the `selection` of an instance: by its name as it stands, or by the options for that."""

    @wraps(command)
    def run(
        *, target: str | None, connector: str | None, instance: str | None, adapter: str | None, **rest: Any
    ) -> Any:
        return command(selection=selected(connector, instance, adapter, target), **rest)

    return click.argument("target", required=False, metavar="[<connector>/<instance>]")(selectors(run))


def with_source(command: Command) -> Command:
    """Give a command the `means` to sign in: the one source that was chosen, if one was, and the terminal."""

    @wraps(command)
    def run(
        *, credential_prompt: bool, credential_file: str | None, credential_stdin: bool, device: bool, **rest: Any
    ) -> Any:
        from headwater.cli.consent import AtTerminal
        from headwater.cli.protected import chosen
        from headwater.connect.entries import Means

        source = chosen(prompt=credential_prompt, file=credential_file, stdin=credential_stdin)
        return command(means=Means(None if source is None else source.read, AtTerminal(), device), **rest)

    device = click.option(
        "--device", is_flag=False, flag_value=True, default=False, type=bool, help="Consent on another device."
    )
    stdin = click.option("--credential-stdin", is_flag=True, help="Read it from a pipe or protected file at stdin.")
    file = click.option("--credential-file", metavar="PATH", help="Read it from a file that only you can read.")
    prompt = click.option("--credential-prompt", is_flag=True, help="Type it at the terminal, unseen.")
    return prompt(file(stdin(device(run))))


which = click.option(
    "--connection", "reference", metavar="REF", help="The connection (default: the instance's only one)."
)
seen = click.option("--expected-revision", required=True, metavar="N", help="The revision that you have seen.")


@connections.command()
@on_instance
@click.option("--profile", metavar="NAME", help="The way to sign in, where there are several.")
@click.option("--endpoint", metavar="URL", help="The address of the service; it is written into the configuration.")
@with_source
@pass_cli
def connect(cli: Cli, selection: Selection, profile: str | None, endpoint: str | None, means: Means) -> None:
    """Connect an account: its credential is checked with the service, and kept where secrets are kept.

    Exit status: 0 connected, 1 it was refused or failed, 2 what was typed or entered does not fit, 130 interrupted.
    """
    told = _run(cli.host.connecting.connect(selection, profile=profile, endpoint=endpoint, means=means))
    _say(cli, told, "is connected", f"headwater collect {told['connector']}/{told['instance']}")


@connections.command()
@on_instance
@which
@seen
@with_source
@pass_cli
def reconnect(cli: Cli, selection: Selection, reference: str | None, expected_revision: str, means: Means) -> None:
    """Replace the credential of a connection by another one of the same account.

    Exit status: 0 replaced, 1 it was refused or failed, 2 what was typed or entered does not fit, 130 interrupted.
    """
    told = _run(cli.host.connecting.reconnect(selection, reference, expected_revision, means=means))
    _say(cli, told, "has its new credential")


@connections.command()
@on_instance
@which
@seen
@pass_cli
def revalidate(cli: Cli, selection: Selection, reference: str | None, expected_revision: str) -> None:
    """Ask the service now whether the credential is good, and follow a changed configuration.

    Exit status: 0 it is good, 1 it is not or could not be asked, 2 what was typed does not fit.
    """
    told = _run(cli.host.connecting.revalidate(selection, reference, expected_revision))
    _say(cli, told, "has a good credential")


@connections.command("list")
@on_instance
@click.option(
    "--limit",
    type=click.IntRange(1, limits.CONNECTION_PAGE_MAX),
    default=limits.CONNECTION_PAGE_DEFAULT,
    help="How many at most (default 100).",
)
@click.option("--cursor", help="Go on where a page ended.")
@pass_cli
def list_(cli: Cli, selection: Selection, limit: int, cursor: str | None) -> None:
    """List the connections of an instance, revoked ones too. Exit status: 0, or 1 where there is no such instance."""
    page = cli.host.connecting.list_(selection, limit, cursor)
    columns = {"connection": "connection", "profile": "signed in by", "revision": "revision", "state": "state"}
    more = [f"  Go on with --cursor {page['next_cursor']}"] if "next_cursor" in page else []
    empty = "The instance was never connected."
    cli.output.result(page, lambda: [*table(page["connections"], columns, empty=empty), *more])


@connections.command()
@on_instance
@which
@pass_cli
def describe(cli: Cli, selection: Selection, reference: str | None) -> None:
    """Show a connection: its state, its account and its revision. Exit status: 0, or 1 where there is none."""
    told = cli.host.connecting.describe(selection, reference)
    cli.output.result(told, lambda: _described(told["connection"]))


@connections.command()
@on_instance
@click.option("--connection", "reference", metavar="REF", help="The connection.")
@click.option("--acquisition", metavar="REF", help="The attempt to connect.")
@pass_cli
def status(cli: Cli, selection: Selection, reference: str | None, acquisition: str | None) -> None:
    """Show how a connection, or an attempt to connect, stands. Exit status: 0, or 1 where there is none."""
    if (reference is None) is (acquisition is None):
        raise refuse("invalid_input", "Name one of them: --connection or --acquisition.")
    if acquisition is not None:
        told = cli.host.connecting.acquisition(selection, acquisition)
        cli.output.result(told, lambda: pairs(told["acquisition"]))
        return
    told = cli.host.connecting.describe(selection, reference)
    cli.output.result(told, lambda: _described(told["connection"]))


@connections.command()
@on_instance
@which
@seen
@pass_cli
def revoke(cli: Cli, selection: Selection, reference: str | None, expected_revision: str) -> None:
    """Revoke a connection on this machine, for good; the service is not told. Exit status: 0, or 1 where it is not."""
    told = cli.host.connecting.revoke(selection, reference, expected_revision)
    _say(cli, told, "is not connected any more; the service itself was not told")


@connections.command()
@on_instance
@pass_cli
def disconnect(cli: Cli, selection: Selection) -> None:
    """Disconnect an account: the service is told where it can be, and the credential erased; records are kept.

    Exit status: 0 disconnected, or it was; 1 it could not be.
    """
    from headwater.cli.integrations import disconnect

    disconnect(cli, selection)


@connections.command()
@on_instance
@pass_cli
def refresh(cli: Cli, selection: Selection) -> None:
    """Collect from an account now: the same run as `headwater collect`.

    Exit status: 0 succeeded, 1 the run failed or may not begin, 130 interrupted.
    """
    from headwater.cli.integrations import refresh

    refresh(cli, selection)


@connections.command()
@on_instance
@click.option("--set", "settings", multiple=True, required=True, metavar="OPTION=VALUE", help="Set this.")
@pass_cli
def configure(cli: Cli, selection: Selection, settings: tuple[str, ...]) -> None:
    """Change settings at a service: they are checked first, then applied, all of them or none.

    Exit status: 0, 1 where it cannot be done or there is no such action, 2 where what was typed does not fit.
    """
    from headwater.cli.integrations import configure

    configure(cli, selection, settings)


@connections.command()
@on_instance
@which
@click.option("--make", is_flag=True, help="Make a new endpoint, and print the secret that signs what comes there.")
@click.option("--secret-prompt", is_flag=True, help="The same with the service's secret: type it, unseen.")
@click.option("--secret-file", metavar="PATH", help="Read that from a file that only you can read.")
@click.option("--secret-stdin", is_flag=True, help="Read it from a pipe or protected file at stdin.")
@pass_cli
def webhook(cli: Cli, /, selection: Selection, reference: str | None, make: bool, **source: Any) -> None:
    """Show where the webhooks of a connection come in, or make that endpoint in place of the one before.

    Exit status: 0, 1 where there is none or it cannot be, 2 what was typed or entered does not fit.
    """
    from headwater.cli.integrations import webhook

    webhook(cli, (selection, reference), source, make=make)


@connections.command()
@on_instance
@which
@click.option("--consumer", "name", required=True, metavar="NAME", help="The program, as [consumers] names it.")
@click.option("--args", "arguments", default="[]", metavar="JSON", help="Its further arguments: an array of texts.")
@pass_cli
def launch(cli: Cli, selection: Selection, reference: str | None, name: str, arguments: str) -> NoReturn:
    """Run a program that the configuration pins, with the credential of a connection on its descriptor 3.

    Exit status: the program's, 128 + N where signal N ended it; 1 or 2 where it was not started.
    """
    from headwater.cli.handing import further

    # What is written to stdout is the program's: nothing more is looked for there, not even whether it is open.
    sys.exit(cli.host.handing.launch(selection, reference, name, further(arguments)))


@connections.command()
@on_instance
@which
@click.option(
    "--reveal", is_flag=False, flag_value=True, default=False, type=bool, help="Print the token, and nothing else."
)
@pass_cli
def token(cli: Cli, selection: Selection, reference: str | None, reveal: bool) -> None:
    """Hand out the access token of a connection that was made by consent, renewed where it is due.

    Exit status: 0 handed out, 1 it was refused or failed, 2 what was typed does not fit.
    """
    told, revealed = cli.host.handing.token(selection, reference, reveal=reveal)
    if revealed is not None:
        cli.output.write(revealed.reveal() + b"\n")
        return
    cli.output.result(told, lambda: pairs({**told, "scopes": " ".join(told["scopes"])}))


def _run(work: Coroutine[Any, Any, Mapping[str, Any]]) -> Mapping[str, Any]:
    import asyncio

    return asyncio.run(work)


def _say(cli: Cli, told: Mapping[str, Any], what: str, next_command: str = "") -> None:
    lines = [f"{told['connector']}/{told['instance']} {what}."]
    cli.output.result(told, lambda: [*lines, f"  Next: {typed(next_command)}"] if next_command else lines)


def _described(shown: Mapping[str, Any]) -> list[str]:
    account, until = shown["external_identity"], shown.get("valid_until_ms")
    rows = {
        "instance": f"{shown['connector']}/{shown['instance']}",
        "connection": shown["connection"],
        "state": shown["state"],
        "account": f"{account['subject']} ({account['kind']})",
        "signed in by": shown["profile"],
        "revision": shown["revision"],
        "last check counts until": None if until is None else clock.from_micros(until * 1000),
    }
    return pairs(rows)
