"""No network: a connector that needs it has none. It says so in DONE; it does not hang, and claims nothing."""

from headwater.checking.bench import Bench, Trial, can_take_network_away
from headwater.checking.findings import Finding, inapplicable, judged
from headwater.checking.losses import named

PACK = "no-network"


async def no_network(bench: Bench, whole: Trial) -> list[Finding]:
    """Run in a network that holds nothing, not even the connector's own machine."""
    clauses = ("CP-204", "CP-214")
    if "network" not in bench.declaration.bindings:
        return inapplicable(PACK, "It declares no network.", *clauses)
    if not await can_take_network_away():
        return inapplicable(PACK, "This system cannot take the network away.", *clauses)
    trial = await bench.trial(PACK, bench.plan, network=False)
    said = "" if trial.ended_in_order else f"Without network: {trial.message}"
    lost = whole.present - trial.present
    claimed = f"Without network it said `succeeded`, and {named(lost)} did not come."
    return [
        judged("CP-204", PACK, claimed if trial.succeeded and lost else "", _seen(trial)),
        judged("CP-214", PACK, said, _seen(trial)),
    ]


def _seen(trial: Trial) -> str:
    if trial.succeeded:
        return "Without network the same records came."
    error = trial.outcome.facts.error or {}
    return f"Without network it failed: {error.get('message', trial.message)}"
