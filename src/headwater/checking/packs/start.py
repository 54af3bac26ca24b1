"""Start: nothing before START, unknown bindings ignored, a missing required one fatal."""

from dataclasses import replace
from typing import Any

from headwater.checking.bench import Bench, Trial
from headwater.checking.findings import Finding, inapplicable, judged

PACK = "start"


async def start(bench: Bench, whole: Trial) -> list[Finding]:
    """Withhold START, and play with the bindings in it."""
    early = "It wrote before START." if await bench.speaks_early() else ""
    plan = bench.plan
    strange = await bench.trial(PACK, replace(plan, bindings={**plan.bindings, "example.com/strange": {"a": 1}}))
    differs = strange.total != whole.total or not strange.succeeded
    fault = f"With a binding that it cannot know, {strange.total:,} records came instead of {whole.total:,}."
    return [
        judged("CP-200", PACK, early, "It was silent until START came."),
        judged("CP-059", PACK, fault if differs else "", "The run was the same with a strange binding."),
        *await _without_a_binding(bench),
    ]


async def _without_a_binding(bench: Bench) -> list[Finding]:
    required = sorted(bench.declaration.required_bindings)
    if not required:
        return inapplicable(PACK, "It requires no binding.", "CP-058")
    kept: dict[str, dict[str, Any]] = {name: {} for name in bench.declaration.bindings if name != required[0]}
    trial = await bench.trial(PACK, replace(bench.plan, bindings=kept), troubled=True)
    status, count = trial.outcome.verdict.status, trial.total
    wrong = status == "succeeded" or count > 0
    fault = f"START lacked {required[0]}, and the run {status} with {count:,} records." if wrong else ""
    return [judged("CP-058", PACK, fault, f"Without {required[0]} it failed and sent nothing.")]
