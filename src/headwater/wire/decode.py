"""Lines to messages.

Two decoders read each line. msgspec gives a typed message with the record's data as the bytes that came;
jiter gives the same line as plain values and is the one that sees a repeated member. Neither costs more
than a few microseconds, and together they leave nothing ambiguous.

A line falls into one of three kinds:

- a message;
- an `Unreadable` record: JSON by the grammar (RFC 8259), and a RECORD by its members, but with content
  that has no one meaning or no exact form here: a repeated member, half of a surrogate pair, nesting
  without end. The run goes on without it;
- anything else, which raises `NotAMessage` and ends the run.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

import jiter
import msgspec

from headwater.wire.messages import ConnectorMessage, Record, State

_decode = msgspec.json.Decoder(ConnectorMessage).decode
_members = jiter.from_json
_DIGITS = 4_000
_LEVELS = 100
# An unterminated string runs to the end of the text, or its every quote would be tried as a beginning.
_DEEP = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u[Dd][89ABab]..\\u[Dd][C-Fc-f]..|(?P<lone>u[Dd][89A-Fa-f]..)|.)")


class NotAMessage(Exception):
    """The line is not a message of the profile: a protocol violation. `rule` is a stable name."""

    def __init__(self, rule: str, message: str) -> None:
        self.rule = rule
        self.message = message
        super().__init__(message)


@dataclass(frozen=True)
class Unreadable:
    """A RECORD whose content cannot be read exactly. `reason` is a stable name."""

    stream: str
    reason: str


def decode(line: bytes) -> tuple[ConnectorMessage | Unreadable, dict[str, Any]]:
    """Read one line, without its LF.

    Return the message and the line as plain values (empty for `Unreadable`).
    Raise `NotAMessage` for anything that is neither a message nor an unreadable record.
    """
    try:
        message = _decode(line)
        members = _members(line, catch_duplicate_keys=True, cache_mode="keys")
    except (ValueError, RecursionError) as error:
        return _without_exact_reading(line, error), {}
    if type(message) is Record:
        if type(members["data"]) is not dict:
            raise NotAMessage("record_data", "A RECORD has data that is not an object.")
    elif type(message) is State and type(members["cursor"]) is not dict:
        raise NotAMessage("state_cursor", "A STATE has a cursor that is not an object.")
    return message, members


def _without_exact_reading(line: bytes, error: Exception) -> Unreadable:
    text = _utf8(line)
    members, reason = _loosely(text, error)
    if not isinstance(members, dict) or not isinstance(members.get("type"), str):
        raise NotAMessage("not_a_message", "A line is not a JSON object with a string `type`.")
    if members["type"] == "RECORD":
        _check_envelope(members)
        return Unreadable(members["stream"], reason or "unreadable_value")
    raise _refusal(members["type"], reason, error) from error


def _utf8(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotAMessage("not_utf8", "A line is not valid UTF-8.") from error


def _loosely(text: str, error: Exception) -> tuple[Any, str]:
    """Read JSON by the grammar alone, and name what the exact decoders would not take."""
    try:
        members = _parsed(text)
    except RecursionError:
        return _parsed_by_levels(text), "nested_too_deep"
    if isinstance(error, RecursionError) or "recursion limit" in str(error):
        return members, "nested_too_deep"
    if "Detected duplicate key" in str(error):
        return members, "repeated_member"
    return members, "lone_surrogate" if _has_lone_surrogate(text) else ""


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant, parse_int=_integer)
    except NotAMessage:
        raise
    except ValueError as cause:
        raise NotAMessage("not_json", "A line is not JSON.") from cause


def _no_constant(name: str) -> NoReturn:
    raise NotAMessage("not_json", f"A line is not JSON: it holds {name}.")


def _integer(digits: str) -> int:
    """Read an integer; one that is too long to be read stands for itself by being too large for anything."""
    return int(digits) if len(digits) <= _DIGITS else 10**_DIGITS


def _has_lone_surrogate(text: str) -> bool:
    return any(escape["lone"] for escape in _ESCAPE.finditer(text))


def _parsed_by_levels(text: str) -> Any:
    """Read JSON of any depth, some levels at a time: what lies deeper is read by itself, and null put for it."""
    outer: list[list[str]] = []
    kept: list[str] = []
    depth = copied = 0
    for token in _DEEP.finditer(text):
        mark = token.group()
        if mark in "[{":
            if depth and depth % _LEVELS == 0:
                outer.append([*kept, text[copied : token.start()], "null"])
                kept, copied = [], token.start()
            depth += 1
        elif mark in "]}":
            depth -= 1
            if depth % _LEVELS == 0 and outer:
                _parsed("".join([*kept, text[copied : token.end()]]))
                kept, copied = outer.pop(), token.end()
    if outer:
        raise NotAMessage("not_json", "A line is not JSON.")
    return _parsed("".join([*kept, text[copied:]]))


def _check_envelope(members: dict[str, Any]) -> None:
    """Hold the members of an unreadable record to the shape of a RECORD."""
    if not isinstance(members.get("data"), dict):
        raise NotAMessage("record_data", "A RECORD has data that is not an object.")
    named = ("type", "stream", "key", "emitted_at", "op")
    envelope: dict[str, Any] = {name: members[name] for name in named if name in members}
    envelope["data"] = msgspec.Raw(b"{}")
    try:
        msgspec.convert(envelope, Record)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # an `op` may hold half of a surrogate pair
        raise _refusal("RECORD", "", error) from error


def _refusal(kind: str, reason: str, error: Exception) -> NotAMessage:
    """Name the rule that a message of a known or unknown type breaks."""
    if kind not in _KINDS:
        return NotAMessage("unknown_type", "A message has a type that the Collection Profile does not have.")
    if reason:
        words = {"repeated_member": "names a member twice", "lone_surrogate": "holds half of a surrogate pair"}
        return NotAMessage(reason, f"A {kind} {words.get(reason, 'is nested too deep')}.")
    place = re.search(r"`\$\.?([A-Za-z_.]*)", str(error))
    missing = re.search(r"required field `(\w+)`", str(error))
    member = missing.group(1) if missing else place.group(1) if place else ""
    where = f" at `{member}`" if member else ""
    return NotAMessage("invalid_message", f"A {kind} does not have the shape of its type{where}.")


_KINDS = frozenset(kind.__struct_config__.tag for kind in ConnectorMessage.__args__)
