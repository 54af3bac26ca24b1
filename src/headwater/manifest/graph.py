"""The checkpoint graph: which stream's cursor covers which stream, and what makes a declaration unusable.

Headwater resolves direct parents only and refuses a manifest whose edges run deeper (CP-041): a chain
would leave two readings of what a failed grandchild withholds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from headwater.manifest.declaration import Stream

STRATEGY_OF_STATE_STREAM = "checkpoint_window"
STRATEGY_OF_PARENT_STREAMS = "parent_detail_accounting"


@dataclass(frozen=True)
class Edges:
    """One stream's dependency members just as the manifest has them, before anything is believed.

    `both` and `empty` keep what the two name fields alone could not: that both members were present,
    and that `parent_streams` was present with no entry.
    """

    stream: str
    state_stream: str | None = None
    parent_streams: tuple[str, ...] = ()
    strategy: object = None
    both: bool = False
    empty: bool = False

    @property
    def targets(self) -> tuple[str, ...]:
        """Every stream that this one names."""
        named = (self.state_stream,) if self.state_stream is not None else ()
        return (*named, *self.parent_streams)


def graph_faults(edges: Sequence[Edges]) -> Iterator[tuple[str, str, str]]:
    """Yield (stream, rule, message) for each breach of the validation rules 1 to 7 and of the depth rule."""
    declared = {edge.stream for edge in edges}
    for edge in edges:
        for rule, message in _rules_of_one(edge, declared):
            yield edge.stream, rule, message
    targets = {edge.stream: [name for name in edge.targets if name in declared] for edge in edges}
    looping = _in_cycles(targets)
    for edge in edges:
        if edge.stream in looping:
            yield edge.stream, "cycle", "its checkpoint dependencies lead back to itself"
        elif any(targets[name] for name in targets[edge.stream] if name not in looping):
            yield edge.stream, "depth", "its checkpoint parent has a parent of its own; one level is resolved"


def _rules_of_one(edge: Edges, declared: set[str]) -> Iterator[tuple[str, str]]:
    if edge.stream in edge.targets:
        yield "self_reference", "names itself as its checkpoint parent"
    if any(name not in declared for name in edge.targets):
        yield "unknown_stream", "names a checkpoint parent that the manifest does not declare"
    if len(set(edge.parent_streams)) < len(edge.parent_streams):
        yield "duplicate_parent", "names a parent twice"
    if edge.both:
        yield "both_fields", "declares both state_stream and parent_streams"
    if edge.empty:
        yield "empty_parents", "has an empty parent_streams; leave the member out instead"
    if edge.state_stream is not None and edge.strategy != STRATEGY_OF_STATE_STREAM:
        yield "strategy", f"state_stream needs coverage_strategy {STRATEGY_OF_STATE_STREAM}"
    if edge.parent_streams and edge.strategy != STRATEGY_OF_PARENT_STREAMS:
        yield "strategy", f"parent_streams needs coverage_strategy {STRATEGY_OF_PARENT_STREAMS}"


def _in_cycles(targets: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the streams that can reach themselves over two edges or more, in time linear in the edges."""
    # Kosaraju: two streams lie on one cycle if each reaches the other. What a walk against the edges reaches, taken
    # up in the reverse order in which a walk along them left it, is such a group.
    forward = {name: [target for target in named if target != name] for name, named in targets.items()}
    backward: dict[str, list[str]] = {name: [] for name in targets}
    for name, named in forward.items():
        for target in named:
            backward[target].append(name)
    left: list[str] = []
    seen: set[str] = set()
    for name in forward:
        left += _walk(forward, name, seen)
    seen.clear()
    groups = (_walk(backward, name, seen) for name in reversed(left))
    return {name for group in groups if len(group) > 1 for name in group}


def _walk(edges: Mapping[str, Sequence[str]], start: str, seen: set[str]) -> list[str]:
    """Return what is reached from a stream and was not seen before, each after all that it leads to."""
    if start in seen:
        return []
    seen.add(start)
    left = []
    path = [(start, iter(edges[start]))]
    while path:
        name, rest = path[-1]
        target = next((target for target in rest if target not in seen), None)
        if target is None:
            left.append(name)
            path.pop()
        else:
            seen.add(target)
            path.append((target, iter(edges[target])))
    return left


@dataclass(frozen=True)
class CheckpointGraph:
    """The accepted graph: every path ends at a self-mapped stream after at most one edge (CP-040)."""

    streams: Mapping[str, Stream]

    @cached_property
    def checkpoint_streams(self) -> frozenset[str]:
        """The streams that STATE may name: self-mapped ones, and parents (CP-126)."""
        return frozenset(parent for stream in self.streams.values() for parent in stream.parents)

    @cached_property
    def detail_parents(self) -> frozenset[str]:
        """The streams that some parent_streams list names; they face a coverage verdict (CP-463)."""
        return frozenset(parent for stream in self.streams.values() for parent in stream.parent_streams)

    def parents(self, stream: str) -> tuple[str, ...]:
        """Return the checkpoint streams that cover a declared stream."""
        return self.streams[stream].parents

    def details_of(self, parent: str) -> list[str]:
        """Return the detail streams whose coverage gates a checkpoint stream."""
        return [stream.name for stream in self.streams.values() if parent in stream.parent_streams]

    def covered_by(self, parent: str) -> list[str]:
        """Return every stream that a checkpoint covers, itself included when it is self-mapped."""
        return [stream.name for stream in self.streams.values() if parent in stream.parents]
