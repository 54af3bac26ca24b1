"""No network: a connector that needs it has none. It says so in DONE; it does not hang, and claims nothing."""

from headwater.checking.bench import Bench, Trial
from headwater.checking.findings import Finding, inapplicable, judged
from headwater.checking.losses import named

PACK = "no-network"


async def no_network(bench: Bench, whole: Trial) -> list[Finding]:
    """Run in a network that holds nothing, not even the connector's own machine."""
    clauses = ("CP-204", "CP-214")
    if "network" not in bench.declaration.bindings:
        return inapplicable(PACK, "It declares no network.", *clauses)
    if "network" not in bench.launch({}, bench.place).chosen_way().holds:
        return inapplicable(PACK, "This system cannot take the network away.", *clauses)
    trial = await bench.trial(PACK, bench.plan, network=False)
    lost = whole.present - trial.present
    if trial.succeeded and not lost:
        return inapplicable(PACK, "Without network the same records came.", *clauses)
    seen = f"Without network: {trial.message}"
    claimed = f"Without network it said `succeeded`, and {named(lost)} did not come." if trial.succeeded else ""
    died = "" if trial.ended_in_order else seen
    return [judged("CP-204", PACK, claimed, seen), judged("CP-214", PACK, died, seen)]
