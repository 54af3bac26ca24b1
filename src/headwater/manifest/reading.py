"""Reading a connector manifest: one pass, every reason to refuse at once, nothing started before it."""

from collections import Counter
from typing import Any, cast, get_args

import msgspec

from headwater import limits
from headwater.manifest.declaration import STANDARD_BINDINGS, Binding, Declaration, InteractionKind, Semantics, Stream
from headwater.manifest.faults import Fault, Reader, refusal
from headwater.manifest.graph import Edges, graph_faults
from headwater.manifest.schemas import schema_faults

_KINDS = frozenset(get_args(InteractionKind))
_SEMANTICS = frozenset(get_args(Semantics))


def read(document: bytes) -> Declaration:
    """Read a manifest, or raise `invalid_manifest` with every fault and its JSON pointer."""
    declaration, faults = examine(document)
    if declaration is None:
        raise refusal("invalid_manifest", "The manifest is refused; nothing was started.", faults)
    return declaration


def examine(document: bytes) -> tuple[Declaration | None, list[Fault]]:
    """Read a manifest and return the declaration, or None and the faults."""
    if len(document) > limits.MANIFEST_BYTES:
        return None, [Fault("", "size", f"is larger than {limits.MANIFEST_BYTES} bytes")]
    try:
        root = msgspec.json.decode(document)
    except (msgspec.DecodeError, RecursionError):
        return None, [Fault("", "json", "is not valid JSON")]
    if not isinstance(root, dict):
        return None, [Fault("", "type", "must be an object")]
    reader = Reader()
    declaration = _declaration(reader, root)
    return (None, reader.faults) if reader.faults else (declaration, [])


def _declaration(reader: Reader, root: dict[str, Any]) -> Declaration:
    if root.get("protocol_version", "0.1.0") != "0.1.0":
        with reader.at("protocol_version"):
            reader.fault("protocol_version", 'must be "0.1.0"')
    connector_id = reader.text(root, "connector_id", required=True)
    requirements = reader.table(root, "runtime_requirements")
    with reader.at("runtime_requirements"):
        bindings = _bindings(reader, reader.table(requirements, "bindings"))
    capabilities = reader.table(root, "capabilities")
    with reader.at("capabilities"):
        kinds = reader.names(capabilities, "human_interaction") or ()
        if not _KINDS.issuperset(kinds):
            with reader.at("human_interaction"):
                reader.fault("enum", f"may name only {', '.join(sorted(_KINDS))}")
    return Declaration(
        connector_id=connector_id or "",
        version=str(root.get("version", "")),
        display_name=reader.text(root, "display_name") or connector_id or "",
        streams=_streams(reader, root),
        bindings=bindings,
        human_interaction=frozenset(kinds),
    )


def _bindings(reader: Reader, table: dict[str, Any]) -> dict[str, Binding]:
    bindings = {}
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
                bindings[name] = Binding(name, options["required"], extra)
    return bindings


def _streams(reader: Reader, root: dict[str, Any]) -> dict[str, Stream]:
    rows = root.get("streams")
    with reader.at("streams"):
        if not isinstance(rows, list) or not rows:
            reader.fault("type", "must be a non-empty array")
            return {}
        if len(rows) > limits.STREAMS_PER_MANIFEST:
            reader.fault("size", f"has more than {limits.STREAMS_PER_MANIFEST} entries")
            return {}
        streams: dict[str, Stream] = {}
        edges: list[Edges] = []
        places: dict[str, int] = {}
        for index, row in enumerate(rows):
            with reader.at(index):
                if not isinstance(row, dict):
                    reader.fault("type", "must be an object")
                    continue
                stream, edge = _stream(reader, row)
                streams[stream.name] = stream
                edges.append(edge)
                places.setdefault(stream.name, index)
        for name, count in Counter(edge.stream for edge in edges).items():
            if count > 1 and name:
                with reader.at(places[name], "name"):
                    reader.fault("unique", "is declared more than once")
        for name, rule, message in graph_faults(edges):
            with reader.at(places[name]):
                reader.fault(rule, message)
        return streams


def _stream(reader: Reader, row: dict[str, Any]) -> tuple[Stream, Edges]:
    name = reader.text(row, "name", required=True) or ""
    if name == "*":
        with reader.at("name"):
            reader.fault("wildcard", "may not be the wildcard")
    semantics = reader.text(row, "semantics") or "mutable_state"
    if semantics not in _SEMANTICS:
        with reader.at("semantics"):
            reader.fault("enum", "must be append_only or mutable_state")
    parents = reader.names(row, "parent_streams")
    edge = Edges(
        stream=name,
        state_stream=reader.text(row, "state_stream"),
        parent_streams=parents or (),
        strategy=row.get("coverage_strategy"),
        both="state_stream" in row and "parent_streams" in row,
        empty=parents == (),
    )
    stream = Stream(
        name=name,
        semantics=cast(Semantics, semantics),
        schema=_schema(reader, row),
        primary_key=_primary_key(reader, row),
        cursor_field=reader.text(row, "cursor_field"),
        consent_time_field=reader.text(row, "consent_time_field"),
        incremental=reader.flag(row, "incremental"),
        state_stream=edge.state_stream,
        parent_streams=edge.parent_streams,
        description=row["description"] if isinstance(row.get("description"), str) else "",
    )
    _check_fields(reader, stream)
    return stream, edge


def _schema(reader: Reader, row: dict[str, Any]) -> dict[str, Any] | None:
    if "schema" not in row:
        return None
    schema = row["schema"]
    with reader.at("schema"):
        if not isinstance(schema, dict):
            reader.fault("type", "must be an object")
            return None
        for message in schema_faults(schema):
            reader.fault("schema", message)
        if not isinstance(schema.get("properties", {}), dict) or not isinstance(schema.get("required", []), list):
            return None
    return schema


def _primary_key(reader: Reader, row: dict[str, Any]) -> tuple[str, ...]:
    if isinstance(row.get("primary_key"), str):
        row = {"primary_key": [row["primary_key"]]}
    names = reader.names(row, "primary_key")
    if names is not None and (not names or len(set(names)) < len(names)):
        with reader.at("primary_key"):
            reader.fault("primary_key", "must name at least one field, and none twice")
    return names or ()


def _check_fields(reader: Reader, stream: Stream) -> None:
    if not stream.fields:
        return
    named = {"cursor_field": stream.cursor_field, "consent_time_field": stream.consent_time_field}
    for member, field in [*named.items(), *(("primary_key", name) for name in stream.primary_key)]:
        if field is not None and field not in stream.fields:
            with reader.at(member):
                reader.fault("unknown_field", "names a field that the schema does not have")
