"""Kill: the connector is killed behind a line, and a next run goes on. Together they bring what one whole run brings.

Two hosts are played. One lives on: the run failed, no cursor moved, and the next run begins where this one did. The
other was cut off together with its connector: it may keep a cursor from the middle of the walk (restart abandonment),
and the next run goes on from there. The second finds a STATE that claims what comes only after it.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from headwater import limits
from headwater.checking.bench import Bench, Trial
from headwater.checking.faults import Killed
from headwater.checking.findings import Finding, inapplicable, judged
from headwater.checking.losses import named
from headwater.checking.watching import WatchedLedger
from headwater.collect.checkpoints import decide_abandoned

PACK = "kill"


async def kill(bench: Bench, whole: Trial) -> list[Finding]:
    """Kill at a few lines, drawn by the seed of the check."""
    if not whole.present:
        return inapplicable(PACK, "No record came.", "CP-410", "CP-447")
    points = list(_points(bench, whole))
    losses = [loss for line in points if (loss := await _lost(bench, whole, line, keeps_cursors=True))]
    crash = await _lost(bench, whole, points[-1], keeps_cursors=False)
    at = f"seed {bench.seed}, killed behind line{'s' if len(points) > 1 else ''} {', '.join(map(str, points))}"
    cursors = losses[0] if losses else ("", None)
    return [
        judged("CP-410", PACK, cursors[0], f"Nothing was lost ({at}).", line=cursors[1]),
        judged(
            "CP-447", PACK, crash[0] if crash else "", f"Nothing was lost ({at}).", line=points[-1] if crash else None
        ),
    ]


def _points(bench: Bench, whole: Trial) -> Iterator[int]:
    """Draw lines to kill behind: right behind a cursor, if one came on the way, and any others."""
    last = whole.session.lines - 1
    states = [line for line in whole.session.state_lines if line < last]
    lots = bench.lots(PACK)
    drawn = {lots.choice(states)} if states else set()
    while len(drawn) < min(limits.CHECK_KILLS, last):
        drawn.add(lots.randint(1, last))
    yield from sorted(drawn)


async def _lost(bench: Bench, whole: Trial, line: int, *, keeps_cursors: bool) -> tuple[str, int] | None:
    """Kill behind a line, run again, and say what is missing of the whole."""
    ledger = WatchedLedger()
    cut = await bench.trial(PACK, bench.plan, trouble=partial(Killed, line=line), ledger=ledger, troubled=True)
    state = _kept(cut, ledger) if keeps_cursors else {}
    after = await bench.trial(PACK, replace(bench.plan, state=state or None), ledger=ledger)
    where = f"killed behind line {line}, seed {bench.seed}"
    if not after.succeeded:
        return f"The run after the crash did not succeed ({where}): {after.message}", line
    lost = whole.present - after.present
    return (f"{named(lost)} never came ({where}).", line) if lost else None


def _kept(cut: Trial, ledger: WatchedLedger) -> dict[str, str]:
    """Return the cursors that a host may keep that was cut off in the midst of this run."""
    plan = cut.session.plan
    decision = decide_abandoned(
        plan.graph,
        list(cut.session.staged),
        frozenset(gap.stream for gap in ledger.gaps),
        controller_died=True,
        authority=plan.authority,
        cancelled=False,
    )
    return {stream: cut.session.staged[stream] for stream in decision.committed}
