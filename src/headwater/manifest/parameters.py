"""The parameters of an operation: what a caller may give, by which name it is sent, and within which bounds."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from headwater import limits
from headwater.manifest.faults import Reader

Place = Literal["path", "query"]
Kind = Literal["string", "integer", "number", "boolean"]
Scalar = str | int | float | bool

_KINDS: Final = ("string", "integer", "number", "boolean")
_NAME: Final = re.compile(r"[^\s\x00-\x1f\x7f]{1,128}")
_MEMBERS: Final = frozenset(
    {"in", "type", "description", "required", "repeated", "wire", "values", "minimum", "maximum", "default"}
)
BODY: Final = "body"
"""The member of an input that is sent as the request's body; no parameter is called like it."""


class Parameter(Struct, frozen=True):
    """One thing that a caller may give. `wire` is what it is called in the request.

    `repeated` takes several, each sent in a pair of its own. `values`, `minimum` and `maximum` narrow what the provider
    would take; `default` is sent where nothing is given.
    """

    name: str
    place: Place
    kind: Kind
    wire: str
    description: str = ""
    required: bool = False
    repeated: bool = False
    values: Sequence[Scalar] = ()
    minimum: int | float | None = None
    maximum: int | float | None = None
    default: Scalar | None = None


def read_parameters(reader: Reader, row: dict[str, Any], placeholders: Sequence[str]) -> tuple[Parameter, ...]:
    """Read the table `params` of an operation whose path has these placeholders; each needs its parameter."""
    table = reader.table(row, "params")
    with reader.at("params"):
        if len(table) > limits.PARAMETERS:
            reader.fault("count", f"must be at most {limits.PARAMETERS} parameters")
        found = tuple(_parameters(reader, table, placeholders))
    paths = {param.wire for param in found if param.place == "path"}
    if not set(placeholders) <= paths or len(set(placeholders)) < len(placeholders):
        with reader.at("path"):
            reader.fault("placeholder", "needs one parameter in the path for each {name}, and each {name} once")
    return found


def _parameters(reader: Reader, table: dict[str, Any], placeholders: Sequence[str]) -> Iterator[Parameter]:
    sent: set[tuple[str, str]] = set()
    for name in list(table)[: limits.PARAMETERS]:
        param = reader.table(table, name)
        with reader.at(name):
            if name == BODY or not _NAME.fullmatch(name):
                reader.fault("shape", "must be a name without blanks, and not body")
            read = _parameter(reader, name, param)
            if read.place == "path" and read.wire not in placeholders:
                reader.fault("placeholder", "stands in no {name} of the path")
            if (read.place, read.wire) in sent:
                reader.fault("repeated", "is sent by the name of another parameter")
            sent.add((read.place, read.wire))
            yield read


def _parameter(reader: Reader, name: str, row: dict[str, Any]) -> Parameter:
    reader.no_others(row, _MEMBERS)
    place = reader.choice(row, "in", ("path", "query")) or "query"
    kind = reader.choice(row, "type", _KINDS) or "string"
    required, repeated = reader.flag(row, "required"), bool(reader.flag(row, "repeated"))
    if place == "path" and (required is False or repeated or "default" in row):
        reader.fault("placeholder", "is in the path, and so required, single and without a default")
    if place == "query" and required and "default" in row:
        reader.fault("default", "is required, and so needs no default")
    return Parameter(
        name=name,
        place="path" if place == "path" else "query",
        kind=kind,  # type: ignore[arg-type]  # `choice` lets through nothing else
        wire=reader.text(row, "wire") or name,
        description=reader.plain(row, "description", limits.DESCRIPTION_CHARACTERS) if "description" in row else "",
        required=place == "path" or bool(required),
        repeated=repeated,
        values=_values(reader, row, kind),
        minimum=_bound(reader, row, "minimum", kind),
        maximum=_bound(reader, row, "maximum", kind),
        default=_default(reader, row, kind),
    )


def _values(reader: Reader, row: dict[str, Any], kind: str) -> Sequence[Scalar]:
    values = row.get("values", ())
    if values == () or (isinstance(values, list) and values and all(is_of(kind, value) for value in values)):
        return tuple(values)
    with reader.at("values"):
        reader.fault("type", f"must be an array of {kind} values")
    return ()


def _bound(reader: Reader, row: dict[str, Any], member: str, kind: str) -> int | float | None:
    value = row.get(member)
    if value is None or (kind in ("integer", "number") and is_of(kind, value)):
        return value
    with reader.at(member):
        reader.fault("type", "must be a number, for a parameter that is one")
    return None


def _default(reader: Reader, row: dict[str, Any], kind: str) -> Scalar | None:
    value = row.get("default")
    if value is None or is_of(kind, value):
        return value
    with reader.at("default"):
        reader.fault("type", f"must be of the type {kind}")
    return None


def is_of(kind: str, value: object) -> bool:
    """Whether a value is of a parameter's type."""
    match kind:
        case "integer":
            return type(value) is int
        case "number":
            return type(value) in (int, float)
        case "boolean":
            return type(value) is bool
    return isinstance(value, str)
