"""What a connector's runs show about the clauses it has to keep: evidence in, a verdict a clause out.

The evidence comes from the very Session that live runs use. A clause that no run could show is said to be
`not shown`, and never counts as kept.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from headwater.collect.admission import OUT_OF_SCOPE
from headwater.collect.effects import Receipt
from headwater.collect.ports import Outcome
from headwater.manifest.declaration import Declaration

Mark = Literal["holds", "fails", "not shown"]

STATES_EXPECTED_FROM = 2_000


@dataclass(frozen=True)
class Finding:
    """What the runs show about one clause. `detail` says where it failed."""

    clause: str
    verdict: Mark
    sentence: str
    detail: str = ""


@dataclass(frozen=True)
class Trial:
    """One run of a connector that is being checked."""

    outcome: Outcome
    receipts: Sequence[Receipt] = ()
    staged: Mapping[str, int] = field(default_factory=dict)

    @property
    def cause(self) -> str:
        """The cause of the run's end."""
        return self.outcome.verdict.cause

    def records(self, stream: str) -> int:
        """Return how many records of a stream came."""
        return self.outcome.tallies[stream].seen if stream in self.outcome.tallies else 0

    @property
    def total(self) -> int:
        """All the records that came."""
        return sum(tally.seen for tally in self.outcome.tallies.values())


@dataclass(frozen=True)
class Trials:
    """The runs of a check: whole, resumed from the whole one's cursors, narrowed in each way, with a strange binding.

    `spoke_early` says whether the connector wrote anything before START.
    """

    whole: Trial
    resumed: Trial | None = None
    one_stream: Trial | None = None
    few_fields: Trial | None = None
    strange_binding: Trial | None = None
    spoke_early: bool = False


# Which clause each violation breaks. The session's rules are finer than the ledger in places.
CLAUSE_OF_RULE = {
    "not_json": "CP-101",
    "not_utf8": "CP-101",
    "not_a_message": "CP-102",
    "unknown_type": "CP-102",
    "record_data": "CP-115",
    "emitted_at": "CP-115",
    "state_cursor": "CP-125",
    "state_stream": "CP-126",
    "after_done": "CP-153",
    "truncated": "CP-105",
    "no_done": "CP-209",
    "wrong_count": "CP-220",
    "exit_disagrees": "CP-211",
    "did_not_exit": "CP-211",
    "coverage_of_state_stream": "CP-525",
    "coverage_parent": "CP-526",
    "coverage_keys": "CP-507",
    "coverage_twice": "CP-521",
}

_SENTENCES = {
    "CP-101": "Every line of stdout is JSON.",
    "CP-102": "Every line is a message of the profile.",
    "CP-105": "The last line is whole.",
    "CP-115": "Every RECORD has a stream, an object as data and an ISO 8601 emitted_at.",
    "CP-125": "Every STATE has a stream and an object as cursor.",
    "CP-126": "STATE names only checkpoint streams.",
    "CP-153": "DONE is the last message.",
    "CP-209": "The connector says DONE before it exits.",
    "CP-211": "The exit status agrees with DONE.",
    "CP-220": "DONE counts the records that were sent.",
    "CP-507": "Each key of a DETAIL_COVERAGE is required, and has one outcome.",
    "CP-521": "A boundary reports its coverage once.",
    "CP-525": "A state_stream child sends no DETAIL_COVERAGE.",
    "CP-526": "DETAIL_COVERAGE names declared parents only.",
}

# Clauses that only a run with a detail lane can show.
_OF_LANES = frozenset({"CP-507", "CP-521", "CP-525", "CP-526"})


def certify(declaration: Declaration, trials: Trials) -> list[Finding]:
    """Return a finding for each clause that a check looks at."""
    findings = [*_protocol(trials), *_records(trials.whole), *_scope(declaration, trials), *_state(declaration, trials)]
    return sorted(findings, key=lambda finding: finding.clause)


def _protocol(trials: Trials) -> Iterator[Finding]:
    runs = [trial for trial in (trials.whole, trials.resumed, trials.one_stream, trials.few_fields) if trial]
    yield from _rules(trials.whole, {CLAUSE_OF_RULE[run.cause]: run for run in runs if run.cause in CLAUSE_OF_RULE})
    unlisted = next((trial for trial in runs if _is_violation(trial)), None)
    detail = unlisted.outcome.verdict.message if unlisted else ""
    yield _finding("CP-100", unlisted is None, "Both directions carry one JSON object a line.", detail)
    verdict = trials.whole.outcome.verdict
    yield _finding("CP-204", verdict.status == "succeeded", "A whole run succeeds.", verdict.message)
    yield _finding("CP-200", not trials.spoke_early, "Nothing is written before START.", "It wrote before START.")


