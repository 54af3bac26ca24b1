"""Resumed: a second run from the cursors of the first. It loses nothing, and does not begin again."""

from collections.abc import Iterator
from dataclasses import replace

from headwater.checking.bench import Bench, Trial
from headwater.checking.findings import Finding, inapplicable, judged
from headwater.checking.losses import named
from headwater.checking.watching import WatchedLedger

PACK = "resumed"
# One or two records may come again because they lie on the edge of the cursor.
_ENOUGH = 3


async def resumed(bench: Bench, whole: Trial) -> list[Finding]:
    """Run again over what the whole run left."""
    if not whole.cursors:
        return inapplicable(PACK, "The whole run committed no cursor.", "CP-405", "CP-013")
    ledger = WatchedLedger()
    first = await bench.trial(PACK, bench.plan, ledger=ledger)
    again = await bench.trial(PACK, replace(bench.plan, state=first.cursors), ledger=ledger)
    fault = "" if again.succeeded else again.message
    if lost := first.present - again.present:
        fault = f"The second run deleted {named(lost)}, though the source did not change."
    return [
        judged("CP-405", PACK, fault, f"Of {len(first.sent):,} records {len(first.sent & again.sent):,} came again."),
        *_begins_again(bench, first, again),
    ]


def _begins_again(bench: Bench, first: Trial, again: Trial) -> Iterator[Finding]:
    streams = [stream.name for stream in bench.declaration.streams.values() if stream.incremental]
    brought = {name: {place for place in first.sent if place[0] == name} for name in streams}
    large = [name for name in streams if name in first.cursors and len(brought[name]) >= _ENOUGH]
    whole = [name for name in large if brought[name] <= again.sent]
    fault = f"{', '.join(whole)} declares incremental: true, and sent everything again." if whole else ""
    if large:
        yield judged("CP-013", PACK, fault, f"{', '.join(large)} went on from the cursor.")
    else:
        yield from inapplicable(PACK, "No incremental stream has a cursor and three records.", "CP-013")
