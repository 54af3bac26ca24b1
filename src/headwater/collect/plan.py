"""Planning a run: what it may collect, never more than was asked, refused before anything is started."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import UNSET

from headwater import clock
from headwater.collect.gaps import OpenGap
from headwater.errors import refuse
from headwater.manifest.declaration import Declaration, Stream
from headwater.manifest.faults import Fault, refusal
from headwater.manifest.graph import CheckpointGraph
from headwater.wire.messages import CollectionMode, CollectionScope, CollectionStream


@dataclass(frozen=True)
class Authority:
    """In whose name a run collects, and so which namespace of cursors it reads and advances.

    A proactive run has the global one, a continuous grant its own (CP-401), a single use none (CP-404).
    """

    grant_id: str | None = None
    single_use: bool = False

    @property
    def namespace(self) -> str | None:
        """The namespace's name, None where nothing is read or kept."""
        if self.single_use:
            return None
        return "global" if self.grant_id is None else f"grant:{self.grant_id}"


PROACTIVE = Authority()


@dataclass(frozen=True)
class RunPlan:
    """Everything a run is, before it starts. `state` maps streams to cursors as JSON text, None for none.

    `retries` are the gaps that the run tries again; its scope then asks for nothing else. `compatibility` is how the
    connector speaks where it does not speak the profile alone.
    """

    run_id: str
    declaration: Declaration
    scope: CollectionScope
    mode: CollectionMode = "incremental"
    authority: Authority = PROACTIVE
    state: Mapping[str, str] | None = None
    bindings: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    retries: tuple[OpenGap, ...] = ()
    compatibility: str = ""

    @property
    def namespace(self) -> str | None:
        """Whose cursors the run reads and advances, None for nobody's.

        A narrowed run has cursors of its own: one that says "up to here" for a few fields or a month must not
        let a whole run skip the rest. A retry of gaps has none: it says nothing of what lies between them.
        """
        if self.retries:
            return None
        name = self.authority.namespace
        digest = narrowing_digest(self.scope)
        return name if name is None or digest is None else f"{name}/{digest}"

    @property
    def gap_namespace(self) -> str:
        """Whose gaps the run notes and heals. How it is narrowed makes no difference: what came is there for all."""
        return self.authority.namespace or ""

    @property
    def cursorless(self) -> tuple[str, str] | None:
        """Why no cursor of the run is kept, as a reason and a sentence; None where one may be."""
        if self.retries:
            return "retry", "A retry of gaps keeps no cursor."
        return ("single_use", "A single-use run keeps no cursor.") if self.authority.single_use else None

    @property
    def graph(self) -> CheckpointGraph:
        """The checkpoint graph of the declaration."""
        return CheckpointGraph(self.declaration.streams)

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams in scope."""
        return tuple(entry.name for entry in self.scope.streams)


def plan_scope(
    declaration: Declaration, requested: CollectionScope | None = None, names: Sequence[str] = ()
) -> CollectionScope:
    """Turn what was asked for into an explicit scope, or raise `invalid_scope` with every fault.

    Nothing asked for means every declared stream; `*` is expanded here and never sent (CP-301).
    """
    entries = list(requested.streams) if requested is not None else [CollectionStream(name) for name in names]
    if requested is None and not names:
        entries = [CollectionStream("*")]
    faults: list[Fault] = []
    streams: dict[str, CollectionStream] = {}
    for index, entry in enumerate(entries):
        for stream in declaration.streams.values() if entry.name == "*" else _declared(declaration, entry, faults):
            place = f"/streams/{index}"
            if stream.name in streams:
                faults.append(Fault(f"{place}/name", "unique", "names a stream twice"))
            streams[stream.name] = _narrowed(stream, entry, place, faults)
    if not streams and not faults:
        faults.append(Fault("/streams", "empty", "names no stream"))
    if faults:
        raise refusal("invalid_scope", "The scope is refused; nothing was started.", faults)
    return CollectionScope(list(streams.values()))


def _declared(declaration: Declaration, entry: CollectionStream, faults: list[Fault]) -> list[Stream]:
    if entry.name in declaration.streams:
        return [declaration.streams[entry.name]]
    known = ", ".join(sorted(declaration.streams))
    faults.append(
        Fault("/streams", "unknown_stream", f"names a stream the manifest does not declare (it has: {known})")
    )
    return []


def _narrowed(stream: Stream, entry: CollectionStream, place: str, faults: list[Fault]) -> CollectionStream:
    fields = entry.fields
    if fields is not UNSET:
        if stream.fields and not stream.fields.issuperset(fields):
            faults.append(Fault(f"{place}/fields", "unknown_field", "names a field that the schema does not have"))
        fields = sorted(stream.essential_fields.union(fields))
    if entry.resources is not UNSET and not entry.resources:
        faults.append(Fault(f"{place}/resources", "empty", "is empty; leave the member out to collect all"))
    window = entry.time_range
    if window is not UNSET:
        if stream.consent_time_field is None:
            faults.append(Fault(f"{place}/time_range", "no_time_field", "the stream declares no consent_time_field"))
        if any(side is not UNSET and clock.parse(side) is None for side in (window.since, window.until)):
            faults.append(Fault(f"{place}/time_range", "time", "holds a time that is not RFC 3339"))
    return CollectionStream(stream.name, entry.resources, window, fields)


def narrowing_digest(scope: CollectionScope) -> str | None:
    """Return a short name for how a scope is narrowed, None where no stream is."""
    narrowed = [entry for entry in scope.streams if (entry.resources, entry.time_range, entry.fields) != (UNSET,) * 3]
    if not narrowed:
        return None
    return sha256(msgspec.json.encode(sorted(narrowed, key=lambda entry: entry.name))).hexdigest()[:12]


def plan_mode(declaration: Declaration, scope: CollectionScope, asked: CollectionMode | None) -> CollectionMode:
    """Choose the mode by what the streams can do and what the owner asked for, never by a grant (CP-147)."""
    streams = [declaration.streams[entry.name] for entry in scope.streams]
    if all(stream.incremental is False for stream in streams):
        return "full_refresh"
    return asked or "incremental"


def match_bindings(declaration: Declaration, offered: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the descriptors to announce, or raise `binding_unavailable` naming what is missing (CP-050)."""
    missing = sorted(declaration.required_bindings - offered.keys())
    if missing == ["interactive"]:
        message = (
            "The connector needs interactive: it has to ask somebody, and nobody can answer here. Run it at a "
            "terminal, or connect its account first, if it has one; nothing was started."
        )
        command = "headwater connections connect --help"
        raise refuse("binding_unavailable", message, command=command, bindings=missing)
    if missing:
        message = f"The connector needs {', '.join(missing)}, which this host does not offer; nothing was started."
        raise refuse("binding_unavailable", message, bindings=missing)
    return {name: dict(offered[name]) for name in declaration.bindings if name in offered}
