"""Determinism: the same full run again, and the same keys. A record that is sent again must replace itself."""

from headwater.checking.bench import Bench, Trial
from headwater.checking.findings import Finding, inapplicable, judged
from headwater.checking.losses import named

PACK = "determinism"


async def determinism(bench: Bench, whole: Trial) -> list[Finding]:
    """Compare the keys of two full runs."""
    if not whole.present:
        return inapplicable(PACK, "No record came.", "CP-119")
    again = await bench.trial(PACK, bench.plan)
    if not again.succeeded:
        return [judged("CP-119", PACK, f"The second full run did not succeed: {again.message}")]
    lost, new = whole.present - again.present, again.present - whole.present
    fault = f"A second full run lacked {named(lost)}, and brought {named(new)} that the first had not." if lost else ""
    return [judged("CP-119", PACK, fault, f"Two full runs brought the same {len(whole.present):,} keys.")]
