"""Shaping: what is printed of a result, by `--fields` and `--each`. The result itself stays as it was (CLI-602)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from headwater.operate.paths import NOTHING, Fields, Path, Step, picked, reached
from headwater.operate.results import content, failed_status, is_catalog, kept


class Lines(Struct, frozen=True):
    """Records as they are printed, one a line, and the paths that at least one of them has."""

    values: Sequence[Any]
    had: frozenset[Path] = frozenset()


class Listed(Struct, frozen=True):
    """What `--each` prints: the lines, then the result of the envelope that closes them."""

    lines: Sequence[Any]
    result: Mapping[str, Any]


def shaped(answer: Mapping[str, Any], fields: Fields | None) -> Mapping[str, Any]:
    """Return the members that fields name of an answer, an InvokeShaped; the answer itself where nothing shapes it."""
    result = answer["result"]
    if fields is None or failed_status(result) is not None:
        return answer
    members, had = _members(fields, result, _start)
    missing = fields.unmatched(had)
    return members | ({"missing": missing} if missing else {}) | kept(answer)


def listed(answer: Mapping[str, Any], each: Path, fields: Fields | None) -> Listed:
    """Return each element of the array that a path names, and what closes them.

    A provider's failure is told whole, without a line (CLI-618, CLI-632). Of an empty array no field is missing: there
    was no element to have it.
    """
    result = answer["result"]
    if failed_status(result) is not None:
        return Listed((), answer)
    array = reached(_start(result, each.steps[0]), each.steps)
    if not isinstance(array, list):
        return Listed((), {"missing": [each.written], "records": 0} | kept(answer))
    lines = lines_of(array, fields)
    missing = fields.unmatched(lines.had) if fields and array else []
    return Listed(lines.values, ({"missing": missing} if missing else {}) | {"records": len(array)} | kept(answer))


def lines_of(records: Sequence[Any], fields: Fields | None) -> Lines:
    """Shape records, each by itself: whole without fields. One that has none of them is an empty object."""
    if fields is None:
        return Lines(records)
    one_by_one = [_members(fields, record, _itself) for record in records]
    return Lines([members for members, _ in one_by_one], frozenset().union(*(had for _, had in one_by_one)))


_Start = Callable[[Any, Step], Any]
"""Where in a value a path begins, by its first step."""


def _members(fields: Fields, value: Any, start: _Start) -> tuple[dict[str, Any], frozenset[Path]]:
    """Return the members that fields print of a value, in the order of their names, and the paths that it has."""
    values = {path: reached(start(value, path.steps[0]), path.steps) for path in fields.paths}
    had = frozenset(path for path, found in values.items() if found is not NOTHING)
    members: dict[str, Any] = {path.alias: values[path] for path in had if path.alias is not None}
    for name in {path.name for path in had if path.alias is None}:
        members |= picked(start(value, name), {name: fields.tree[name]})
    return dict(sorted(members.items())), had


def _itself(record: Any, _first: Step) -> Any:
    return record


def _start(result: Any, first: Step) -> Any:
    """Return where a path begins: at the result, or at the body of a catalog result without that member (CLI-610)."""
    return content(result) if is_catalog(result) and first not in result else result
