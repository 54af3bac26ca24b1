"""What an integration's process says first: the hooks that it has, and the operations that its code does.

It is foreign, and read with the care of a manifest: a closed schema of bounded size, every fault at its place.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from headwater.manifest.document import parse
from headwater.manifest.faults import Fault, Reader
from headwater.manifest.operation import SAID, Effect, Operation, check_walk, read_each, read_said
from headwater.manifest.schemas import check_schema
from headwater.manifest.walk import Walk, read_walk

_MEMBERS: Final = SAID | {"input", "output"}


class CodeOperation(Operation, frozen=True, kw_only=True):
    """An operation that an integration's code does. `input` and `output` are its JSON schemas."""

    input: Mapping[str, Any]
    output: Mapping[str, Any]


class Hello(Struct, frozen=True):
    """What a process has. `said` is the document that it was read from."""

    hooks: frozenset[str]
    operations: Mapping[str, CodeOperation]
    said: Mapping[str, Any]


def examine_hello(document: bytes) -> tuple[Hello | None, list[Fault]]:
    """Read a process's first line, or what was kept of it, and return what it has, or None and the faults."""
    root, faults = parse(document)
    if faults:
        return None, faults
    reader = Reader()
    reader.no_others(root, frozenset({"hooks", "operations"}))
    hooks = frozenset(reader.names(root, "hooks", required=True) or ())
    hello = Hello(hooks, read_each(reader, root, _operation), root)
    return (None, reader.faults) if reader.faults else (hello, [])


def _operation(reader: Reader, name: str, row: dict[str, Any]) -> CodeOperation:
    reader.no_others(row, _MEMBERS)
    effect: Effect = "write" if reader.choice(row, "effect", ("read", "write")) == "write" else "read"
    given = _schema(reader, row, "input")
    if given.get("type") != "object":
        with reader.at("input", "type"):
            reader.fault("type", "must be object: an operation is given one JSON object")
    return CodeOperation(
        **read_said(reader, name, row),
        effect=effect,
        input=given,
        output=_schema(reader, row, "output"),
        walk=_walk(reader, row, effect, given),
    )


def _walk(reader: Reader, row: dict[str, Any], effect: Effect, given: Mapping[str, Any]) -> Walk | None:
    """Read how pages follow one another: by members of the input."""
    walk, members = read_walk(reader, row), given.get("properties")
    if walk is not None:
        check_walk(reader, walk, effect, set(members) if isinstance(members, dict) else set())
    return walk


def _schema(reader: Reader, row: dict[str, Any], member: str) -> Mapping[str, Any]:
    schema = reader.table(row, member, required=True)
    with reader.at(member):
        check_schema(reader, schema)
    return schema
