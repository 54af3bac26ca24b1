"""Detail coverage: which details a run owes, which it fetched, and which gaps account for the rest."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec import UNSET

from headwater.manifest.graph import CheckpointGraph
from headwater.wire.decode import NotAMessage
from headwater.wire.keys import detail_key
from headwater.wire.messages import DetailCoverage, DetailKey


@dataclass(frozen=True)
class Report:
    """One boundary's report: keys in canonical form, gaps as the report lists them."""

    required: tuple[str, ...]
    hydrated: frozenset[str]
    gaps: frozenset[str]
    skips: frozenset[str] = frozenset()


class CoverageBook:
    """The reports and gaps of one run. It is judged as it stands at DONE, in whatever order they came (CP-518).

    `credits_skips` says that this connector and this host both opted in to `optional_skip_keys`.
    """

    def __init__(self, graph: CheckpointGraph, scope: frozenset[str], *, credits_skips: bool = False) -> None:
        self._graph = graph
        self._scope = scope
        self._credits_skips = credits_skips
        self.reports: dict[tuple[str, str], Report] = {}
        self.gaps: set[tuple[str, str | None, str]] = set()

    def report(self, message: DetailCoverage) -> None:
        """Take a report, or raise `NotAMessage` for the rule that it breaks."""
        stream, parent = message.stream, message.state_stream
        if message.reference_only is not True:
            raise NotAMessage("coverage_reference_only", "A DETAIL_COVERAGE lacks reference_only: true.")
        if stream not in self._scope or parent not in self._scope:
            raise NotAMessage("coverage_scope", "A DETAIL_COVERAGE names a stream outside the scope of the run.")
        declared = self._graph.streams[stream]
        if declared.state_stream is not None:
            raise NotAMessage("coverage_of_state_stream", "A state_stream child reported DETAIL_COVERAGE.")
        if parent not in declared.parents:
            raise NotAMessage("coverage_parent", "A DETAIL_COVERAGE names a parent that the manifest does not declare.")
        if (stream, parent) in self.reports:
            raise NotAMessage("coverage_twice", "A boundary reported DETAIL_COVERAGE twice.")
        self.reports[stream, parent] = _report(message, credits_skips=self._credits_skips)

    def boundary_of_gap(self, stream: str, parent: str | None) -> str | None:
        """Return the parent that a gap counts for: the one it names, or the only one there is (CP-538, CP-539)."""
        if parent is not None:
            return parent
        parents = self._graph.parents(stream)
        return parents[0] if len(parents) == 1 else None

    def gap(self, stream: str, parent: str | None, key: str | None) -> None:
        """Note a durable gap; one without a key accounts for none (CP-544)."""
        if key is not None:
            self.gaps.add((stream, parent, key))

    def unaccounted(self, stream: str, parent: str) -> list[str]:
        """Return the required keys that are neither hydrated, nor a gap that the run also reported, nor credited."""
        report = self.reports[stream, parent]
        accounted = report.hydrated | report.skips
        accounted |= {key for key in report.gaps if (stream, parent, key) in self.gaps}
        return [key for key in report.required if key not in accounted]

    def owed_to(self, parent: str) -> list[str]:
        """Return the in-scope detail streams that declare a parent and made no report for it."""
        return [
            stream
            for stream in self._graph.details_of(parent)
            if stream in self._scope and (stream, parent) not in self.reports
        ]


def _report(message: DetailCoverage, *, credits_skips: bool) -> Report:
    required = _distinct("required_keys", message.required_keys)
    hydrated = _distinct("hydrated_keys", message.hydrated_keys)
    gaps = _distinct("gap_keys", message.gap_keys)
    skips = _distinct("optional_skip_keys", _skips(message)) if credits_skips else ()
    named = (*hydrated, *gaps, *skips)
    if not frozenset(required).issuperset(named):
        raise NotAMessage("coverage_keys", "A DETAIL_COVERAGE has an outcome for a key that is not required.")
    if len(set(named)) < len(named):
        raise NotAMessage("coverage_keys", "A DETAIL_COVERAGE has a key with two outcomes.")
    return Report(required, frozenset(hydrated), frozenset(gaps), frozenset(skips))


def _skips(message: DetailCoverage) -> list[DetailKey]:
    if message.optional_skip_keys is UNSET:
        return []
    try:
        return msgspec.convert(message.optional_skip_keys, list[DetailKey])
    except msgspec.ValidationError as error:
        raise NotAMessage("coverage_keys", "A DETAIL_COVERAGE has optional_skip_keys that are no keys.") from error


def _distinct(member: str, keys: Sequence[DetailKey]) -> tuple[str, ...]:
    names = tuple(detail_key(key) for key in keys)
    if len(set(names)) < len(names):
        raise NotAMessage("coverage_keys", f"A DETAIL_COVERAGE has a key twice in {member}.")
    return names
