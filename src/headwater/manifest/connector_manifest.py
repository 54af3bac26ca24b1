"""Connector manifests: the Collection Profile's members alone, or with the consent surface of PDPP Core.

Both revisions of the profile show manifests whose streams say their name and whether they can resume, and no more.
As soon as any stream says what a person consents to, the document speaks Core's language, and Core's rules hold.
"""

from dataclasses import replace
from typing import Any, Final, get_args

from headwater.manifest.declaration import STANDARD_BINDINGS, Binding, Declaration, InteractionKind, Shape, Stream
from headwater.manifest.faults import Reader
from headwater.manifest.graph import Edges, graph_faults
from headwater.manifest.streams import (
    StreamReader,
    check_names,
    check_relationships,
    dependencies,
    presets,
    stream_rows,
)

PROTOCOL_VERSION: Final = "0.1.0"
_KINDS: Final = frozenset(get_args(InteractionKind))
# What Core says of a stream for the sake of consent; what is needed to store records may stand without it.
_CONSENT: Final = frozenset({"semantics", "selection", "display", "views", "relationships", "query"})


def manifest_shape(root: dict[str, Any]) -> Shape:
    """Say whether a connector manifest has a consent surface, by what its streams hold."""
    rows = root.get("streams")
    consent = isinstance(rows, list) and any(isinstance(row, dict) and row.keys() & _CONSENT for row in rows)
    return Shape.CONSENT if consent else Shape.PLAIN


def read_manifest(reader: Reader, root: dict[str, Any]) -> Declaration:
    """Read a connector manifest of either revision of the profile; faults go to the reader."""
    shape = manifest_shape(root)
    if root.get("protocol_version", PROTOCOL_VERSION) != PROTOCOL_VERSION:
        with reader.at("protocol_version"):
            reader.fault("protocol_version", f'must be "{PROTOCOL_VERSION}"')
    connector_id = reader.text(root, "connector_id", required=True) or ""
    streams = _streams(reader, root, shape)
    chosen = "selection_presets" if "selection_presets" in root else "profiles"
    return Declaration(
        connector_id=connector_id,
        version=str(root.get("version", "")),
        display_name=reader.text(root, "display_name") or connector_id,
        streams=streams,
        bindings=bindings(reader, root),
        human_interaction=human_interaction(reader, root),
        shape=shape,
        presets=presets(reader, root, chosen, streams),
    )


def bindings(reader: Reader, holder: dict[str, Any]) -> dict[str, Binding]:
    """Read `runtime_requirements.bindings` (CP-010, CP-011)."""
    requirements = reader.table(holder, "runtime_requirements")
    with reader.at("runtime_requirements"):
        table = reader.table(requirements, "bindings")
        found = {}
        for name, options in table.items():
            with reader.at("bindings", name):
                if name not in STANDARD_BINDINGS and "/" not in name:
                    reader.fault("reserved_name", "bare names are the profile's own; write it as example.com/name")
                if not isinstance(options, dict):
                    reader.fault("type", "must be an object with a boolean `required`")
                elif not isinstance(options.get("required"), bool):
                    reader.fault("required", "needs a boolean `required`")
                else:
                    extra = {key: value for key, value in options.items() if key != "required"}
                    found[name] = Binding(name, options["required"], extra)
    return found


def human_interaction(reader: Reader, holder: dict[str, Any]) -> frozenset[str]:
    """Read what a connector may ask of a person (CP-012)."""
    capabilities = reader.table(holder, "capabilities")
    with reader.at("capabilities"):
        kinds = reader.names(capabilities, "human_interaction") or ()
        if not _KINDS.issuperset(kinds):
            with reader.at("human_interaction"):
                reader.fault("enum", f"may name only {', '.join(sorted(_KINDS))}")
    return frozenset(kinds)


def _streams(reader: Reader, root: dict[str, Any], shape: Shape) -> dict[str, Stream]:
    rows: list[tuple[int, Stream]] = []
    edges: list[Edges] = []
    with reader.at("streams"):
        for index, row in stream_rows(reader, root):
            stream = StreamReader(reader, row, shape).stream()
            edge = dependencies(reader, row, stream.name)
            edges.append(edge)
            rows.append((index, covered(stream, edge, reader.flag(row, "incremental"))))
        places = check_names(reader, rows)
        streams = {stream.name: stream for _, stream in rows}
        check_relationships(reader, rows, streams)
        for name, rule, message in graph_faults(edges):
            with reader.at(places[name]):
                reader.fault(rule, message)
    return streams


def covered(stream: Stream, edge: Edges, incremental: bool | None) -> Stream:
    """Return a stream with what the Collection Profile says of it."""
    return replace(stream, incremental=incremental, state_stream=edge.state_stream, parent_streams=edge.parent_streams)
