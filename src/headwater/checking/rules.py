"""The rules of the wire, which any run may break: every trial of a check is held to them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from headwater.checking.bench import Trial
from headwater.checking.findings import Finding, inapplicable, judged
from headwater.collect.admission import BLOB_FIELD

# Which clause each cause of a run's end breaks. What the Session calls by one name for all messages is told apart
# by the type of the message below.
CLAUSE_OF_CAUSE: Final = {
    "not_json": "CP-101",
    "not_utf8": "CP-101",
    "not_a_message": "CP-102",
    "unknown_type": "CP-102",
    "truncated": "CP-105",
    "record_data": "CP-115",
    "emitted_at": "CP-115",
    "state_cursor": "CP-125",
    "state_stream": "CP-126",
    "after_done": "CP-153",
    "did_not_exit": "CP-211",
    "done_count": "CP-152",
    "exit_disagrees": "CP-211",
    "no_done": "CP-209",
    "wrong_count": "CP-220",
    "coverage_reference_only": "CP-503",
    "coverage_scope": "CP-503",
    "coverage_keys": "CP-507",
    "coverage_twice": "CP-521",
    "coverage_of_state_stream": "CP-525",
    "coverage_parent": "CP-526",
    "gap_scope": "CP-535",
    "evidence_reference_only": "CP-609",
    "evidence_counts": "CP-609",
    "evidence_stream": "CP-603",
    "evidence_twice": "CP-611",
    "interaction_timeout": "CP-700",
    "spoke_while_waiting": "CP-701",
    "left_while_waiting": "CP-701",
    "asks_for_ever": "CP-705",
    "idle": "CP-209",
    "run_time": "CP-209",
    "too_long": "CP-204",
}
CLAUSE_OF_SHAPE: Final = {
    "RECORD": "CP-115",
    "STATE": "CP-125",
    "SKIP_RESULT": "CP-130",
    "PROGRESS": "CP-137",
    "DONE": "CP-152",
    "DETAIL_COVERAGE": "CP-503",
    "DETAIL_GAP": "CP-535",
    "STREAM_EVIDENCE": "CP-609",
    "INTERACTION": "CP-700",
}
_CLAUSE_OF_RECEIPT: Final = {
    "key_identity": "CP-121",
    "key_size": "CP-121",
    "schema": "CORE-016",
    "blob_ref": "CORE-026",
    "blob_missing": "CORE-026",
}
# Shown by every run, as far as it came.
_ALWAYS: Final = ("CP-100", "CP-101", "CP-102")
# What must have been sent before a run shows the clause at all.
_NEEDED: Final = {
    **{clause: kind for kind, clause in CLAUSE_OF_SHAPE.items()},
    **dict.fromkeys(("CP-105", "CP-153", "CP-209", "CP-211", "CP-220"), "DONE"),
    **dict.fromkeys(("CP-121", "CORE-016"), "RECORD"),
    "CORE-026": BLOB_FIELD,
    "CP-126": "STATE",
    **dict.fromkeys(("CP-507", "CP-521", "CP-525", "CP-526"), "DETAIL_COVERAGE"),
    **dict.fromkeys(("CP-603", "CP-611"), "STREAM_EVIDENCE"),
    "CP-701": "INTERACTION",
}
_EVERY_RUN: Final = "every run"
# Causes that show nothing about the wire.
_SILENT = frozenset({"succeeded", "connector_failed", "connector_cancelled", "stream_collection_failed", "cancelled"})


def findings_of(trials: Sequence[Trial]) -> Iterator[Finding]:
    """Yield a finding for each rule: failed in the first trial that broke it, or passed by all that could show it."""
    broken = {finding.clause: finding for trial in reversed(trials) for finding in _broken(trial)}
    yield from broken.values()
    sent = {kind for trial in trials for kind in trial.session.kinds}
    streams = trials[0].session.plan.declaration.streams.values()
    sent |= {BLOB_FIELD} if any(BLOB_FIELD in stream.fields for stream in streams) else set()
    lines_broke = not broken.keys().isdisjoint(_ALWAYS)
    for clause in (*_ALWAYS, *_NEEDED):
        kind = _NEEDED.get(clause)
        if clause in broken:
            continue
        if kind in sent or (kind is None and not lines_broke):
            yield judged(clause, _EVERY_RUN, "", f"{len(trials):,} runs kept it.")
        else:
            why = f"No {kind} was sent." if kind else "The lines broke off."
            yield inapplicable(_EVERY_RUN, why, clause)[0]


def _broken(trial: Trial) -> Iterator[Finding]:
    cause = trial.cause
    if cause not in _SILENT and not trial.troubled:
        kind = trial.session.broken.kind if trial.session.broken else ""
        shape = CLAUSE_OF_SHAPE.get(kind, "CP-100")
        line = trial.session.broken.line if trial.session.broken else trial.session.lines or None
        yield judged(CLAUSE_OF_CAUSE.get(cause, shape), trial.pack, trial.message, line=line)
    reasons = Counter(receipt.reason for receipt in trial.receipts)
    first = {receipt.reason: f"{receipt.stream}: {receipt.message}" for receipt in reversed(trial.receipts)}
    for reason, count in reasons.items():
        if reason in _CLAUSE_OF_RECEIPT:
            sighting = trial.session.refused.get(reason)
            seen = f"{count:,} records were refused; the first: {first[reason]}"
            yield judged(_CLAUSE_OF_RECEIPT[reason], trial.pack, seen, line=sighting.line if sighting else None)
