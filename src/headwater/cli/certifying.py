"""`headwater connectors certify`: an integration, judged clause by clause."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headwater.cli.output import table
from headwater.cli.session import Cli, pass_cli
from headwater.errors import refuse

if TYPE_CHECKING:
    from headwater.checking.certifying import Certified

COLUMNS = {"clause": "clause", "verdict": "verdict", "what": "what it asks"}


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@pass_cli
def certify(cli: Cli, path: Path) -> None:
    """Judge the integration in a folder, clause by clause: its manifest, its code, and its hooks as they run.

    The hooks run against `fixtures/provider.json`, which says what the service answers. Nothing is sent or stored.

    Exit status: 0 it is certified, 1 it is not, 2 the folder cannot be used.
    """
    import asyncio

    found = asyncio.run(cli.host.certify(path))
    rows = [_row(one) for one in found]
    failures = [row for row in rows if row["verdict"] == "fail"]
    told = [f"{row['clause']}  {row['what']}\n    seen: {row['seen']}\n    do: {row['remedy']}" for row in failures]
    explained = [line for text in told for line in text.splitlines()]
    if any(one.is_serious for one in found):
        message = f"The integration is not certified: {sum(one.is_serious for one in found)} clauses fail."
        raise refuse(
            "not_conforming", message, safe="Nothing was sent.", conforms=False, clauses=rows, explanation=explained
        )
    passed = [row for row in rows if row["verdict"] == "pass"]
    lines = [*explained, *table(passed, COLUMNS, empty="")]
    cli.output.result({"conforms": True, "clauses": rows}, lambda: [*lines, f"{len(passed)} clauses passed."])


def _row(one: Certified) -> dict[str, Any]:
    from headwater.checking.integration_clauses import ASKED

    asked = ASKED[one.clause]
    row = {"clause": one.clause, "level": asked.level, "verdict": one.mark, "what": asked.asks, "seen": one.seen}
    return {**row, "remedy": asked.remedy} if one.mark == "fail" else row
