"""What integrations can do and whether they may be used; an account refreshed, and disconnected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headwater import clock
from headwater.cli.output import pairs, plain, table, typed
from headwater.cli.session import Cli, pass_cli

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from headwater.configuration.selecting import Selection

COLUMNS = {"connector": "connector", "display_name": "service", "sign_in": "sign in by", "enabled": "enabled"}


@click.command()
@pass_cli
def integrations(cli: Cli) -> None:
    """List the services that accounts can be connected to, and what is wrong with those that cannot be used.

    Exit status: 0, or 2 where one that comes with Headwater is not in order.
    """
    told = cli.host.integrating.catalog()
    cli.output.result(told, lambda: _lines(told))


def _lines(told: Mapping[str, Any]) -> Iterator[str]:
    rows = [
        {**row, "sign_in": ", ".join(method["key"] for method in row["methods"]), "enabled": _yes(row["enabled"])}
        for row in told["integrations"]
    ]
    yield from table(rows, COLUMNS, empty="No connector signs in to anything.")
    for row in told["integrations"]:
        yield from (f"  {row['connector']}: {warning}" for warning in row["warnings"])
    for fault in told["left_out"]:
        yield f"  {fault['connector']} is left out: {fault['pointer'] or '/'} {fault['message']}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


@click.command()
@click.argument("connector")
@pass_cli
def enable(cli: Cli, connector: str) -> None:
    """Let accounts be connected by an integration. Exit status: 0, or 1 where there is none."""
    told = cli.host.integrating.enable(connector, enabled=True)
    next_ = f"  Next: {typed('headwater')} connections connect {connector}/NAME"
    cli.output.result(told, lambda: [f"Accounts can be connected by {connector}.", next_])


@click.command()
@click.argument("connector")
@pass_cli
def disable(cli: Cli, connector: str) -> None:
    """Let no further account be connected by an integration. Exit status: 0, or 1 where there is none."""
    told = cli.host.integrating.enable(connector, enabled=False)
    cli.output.result(told, lambda: [f"No further account can be connected by {connector}."])


def refresh(cli: Cli, selection: Selection) -> None:
    """Collect from an account, and print how the run ended."""
    from headwater.cli.running import collect_now

    collect_now(cli.host, cli.output, cli.host.integrating.refreshed(selection))


def configure(cli: Cli, selection: Selection, settings: tuple[str, ...]) -> None:
    """Print the settings that hold after those that were typed were applied."""
    import asyncio

    told = asyncio.run(cli.host.integrating.configure(selection, settings))
    rows = [f"  {plain(name)} = {plain(value)}" for name, value in sorted(told["options"].items())]
    cli.output.result(told, lambda: [f"{told['connector']}/{told['instance']} is configured:", *rows])


def disconnect(cli: Cli, selection: Selection) -> None:
    """Print what became of an account that is disconnected."""
    import asyncio

    told = asyncio.run(cli.host.integrating.disconnect(selection))
    said = {
        "done": "The service has revoked it.",
        "failed": "The service could not be told: revoke it there too.",
        "unsupported": "The service was not told: it knows no such request.",
    }
    lines = [f"{told['connector']}/{told['instance']} is disconnected, and its credential erased."]
    lines += [said[told["revocation"]], "What was collected is kept."]
    cli.output.result(told, lambda: lines)


def webhook(cli: Cli, named: tuple[Selection, str | None], source: Mapping[str, Any], *, make: bool) -> None:
    """Print where the webhooks of a connection come in, where they are made to with the secret that signs them."""
    import asyncio

    from headwater.cli.protected import chosen
    from headwater.connect.webhooks import ENTRY

    flags = {name.removeprefix("secret_"): value for name, value in source.items()}
    entered = chosen(prompt=flags["prompt"], file=flags["file"], stdin=flags["stdin"])
    if entered is None and not make:
        told = cli.host.webhooks.show(*named)
    else:
        secret = None if entered is None else entered.read(ENTRY)["secret"]
        told = asyncio.run(cli.host.webhooks.make(*named, secret))
    cli.output.result(told, lambda: pairs({**told, "made_at_ms": clock.from_micros(told["made_at_ms"] * 1000)}))
