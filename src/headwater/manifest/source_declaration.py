"""Source declarations, as PDPP Core has them: what can be consented to, whoever collects it and however."""

import re
from typing import Any, Final, cast

from headwater.manifest.connector_manifest import PROTOCOL_VERSION, bindings, covered, human_interaction
from headwater.manifest.declaration import Declaration, Shape, Stream
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

# The extension in which a source declaration carries what a connector needs to be run.
COLLECTION_PROFILE: Final = "https://pdpp.dev/profile/collection"
_ABSOLUTE_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[!#$&-;=?-Z\[\]_a-z~]|%[0-9A-Fa-f]{2})+")
_KINDS: Final = ("connector", "provider_native")


def read_source(reader: Reader, root: dict[str, Any]) -> Declaration:
    """Read a source declaration; faults go to the reader."""
    if root.get("protocol_version") != PROTOCOL_VERSION:
        with reader.at("protocol_version"):
            reader.fault("protocol_version", f'must be "{PROTOCOL_VERSION}"')
    kind, source = _source(reader, root)
    publisher = reader.table(root, "publisher", required=True)
    with reader.at("publisher"):
        published_by = _uri(reader, publisher, "id")
    display = reader.table(root, "display", required=True)
    with reader.at("display"):
        name = reader.text(display, "name", required=True) or ""
    extensions = _extensions(reader, root)
    version = reader.text(root, "declaration_version", required=True) or ""
    streams = _streams(reader, root)
    with reader.at("extensions"):
        collection = reader.table(extensions, COLLECTION_PROFILE)
    with reader.at("extensions", COLLECTION_PROFILE):
        streams = _collected(reader, collection, streams)
        needed, asked = bindings(reader, collection), human_interaction(reader, collection)
    return Declaration(
        connector_id=source,
        version=version,
        display_name=name,
        streams=streams,
        bindings=needed,
        human_interaction=asked,
        shape=Shape.SOURCE,
        source_kind=cast(Any, kind),
        publisher=published_by,
        presets=presets(reader, root, "selection_presets", streams),
        extensions=extensions,
    )


def _source(reader: Reader, root: dict[str, Any]) -> tuple[str, str]:
    """Read `source`, which holds `kind` and `id` and nothing else (CORE-101)."""
    source = reader.table(root, "source", required=True)
    with reader.at("source"):
        for name in sorted(source.keys() - {"kind", "id"}):
            with reader.at(name):
                reader.fault("unknown_member", "is not a member of a source")
        return reader.choice(source, "kind", _KINDS, required=True) or "", _uri(reader, source, "id")


def _uri(reader: Reader, holder: dict[str, Any], name: str) -> str:
    text = reader.text(holder, name, required=True) or ""
    if text and not _ABSOLUTE_URI.fullmatch(text):
        with reader.at(name):
            reader.fault("uri", "must be an absolute URI")
    return text


def _extensions(reader: Reader, root: dict[str, Any]) -> dict[str, Any]:
    """Read the extensions' names; what they hold is theirs (CORE-121)."""
    extensions = reader.table(root, "extensions")
    for name in extensions:
        if not _ABSOLUTE_URI.fullmatch(name):
            with reader.at("extensions", name):
                reader.fault("uri", "an extension is named by the absolute URI of its profile")
    return extensions


def _streams(reader: Reader, root: dict[str, Any]) -> dict[str, Stream]:
    with reader.at("streams"):
        read = [(index, StreamReader(reader, row, Shape.SOURCE).stream()) for index, row in stream_rows(reader, root)]
        check_names(reader, read)
        streams = {stream.name: stream for _, stream in read}
        check_relationships(reader, read, streams)
    return streams


def _collected(reader: Reader, collection: dict[str, Any], streams: dict[str, Stream]) -> dict[str, Stream]:
    """Return the streams with what the Collection Profile's extension says of them."""
    found = dict(streams)
    edges: dict[str, Edges] = {name: Edges(name) for name in streams}
    places: dict[str, int] = {}
    for index, row in enumerate(reader.rows(collection, "streams")):
        name = reader.text(row, "name", required=True) or ""
        if name not in streams or name in places:
            with reader.at("name"):
                reader.fault("unknown_stream", "must name each declared stream at most once")
            continue
        places[name] = index
        edges[name] = dependencies(reader, row, name)
        found[name] = covered(streams[name], edges[name], reader.flag(row, "incremental"))
    for name, rule, message in graph_faults(list(edges.values())):
        with reader.at("streams", places.get(name, 0)):
            reader.fault(rule, message)
    return found
