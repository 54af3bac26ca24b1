"""From an operation and what a caller gave to the one request that asks it."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from headwater import limits
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.definition import DefinedOperation
from headwater.manifest.parameters import BODY, Parameter
from headwater.operate.schemas import as_text

_encode: Final = msgspec.json.Encoder(decimal_format="number").encode
_DOTS: Final = (".", "..")


class Request(Struct, frozen=True):
    """What is sent below the endpoint: a path with its query, headers, and the body where there is one."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""


def planned(operation: DefinedOperation, headers: Mapping[str, str], given: Mapping[str, Any]) -> Request:
    """Return the request for what its schema has admitted. Raise `invalid_input` for what a request cannot say.

    Text in the path is one segment of it, whatever it holds.
    """
    path = operation.path
    for param in operation.params:
        if param.place == "path":
            path = path.replace(f"{{{param.wire}}}", _segment(param, given[param.name]))
    query = [*operation.query.items(), *_pairs(operation, given)]
    target = path + ("?" + "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in query) if query else "")
    if len(target) > limits.TARGET_CHARACTERS:
        raise unfit()
    if operation.body is None:
        return Request(operation.method, target, headers)
    return Request(
        operation.method, target, {**headers, "content-type": "application/json"}, _encode(given.get(BODY, {}))
    )


def _segment(param: Parameter, value: object) -> str:
    text = _bounded(param, value)
    if text in _DOTS or not text:
        raise unfit()
    return _quoted(text)


def _pairs(operation: DefinedOperation, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for param in operation.params:
        if param.place != "query":
            continue
        value = given.get(param.name, param.default)
        if value is None:
            continue
        for one in value if isinstance(value, list) else [value]:
            yield param.wire, _bounded(param, one)


def _bounded(param: Parameter, value: object) -> str:
    """Return a value as it is sent. One that came as text is held to the same bounds as a number."""
    if isinstance(value, Decimal) and abs(value.adjusted()) > limits.TARGET_CHARACTERS:
        raise unfit()  # a few letters, such as 1e999999999, and a gigabyte of digits
    text = as_text(value)
    if param.kind in ("integer", "number") and isinstance(value, str):
        number = Decimal(value)
        if (param.minimum is not None and number < param.minimum) or (
            param.maximum is not None and number > param.maximum
        ):
            raise unfit()
    return text


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="strict")


def unfit(why: str = "") -> HeadwaterError:
    """Refuse an input that an operation does not take; `why` names what it declares, and nothing that was given."""
    message = f"The input is not what the operation takes{why}; --describe shows its schema."
    return refuse("invalid_input", message, safe="Nothing was sent.", field="input")
