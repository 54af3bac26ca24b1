"""Reading a declaration of any shape: one pass, every reason to refuse at once, nothing started before it.

What a document is shows in what it holds: `connector_id` makes it a connector manifest, `source` a source declaration.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from headwater import limits
from headwater.manifest.connector_manifest import read_manifest
from headwater.manifest.declaration import Declaration
from headwater.manifest.document import children, parse
from headwater.manifest.faults import Fault, Reader, refusal
from headwater.manifest.source_declaration import read_source

# Whose data it is belongs to a selection and a grant, never to a declaration (CORE-123).
_HANDLES: Final = frozenset({"instance_id", "instance_ids", "connector_instance_id", "connection_id", "connection_ids"})
# Members whose names are fields of records, or somebody else's.
_NOT_OURS: Final = frozenset({"schema", "range_filters", "extensions"})


def read(document: bytes) -> Declaration:
    """Read a connector manifest or a source declaration, or raise `invalid_manifest` with every fault and its place."""
    declaration, faults = examine(document)
    if declaration is None:
        raise refusal("invalid_manifest", "The manifest is refused; nothing was started.", faults)
    return declaration


def examine(document: bytes) -> tuple[Declaration | None, list[Fault]]:
    """Read a document and return the declaration, or None and the faults."""
    root, faults = parse(document)
    if faults:
        return None, faults
    reader = Reader()
    declaration = _declaration(reader, root)
    for pointer in islice(_handles(root), limits.FAULTS_PER_DOCUMENT):
        reader.faults.append(Fault(pointer, "owner_handle", "names an account or instance of an owner"))
    return (None, reader.faults) if reader.faults else (declaration, [])


def _declaration(reader: Reader, root: dict[str, Any]) -> Declaration | None:
    manifest, source = "connector_id" in root, "source" in root
    if manifest and source:
        with reader.at("connector_id"):
            reader.fault("both", "stands beside `source`: a document is a connector manifest or a source declaration")
        return None
    if not manifest and not source and "declaration_version" not in root:
        with reader.at("connector_id"):
            reader.fault("required", "is missing, and so is `source`: this is no manifest and no source declaration")
        return None
    return read_manifest(reader, root) if manifest else read_source(reader, root)


def _handles(root: dict[str, Any]) -> Iterator[str]:
    """Yield the place of each member that names an owner's account or instance."""
    waiting: list[tuple[str, Any]] = [("", root)]
    while waiting:
        pointer, node = waiting.pop()
        for step, value in children(node):
            if isinstance(node, dict) and step in _HANDLES:
                yield f"{pointer}/{step}"
            elif step not in _NOT_OURS:
                waiting.append((f"{pointer}/{step}", value))
