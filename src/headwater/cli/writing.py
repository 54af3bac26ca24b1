"""A write from the command line: with the file of its approval, or approved at the terminal on the spot."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from headwater.errors import refuse

if TYPE_CHECKING:
    from headwater.cli.options import Options
    from headwater.cli.session import Cli
    from headwater.joining.operating import Aimed
    from headwater.operate.writes.model import Proof


def write(
    cli: Cli, aimed: Aimed, given: Any, how: tuple[Options, Mapping[str, Any]], connect: Callable[[], None] | None
) -> dict[str, Any]:
    """Do one write, at most once, and return its answer. `connect` is what has to be done before."""
    from headwater.cli.ending import run
    from headwater.joining.writing import Order
    from headwater.operate.writes.subject import key_digest

    options, asked = how
    key = None if asked["idempotency_key"] is None else key_digest(os.fsencode(asked["idempotency_key"]))
    order = Order(aimed, given, options.reference, key)
    if asked["approve"]:
        before = None if key is None else run(cli.host.writing.before(order, options.seconds))
        if before is not None:
            return before
        proof = _agreed(cli, aimed, given, options, connect)
    else:
        proof = cli.host.approving.filed(asked["approval_file"])
        if connect is not None:
            connect()
    return run(cli.host.writing.write(order, proof, options.seconds))


def _agreed(cli: Cli, aimed: Aimed, given: Any, options: Options, connect: Callable[[], None] | None) -> Proof:
    """Show exactly what would be done, and return its approval where somebody at the terminal gives it (CLI-730)."""
    from headwater.cli.approvals import described
    from headwater.cli.question import agreed
    from headwater.operate.admission import APPROVAL_STEPS

    if connect is not None:
        connect()
    approving = cli.host.approving
    preparation = approving.prepared(aimed, options.reference, given)
    shown = "\n".join(described(cli, approving.told(aimed, preparation, given)))
    if not agreed(f"{shown}\nDo this?"):
        message = "Nobody at a terminal approved it."
        raise refuse("approval_required", message, safe="Nothing was sent.", approval_steps=list(APPROVAL_STEPS))
    return asyncio.run(approving.issue(aimed, options.reference, given, preparation.sha256))
