"""The one question of a definition that is not connected: connect it, or reuse a credential that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from headwater.cli.output import plain
from headwater.cli.question import agreed, answered
from headwater.errors import refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.connect.model import Target
    from headwater.connect.reusing import Source

    Choice = Source | Literal["connect"]


def chosen(target: Target, offers: Sequence[Source]) -> Choice:
    """Ask how to connect an instance. Raise `not_found` for whatever is no choice (CLI-1071, CLI-1084)."""
    choice: Choice | None
    if offers:
        numbered: dict[str, Choice] = {str(number): offer for number, offer in enumerate(offers, 1)}
        choice = {**numbered, "c": "connect", "connect": "connect"}.get(answered(_offering(target, offers)) or "")
    else:
        choice = "connect" if agreed(f"{plain(target.name)} is not connected. {_connecting(target)}") else None
    if choice is None:
        message = "The definition's instance is not connected, and nobody at a terminal wanted it to be."
        raise refuse("not_found", message, next_action="create_connection", safe="Nothing was acquired or sent.")
    return choice


def instead(target: Target, why: str) -> bool:
    """Ask whether to connect an instance after all, where its credential was not copied, and say why (CLI-1088)."""
    return agreed(f"{plain(why)} The credential was not reused. {_connecting(target)}")


def _connecting(target: Target) -> str:
    return f"Connect it to {plain(target.authority)} now?"


def _offering(target: Target, offers: Sequence[Source]) -> str:
    """Show connections by number, never what is in custody (CLI-1083)."""
    lines = [f"{plain(target.name)} is not connected. The credential of a connection that is there can be reused:"]
    for number, offer in enumerate(offers, 1):
        connection = offer.connection
        shown = (offer.target.name, connection.binding.authority, connection.identity.kind, connection.identity.subject)
        lines.append(f"{number:>4}  {'  '.join(map(plain, shown))}")
    numbers = "1" if len(offers) == 1 else f"1-{len(offers)}"
    return "\n".join([*lines, f"Reuse a number, or connect (c) with a credential of its own? [{numbers}/c/N] "])