def _rules(whole: Trial, broken: Mapping[str, Trial]) -> Iterator[Finding]:
    has_lanes = bool(whole.outcome.facts.coverage)
    for clause, sentence in _SENTENCES.items():
        if clause in broken:
            yield Finding(clause, "fails", sentence, broken[clause].outcome.verdict.message)
        else:
            shown = whole.cause == "succeeded" and (has_lanes or clause not in _OF_LANES)
            yield _finding(clause, shown or None, sentence)


def _is_violation(trial: Trial) -> bool:
    known = {"succeeded", "connector_failed", "stream_collection_failed", "connector_cancelled"}
    return trial.outcome.verdict.status == "failed" and trial.cause not in known | CLAUSE_OF_RULE.keys()


def _records(whole: Trial) -> Iterator[Finding]:
    reasons = Counter(receipt.reason for receipt in whole.receipts)
    shown = whole.total > 0 or None
    first = {receipt.reason: f"{receipt.stream}: {receipt.message}" for receipt in reversed(whole.receipts)}
    for clause, reason, sentence in (
        ("CP-121", "key_identity", "A record's key is its primary key."),
        ("CORE-016", "schema", "Records keep the schema of their stream."),
        ("CORE-026", "blob_ref", "Bytes are named by a whole blob_ref."),
        ("CP-320", OUT_OF_SCOPE, "Records belong to streams of the scope."),
    ):
        detail = f"{reasons[reason]:,} records; {first.get(reason, '')}"
        yield _finding(clause, False if reasons[reason] else shown, sentence, detail)


def _scope(declaration: Declaration, trials: Trials) -> Iterator[Finding]:
    one, few, strange = trials.one_stream, trials.few_fields, trials.strange_binding
    sentence = "No record comes for a stream that is not in the scope."
    yield _narrowed("CP-313", one if len(declaration.streams) > 1 else None, sentence)
    yield _narrowed("CP-315", few, "With `fields`, no other field comes.")
    same = None if strange is None else strange.total == trials.whole.total
    yield _finding("CP-059", same, "Unknown bindings are ignored.", "The run differed.")


def _narrowed(clause: str, trial: Trial | None, sentence: str) -> Finding:
    if trial is None:
        return _finding(clause, None, sentence)
    outside = sum(receipt.reason == OUT_OF_SCOPE for receipt in trial.receipts)
    return _finding(clause, outside == 0, sentence, f"{outside:,} records lay outside the scope.")


def _state(declaration: Declaration, trials: Trials) -> Iterator[Finding]:
    sentence = "A run resumes from the cursors of the one before."
    resumed = trials.resumed
    kept = None if resumed is None else resumed.outcome.verdict.status == "succeeded"
    yield _finding("CP-405", kept, sentence, "" if resumed is None else resumed.outcome.verdict.message)
    yield _saves_on_the_way(declaration, trials.whole)
    withheld = [held for held in trials.whole.outcome.decision.withheld if held.reason == "no_report"]
    lanes = any(stream.parent_streams for stream in declaration.streams.values())
    sentence = "Each parent of a detail lane gets one coverage report."
    detail = withheld[0].message if withheld else ""
    yield _finding("CP-516", not withheld if lanes else None, sentence, detail)


def _saves_on_the_way(declaration: Declaration, whole: Trial) -> Finding:
    sentence = "An incremental stream saves its cursor during the walk."
    streams = [stream.name for stream in declaration.streams.values() if stream.incremental is not False]
    large = [name for name in streams if whole.records(name) >= STATES_EXPECTED_FROM and name in whole.staged]
    rare = [name for name in large if whole.staged[name] < 2]
    return _finding("CP-409", not rare if large else None, sentence, f"Only at the end: {', '.join(rare)}.")


def _finding(clause: str, holds: bool | None, sentence: str, detail: str = "") -> Finding:
    if holds is None:
        return Finding(clause, "not shown", sentence)
    return Finding(clause, "holds", sentence) if holds else Finding(clause, "fails", sentence, detail)
