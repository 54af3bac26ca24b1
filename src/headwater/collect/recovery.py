"""Runs whose host went away in their midst: settled before the next run of the same instance starts."""

from dataclasses import dataclass

from headwater.collect.checkpoints import Decision, decide_abandoned
from headwater.collect.ports import Conclusion, Ledger
from headwater.collect.session import Facts
from headwater.collect.verdict import Verdict


@dataclass(frozen=True)
class Recovered:
    """An orphan that was settled, for people."""

    run_id: str
    decision: Decision


async def recover(ledger: Ledger) -> list[Recovered]:
    """Settle every orphan of the ledger's instance; call it only while no run of the instance can be alive."""
    settled = []
    for orphan in await ledger.orphans():
        decision = decide_abandoned(
            orphan.graph,
            orphan.staged,
            orphan.gapped,
            controller_died=not orphan.connector_ended,
            authority=orphan.authority,
            cancelled=orphan.cancelled,
        )
        verdict = Verdict("abandoned", "host_gone", "Headwater was stopped in the middle of the run.")
        await ledger.conclude(Conclusion(verdict, decision, Facts()), run_id=orphan.run_id)
        settled.append(Recovered(orphan.run_id, decision))
    return settled
