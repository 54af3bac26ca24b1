"""Cancelled: the owner ends the run at its first line. The connector leaves in time; the host commits nothing."""

from headwater import limits
from headwater.checking.bench import Bench, Trial
from headwater.checking.faults import Troubled
from headwater.checking.findings import Finding, inapplicable, judged
from headwater.process.child import Child

PACK = "cancelled"


async def cancelled(bench: Bench, _whole: Trial) -> list[Finding]:
    """Close stdin and send SIGTERM while the connector is still at work."""
    trial = await bench.trial(PACK, bench.plan, trouble=_waiting, cancel=True, troubled=True)
    exit_ = trial.session.exit
    if not trial.session.cancelled or exit_ is None:
        return inapplicable(PACK, "It wrote nothing that it could be stopped at.", "CP-216")
    forced = exit_.signal == _KILL
    seconds = f"{limits.STOP_SECONDS:g} seconds"
    fault = f"It was still there {seconds} after stdin was closed and SIGTERM sent, and was killed." if forced else ""
    return [judged("CP-216", PACK, fault, f"It left ({exit_}); no cursor moved.")]


_KILL = 9


def _waiting(child: Child) -> Troubled:
    """Give the connector a pipe that it cannot write to its end into, so that it is there when it is stopped."""
    child.narrow(limits.CHECK_PIPE_BYTES)
    return Troubled(child)
