"""Whole: one undisturbed run of everything. All other packs compare with it, so it is always run, and first."""

from collections.abc import Iterator

from headwater.checking.bench import Bench, Trial
from headwater.checking.findings import Finding, inapplicable, judged

PACK = "whole"
_FIRST = "Let one whole run succeed first: look at the options, the answers and the source."
# From so many records on, a cursor that comes only at the end loses too much in a crash.
_STATES_EXPECTED_FROM = 2_000


async def whole(bench: Bench) -> tuple[Trial, list[Finding]]:
    """Run it, and judge what one run shows."""
    trial = await bench.trial(PACK, bench.plan)
    fault = "" if trial.succeeded else f"The whole run did not succeed: {trial.message}"
    if fault and trial.questions and bench.answers is None:
        fault += " It asked, and there is neither fixtures/answers.json nor --answer-file."
    line = trial.session.lines if fault and trial.session.lines else None
    seen = f"The run succeeded with {trial.total:,} records."
    findings = [judged("CP-204", PACK, fault, seen, line=line, remedy=_FIRST)]
    return trial, [*findings, *_saved_on_the_way(bench, trial), *_details(bench, trial)]


def _saved_on_the_way(bench: Bench, trial: Trial) -> Iterator[Finding]:
    streams = [stream.name for stream in bench.declaration.streams.values() if stream.incremental is not False]
    large = [name for name in streams if trial.seen(name) >= _STATES_EXPECTED_FROM and trial.states[name]]
    rare = [name for name in large if trial.states[name] < 2]
    if large:
        yield judged("CP-409", PACK, f"Only at the end: {', '.join(rare)}." if rare else "", "It is.")
    else:
        yield from inapplicable(PACK, f"No stream with a cursor sent {_STATES_EXPECTED_FROM:,} records.", "CP-409")


def _details(bench: Bench, trial: Trial) -> Iterator[Finding]:
    if not any(stream.parent_streams for stream in bench.declaration.streams.values()) or not trial.succeeded:
        yield from inapplicable(PACK, "No detail lane was seen.", "CP-515", "CP-516")
        return
    withheld = {held.reason: held.message for held in trial.outcome.decision.withheld}
    yield judged("CP-515", PACK, withheld.get("unaccounted", ""), "Every required key was fetched or a gap.")
    yield judged("CP-516", PACK, withheld.get("no_report", ""), "Each parent got its report.")
