"""Which staged checkpoints commit when a run ends, and why each other one is withheld.

This is the eligible-checkpoint algorithm of the Collection Profile, section 3. It reads the manifest's graph,
the complete staged map and the coverage book, and nothing that a connector says about its own eligibility.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from headwater.collect.coverage import CoverageBook
from headwater.collect.plan import Authority
from headwater.collect.verdict import Verdict
from headwater.manifest.graph import CheckpointGraph

_KEYS_SHOWN = 20


@dataclass(frozen=True)
class Withheld:
    """A staged checkpoint that is not committed: a stable reason, a sentence, and the first keys behind it."""

    stream: str
    reason: str
    message: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decision:
    """What becomes of the staged map: streams to commit, in order, and streams withheld."""

    committed: tuple[str, ...] = ()
    withheld: tuple[Withheld, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """What a run showed, as far as checkpoints depend on it."""

    staged: Collection[str]
    coverage: CoverageBook
    failed_streams: frozenset[str] = field(default_factory=frozenset)


def decide(
    verdict: Verdict, graph: CheckpointGraph, evidence: Evidence, *, cursorless: tuple[str, str] | None = None
) -> Decision:
    """Decide over the whole staged map at the end of a run. `cursorless` says why none may be kept at all."""
    if cursorless is not None:
        return _none(evidence.staged, *cursorless)
    if not verdict.may_commit:
        return _none(evidence.staged, verdict.cause, verdict.message)
    withheld = withheld_checkpoints(graph, evidence)
    committed = tuple(stream for stream in evidence.staged if stream not in withheld)
    return Decision(committed, tuple(withheld.values()))


def withheld_checkpoints(graph: CheckpointGraph, evidence: Evidence) -> dict[str, Withheld]:
    """Return the staged checkpoints that a failed stream or a coverage shortfall withholds (steps 1 to 3)."""
    parents: dict[str, str] = {}
    for failed in sorted(evidence.failed_streams):
        for parent in graph.parents(failed):
            parents.setdefault(parent, failed)
    withheld = {}
    for stream in evidence.staged:
        reason = _failure(stream, parents) or _shortfall(stream, evidence.coverage)
        if reason is not None:
            withheld[stream] = reason
    return withheld


def _failure(stream: str, parents: Mapping[str, str]) -> Withheld | None:
    if stream not in parents:
        return None
    failed = parents[stream]
    if failed == stream:
        return Withheld(stream, "stream_failed", f"The stream {stream} could not be collected.")
    return Withheld(stream, "covered_stream_failed", f"It covers {failed}, which could not be collected.")


def _shortfall(stream: str, coverage: CoverageBook) -> Withheld | None:
    owed = coverage.owed_to(stream)
    if owed:
        return Withheld(stream, "no_report", f"{owed[0]} reported no coverage for {stream}.")
    for detail, parent in coverage.reports:
        if parent == stream and (keys := coverage.unaccounted(detail, parent)):
            count = f"{len(keys):,} key{'s' if len(keys) > 1 else ''} of {detail}"
            message = f"{count} {'are' if len(keys) > 1 else 'is'} unaccounted for."
            return Withheld(stream, "unaccounted", message, tuple(keys[:_KEYS_SHOWN]))
    return None


def _none(staged: Collection[str], reason: str, message: str) -> Decision:
    return Decision((), tuple(Withheld(stream, reason, message) for stream in staged))


def decide_abandoned(
    graph: CheckpointGraph,
    staged: Collection[str],
    gapped: frozenset[str],
    *,
    controller_died: bool,
    authority: Authority,
    cancelled: bool,
) -> Decision:
    """Decide for a run whose host went away in its midst, by the three conditions of restart abandonment.

    `controller_died` is False once the connector reported its own end. `gapped` are the streams with a
    pending gap; a gap of any stream that a checkpoint covers keeps that checkpoint back.
    """
    if authority.single_use:
        return _none(staged, "single_use", "A single-use run keeps no cursor.")
    if cancelled:
        return _none(staged, "cancelled", "The owner cancelled the run.")
    if not controller_died:
        return _none(staged, "connector_ended", "The connector had ended before the host went away.")
    committed, withheld = [], []
    for stream in staged:
        behind = sorted(gapped.intersection(graph.covered_by(stream)) | gapped.intersection({stream}))
        if stream in graph.detail_parents:
            withheld.append(Withheld(stream, "detail_parent", "Its coverage was not proven before the host went away."))
        elif behind:
            withheld.append(Withheld(stream, "pending_gap", f"{behind[0]} has a gap that is still open."))
        else:
            committed.append(stream)
    return Decision(tuple(committed), tuple(withheld))
