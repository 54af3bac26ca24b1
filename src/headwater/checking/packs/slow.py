"""Slow: a host that reads slowly, through a small pipe. The connector waits; it neither dies nor loses a record."""

from headwater.checking.bench import Bench, Trial
from headwater.checking.faults import SlowlyRead
from headwater.checking.findings import Finding, judged
from headwater.checking.losses import named

PACK = "slow"


async def slow(bench: Bench, whole: Trial) -> list[Finding]:
    """Run with a pipe that is nearly always full."""
    trial = await bench.trial(PACK, bench.plan, trouble=SlowlyRead)
    fault = "" if trial.succeeded else trial.message
    if trial.succeeded and (lost := whole.present - trial.present):
        fault = f"{named(lost)} did not come."
    return [judged("CP-219", PACK, fault, f"All {trial.total:,} records came.", line=None)]
