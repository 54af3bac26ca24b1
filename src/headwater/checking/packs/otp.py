"""OTP: a question that is answered, declined, and left alone. The answer is repeated nowhere."""

from collections.abc import Mapping
from typing import Any

from headwater.checking.bench import Bench, Trial
from headwater.checking.findings import Finding, inapplicable, judged
from headwater.wire.messages import Interaction

PACK = "otp"
_ANSWERED = ("CP-704", "CP-408", "CP-537", "CP-711")
# Which clause an answer breaks that stands in a message of this type; any other message breaks CP-711.
_CLAUSE_OF_LEAK = {"STATE": "CP-408", "DETAIL_GAP": "CP-537"}


class Declining:
    """An owner who says no."""

    async def answer(self, question: Interaction) -> Mapping[str, Any] | None:
        """See `Respondent.answer`."""
        return None


class Absent:
    """An owner who is not there: the time of each question is over at once."""

    async def answer(self, question: Interaction) -> Mapping[str, Any] | None:
        """See `Respondent.answer`."""
        raise TimeoutError


async def otp(bench: Bench, whole: Trial) -> list[Finding]:
    """Run once with each kind of owner."""
    clauses = (*_ANSWERED, "CP-705", "CP-706")
    if not whole.questions and not bench.declaration.human_interaction:
        return inapplicable(PACK, "It asks nothing.", *clauses)
    declined = await bench.trial(PACK, bench.plan, respondent=Declining())
    alone = await bench.trial(PACK, bench.plan, respondent=Absent())
    return [
        *_answered(bench, whole),
        _coped("CP-705", "`cancelled`", declined),
        _coped("CP-706", "`timeout`", alone),
    ]


def _coped(clause: str, status: str, trial: Trial) -> Finding:
    if not trial.questions:
        return inapplicable(PACK, "It asked nothing in this run.", clause)[0]
    fault = "" if trial.ended_in_order else f"After the answer {status}: {trial.message}"
    return judged(clause, PACK, fault, f"After {status} the run ended as {trial.outcome.verdict.status}.")


def _answered(bench: Bench, whole: Trial) -> list[Finding]:
    if bench.answers is None or not whole.questions:
        return inapplicable(PACK, "There is no fixtures/answers.json, or nothing was asked.", *_ANSWERED)
    findings = {clause: judged(clause, PACK, "", "The answer was not repeated.") for clause in _ANSWERED[1:]}
    for kind, leak in whole.session.leaks.items():
        clause = _CLAUSE_OF_LEAK.get(kind, "CP-711")
        findings[clause] = judged(clause, PACK, leak.text, line=leak.line)
    if whole.repeats_on_stderr:
        findings["CP-711"] = judged("CP-711", PACK, "The answer stands on stderr.")
    taken = judged("CP-704", PACK, "", f"{whole.questions:,} questions were answered, and the run went on.")
    return [taken, *findings.values()]
