"""A definition (`connectors-definition/1`): what a provider can be asked over HTTP, in a table an operation.

It is written in TOML or JSON, with one closed schema that is this project's own: the contract names the format and not
its members (CLI-1095). Every reason to refuse one is told at once, each with its place.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from headwater import limits
from headwater.manifest.document import is_too_deep, parse
from headwater.manifest.faults import Fault, Reader, refusal
from headwater.manifest.guard import NONE, Guard, check_looks, read_guard
from headwater.manifest.operation import SAID, Effect, Operation, check_walk, read_each, read_said
from headwater.manifest.parameters import BODY, Parameter, read_parameters
from headwater.manifest.schemas import check_schema
from headwater.manifest.walk import Walk, read_walk

FORMAT: Final = "connectors-definition/1"
Response = Literal["json", "text"]

_READS: Final = ("GET",)
_WRITES: Final = ("POST", "PUT", "PATCH", "DELETE")
_PATH: Final = re.compile(r"(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2}|\{[A-Za-z0-9_]+\})*)+")
_PLACEHOLDER: Final = re.compile(r"\{([A-Za-z0-9_]+)\}")
_HEADER: Final = re.compile(r"[A-Za-z0-9-]+")
_HEADER_VALUE: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_DOTS: Final = re.compile(r"(?:.*/)?(?:\.|%2e){1,2}(?:/.*)?", re.IGNORECASE)
# What the host says itself: where a request goes, what it does, how long it is, and who sends it.
_RESERVED: Final = re.compile(
    r"authorization|cookie|host|connection|content-.*|transfer-encoding|te|upgrade|accept-encoding|proxy-.*|forwarded|x-forwarded-.*"
    r"|expect|trailer|keep-alive|x-http-method|x-http-method-override|x-method-override",
    re.IGNORECASE,
)
_ROOT: Final = frozenset({"format", "title", "headers", "operations"})
_MEMBERS: Final = SAID | {"reviewed_read", "method", "path", "params", "query", "body", "output", "response"}
_OF_A_WRITE: Final = frozenset({"guard", "conflict_status"})


class DefinedOperation(Operation, frozen=True, kw_only=True):
    """An operation that is one request.

    `query` is sent always and hidden from the input. `body` and `output` are JSON schemas of what is sent and of what
    a good answer holds; None sends none, and takes any. `guard` stands around a write; `conflict_status` is what the
    provider answers one with where the thing was changed meanwhile.
    """

    method: str
    path: str
    params: Sequence[Parameter] = ()
    query: Mapping[str, str] = {}
    body: Mapping[str, Any] | None = None
    output: Mapping[str, Any] | None = None
    response: Response = "json"
    guard: Guard = NONE
    conflict_status: int | None = None


class Definition(Struct, frozen=True):
    """What a provider can be asked. `root` is the document that it was read from, for its digest."""

    operations: Mapping[str, DefinedOperation]
    headers: Mapping[str, str]
    root: Mapping[str, Any]
    title: str = ""


NOTHING: Final = Definition({}, {}, {})
"""What a connector defines that defines no operation."""


def read_definition(text: bytes, *, toml: bool) -> Definition:
    """Read a definition, or raise `invalid_manifest` with every fault and its place."""
    definition, faults = examine_definition(text, toml=toml)
    if definition is None:
        raise refusal("invalid_manifest", "The definition is refused; nothing was sent.", faults)
    return definition


def examine_definition(text: bytes, *, toml: bool) -> tuple[Definition | None, list[Fault]]:
    """Read a definition and return it, or None and the faults."""
    root, faults = document_of(text, toml=toml)
    if faults:
        return None, faults
    reader = Reader()
    definition = read_operations(reader, root)
    return (None, reader.faults) if reader.faults else (definition, [])


def document_of(text: bytes, *, toml: bool) -> tuple[dict[str, Any], list[Fault]]:
    """Return the object that TOML or JSON holds and no fault, or nothing and why it cannot be read."""
    return _toml(text) if toml else parse(text)


def _toml(text: bytes) -> tuple[dict[str, Any], list[Fault]]:
    if len(text) > limits.MANIFEST_BYTES:
        return {}, [Fault("", "size", f"is larger than {limits.MANIFEST_BYTES} bytes")]
    try:
        root = tomllib.loads(text.decode())
        json.dumps(root, allow_nan=False)  # what is shown of it is JSON, which has no dates and no infinity
    except (ValueError, TypeError, RecursionError):
        return {}, [Fault("", "toml", "is not valid TOML")]
    if is_too_deep(root):
        return {}, [Fault("", "depth", f"is nested deeper than {limits.NESTING_LEVELS} levels")]
    return root, []


def read_operations(reader: Reader, root: dict[str, Any], also: frozenset[str] = frozenset()) -> Definition:
    """Read what can be asked by a document that may have other members `also`; faults go to the reader."""
    reader.no_others(root, _ROOT | also)
    reader.choice(root, "format", (FORMAT,), required=True)
    operations = read_each(reader, root, _operation)
    _check_guards(reader, operations)
    title = reader.plain(root, "title", limits.LABEL_CHARACTERS) if "title" in root else ""
    return Definition(operations, _headers(reader, root), root, title)


def _headers(reader: Reader, root: dict[str, Any]) -> Mapping[str, str]:
    headers = reader.table(root, "headers")
    with reader.at("headers"):
        for name, value in headers.items():
            fits = isinstance(value, str) and len(value) <= limits.URL_CHARACTERS and _HEADER_VALUE.fullmatch(value)
            if not fits or not _HEADER.fullmatch(name) or _RESERVED.fullmatch(name):
                with reader.at(name):
                    reader.fault("header", "must be a header that the host does not write itself, in printable ASCII")
    return headers


def _check_guards(reader: Reader, operations: Mapping[str, DefinedOperation]) -> None:
    reads = {name: one.params for name, one in operations.items() if one.effect == "read" and one.body is None}
    taken = {
        name: (frozenset(param.name for param in params), frozenset(param.name for param in params if param.required))
        for name, params in reads.items()
    }
    for name, one in operations.items():
        with reader.at("operations", name):
            check_looks(reader, one.guard, taken)


def _operation(reader: Reader, name: str, row: dict[str, Any]) -> DefinedOperation:
    effect = _effect(reader, row)
    reader.no_others(row, _MEMBERS | (_OF_A_WRITE if effect == "write" else frozenset()))
    path = reader.shaped(row, "path", _PATH, "must be a path such as /repos/{owner}/{repo}")
    if _DOTS.fullmatch(path):
        with reader.at("path"):
            reader.fault("shape", "must lead down: . and .. are no names")
    params = read_parameters(reader, row, _PLACEHOLDER.findall(path))
    query = _query(reader, row, params)
    return DefinedOperation(
        **read_said(reader, name, row),
        effect=effect,
        method=row.get("method", "GET"),
        path=path,
        params=params,
        query=query,
        body=_schema(reader, row, "body"),
        output=_schema(reader, row, "output"),
        response=_response(reader, row),
        walk=_walk(reader, row, effect, params),
        guard=_guard(reader, row, params),
        conflict_status=_conflict_status(reader, row),
    )


def _guard(reader: Reader, row: dict[str, Any], params: Sequence[Parameter]) -> Guard:
    if "guard" not in row:
        return NONE
    return read_guard(reader, row, frozenset(param.name for param in params) | ({BODY} & row.keys()))


def _conflict_status(reader: Reader, row: dict[str, Any]) -> int | None:
    status = row.get("conflict_status")
    if status is None or (type(status) is int and 400 <= status < 500):
        return status
    with reader.at("conflict_status"):
        reader.fault("status", "must be a status from 400 to 499")
    return None


def _walk(reader: Reader, row: dict[str, Any], effect: Effect, params: Sequence[Parameter]) -> Walk | None:
    """Read how pages follow one another: by parameters of the query."""
    walk = read_walk(reader, row)
    if walk is not None:
        check_walk(reader, walk, effect, {param.name for param in params if param.place == "query"})
    return walk


def _effect(reader: Reader, row: dict[str, Any]) -> Effect:
    """Read what an operation does. Only GET reads by itself; of a POST that has to be said (`reviewed_read`)."""
    effect = reader.choice(row, "effect", ("read", "write")) or "read"
    method = reader.choice(row, "method", (*_READS, *_WRITES)) or "GET"
    reviewed = reader.flag(row, "reviewed_read")
    reads, gets, by_post = effect == "read", method in _READS, bool(reviewed) and method == "POST"
    rules = (
        ("method", reads or not gets, "must be POST, PUT, PATCH or DELETE for a write"),
        ("method", not reads or gets or by_post, "must be GET for a read, or POST with reviewed_read = true"),
        ("reviewed_read", reviewed is None or (reads and method == "POST"), "stands with a read by POST only"),
        ("body", "body" not in row or not gets, "cannot be sent with GET"),
    )
    for member, fits, message in rules:
        if not fits:
            with reader.at(member):
                reader.fault("effect", message)
    return "read" if reads else "write"


def _query(reader: Reader, row: dict[str, Any], params: Sequence[Parameter]) -> Mapping[str, str]:
    query = reader.table(row, "query")
    sent = {param.wire for param in params if param.place == "query"}
    with reader.at("query"):
        for name, value in query.items():
            with reader.at(name):
                if not isinstance(value, str):
                    reader.fault("type", "must be a string")
                if name in sent:
                    reader.fault("repeated", "is a parameter too")
    return query


def _response(reader: Reader, row: dict[str, Any]) -> Response:
    return "text" if reader.choice(row, "response", ("json", "text")) == "text" else "json"


def _schema(reader: Reader, row: dict[str, Any], member: str) -> Mapping[str, Any] | None:
    if member not in row:
        return None
    schema = reader.table(row, member)
    with reader.at(member):
        check_schema(reader, schema)
    return schema
