"""How a definition says that an operation answers page by page, and what makes that wrong.

Walk       where a page's records and the next position stand, and when there are no more pages
Counter    a position that counts, for an API that names no next one: Headwater's own, not of the contract (CLI-690)
Condition  what a page has to say for a walk to go on, or to end
"""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from headwater import limits
from headwater.manifest.faults import Reader
from headwater.manifest.pointers import is_pointer

Test = Literal["equals", "absent", "empty", "fewer_than"]
Position = str | int

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_SNAKE: Final = "must be snake_case, such as has_more_false"
_WALK: Final = frozenset(["param", "next", "counter", "records", "query", "first_only", "continues", "ends"])
_COUNTER: Final = frozenset(["start", "step"])
_OF_A_VALUE: Final[tuple[Test, ...]] = ("equals", "absent", "empty")
_OF_A_PAGE: Final[tuple[Test, ...]] = (*_OF_A_VALUE, "fewer_than")
_OPERANDS: Final[Mapping[Test, str]] = {
    "equals": "a text, an integer, true or false",
    "absent": "true",
    "empty": "true",
    "fewer_than": "a positive integer, or the name of a parameter",
}


class Condition(Struct, frozen=True):
    """One thing a page may say.

    `equals`: the value at `pointer` is `operand`. `absent`: there is none, or null. `empty`: there is a text, an array
    or an object without anything in it. `fewer_than`: the page has fewer records than `operand`, a number or the name
    of a parameter of its input; it is true of the last page only where the provider never answers fewer than asked.
    """

    test: Test
    name: str = ""
    pointer: str = ""
    operand: Position | bool = True


class Counter(Struct, frozen=True):
    """A position that is a number: `start` on the first page, `step` more on each one after it."""

    start: int = 1
    step: int = 1


class Walk(Struct, frozen=True):
    """The pages of one operation.

    `param` is the parameter that carries the position; `next`, or else `counter`, says where the next one is from.
    `records` points at a page's records. `query` is sent on every page, the parameters of `first_only` on the first.
    """

    param: str
    records: str
    ends: tuple[Condition, ...]
    next: str = ""
    counter: Counter | None = None
    query: Mapping[str, Position | bool] = {}
    first_only: tuple[str, ...] = ()
    continues: Condition | None = None

    @property
    def is_extension(self) -> bool:
        """Whether it goes beyond the contract (CLI-690)."""
        return self.counter is not None or any(end.test == "fewer_than" for end in self.ends)


def read_walk(reader: Reader, holder: dict[str, Any]) -> Walk | None:
    """Read the member `walk` of an operation, None where there is none; faults go to the reader."""
    if "walk" not in holder:
        return None
    table = reader.table(holder, "walk")
    if table is not holder["walk"]:
        return None
    with reader.at("walk"):
        reader.no_others(table, _WALK)
        if ("next" in table) == ("counter" in table):
            reader.fault("position", "must hold next or counter, and not both")
        walk = Walk(
            param=reader.plain(table, "param", limits.LABEL_CHARACTERS),
            records=_pointer(reader, table, "records"),
            ends=_ends(reader, table),
            next=_pointer(reader, table, "next", part=True) if "next" in table else "",
            counter=_counter(reader, table) if "counter" in table else None,
            query=_query(reader, table),
            first_only=reader.names(table, "first_only") or (),
            continues=_continues(reader, table) if "continues" in table else None,
        )
        _check_parameters(reader, walk)
    return walk


def walk_document(walk: Walk) -> dict[str, Any]:
    """Return a walk as `x-connectors-walk` of an input schema says it, `extension` where it is of our own."""
    turning: dict[str, Any] = {"next": walk.next}
    if walk.counter:
        turning = {"counter": {"start": walk.counter.start, "step": walk.counter.step}}
    document = {"param": walk.param, **turning, "records": walk.records, "query": dict(walk.query)}
    document["first_only"] = list(walk.first_only)
    if walk.continues:
        document["continues"] = _condition_document(walk.continues)
    document["ends"] = [_condition_document(end) for end in walk.ends]
    return document | ({"extension": True} if walk.is_extension else {})


def _condition_document(condition: Condition) -> dict[str, Any]:
    named = {"name": condition.name} if condition.name else {}
    pointed = {"pointer": condition.pointer} if condition.test != "fewer_than" else {}
    return {**named, **pointed, condition.test: condition.operand}


def _pointer(reader: Reader, holder: dict[str, Any], name: str, *, part: bool = False) -> str:
    """Read a required pointer; `part` is one that may not name the whole page."""
    value = holder.get(name)
    if isinstance(value, str) and is_pointer(value) and (value or not part):
        return value
    with reader.at(name):
        if name in holder:
            reader.fault("pointer", "must be a JSON pointer, such as /meta/after_cursor")
        else:
            reader.fault("required", "is missing")
    return ""


def _counter(reader: Reader, table: dict[str, Any]) -> Counter:
    holder = reader.table(table, "counter")
    with reader.at("counter"):
        reader.no_others(holder, _COUNTER)
        return Counter(_number(reader, holder, "start", 0), _number(reader, holder, "step", 1))


def _number(reader: Reader, holder: dict[str, Any], name: str, least: int) -> int:
    """Read a number that is 1 where it is not given."""
    value = holder.get(name, 1)
    if type(value) is int and least <= value <= limits.MAX_SAFE_INTEGER:
        return value
    with reader.at(name):
        reader.fault("type", f"must be an integer of at least {least}")
    return 1


def _query(reader: Reader, table: dict[str, Any]) -> Mapping[str, Position | bool]:
    holder = reader.table(table, "query")
    for name, value in holder.items():
        if not isinstance(value, str | int):
            with reader.at("query", name):
                reader.fault("type", "must be a text, an integer, true or false")
    return dict(holder)


def _continues(reader: Reader, table: dict[str, Any]) -> Condition:
    holder = reader.table(table, "continues")
    with reader.at("continues"):
        return _condition(reader, holder, _OF_A_VALUE)


def _ends(reader: Reader, table: dict[str, Any]) -> tuple[Condition, ...]:
    found: list[Condition] = []
    for row in reader.rows(table, "ends"):
        end = _condition(reader, row, _OF_A_PAGE)
        with reader.at("name"):
            if "name" not in row:
                reader.fault("required", "is missing")
            elif end.name and end.name in {other.name for other in found}:
                reader.fault("repeated", "is the name of another end too")
        found.append(end)
    if not 1 <= len(found) <= limits.WALK_ENDS:
        with reader.at("ends"):
            reader.fault("size", f"must hold 1 to {limits.WALK_ENDS} ends: a walk without one is never complete")
    return tuple(found)


def _condition(reader: Reader, row: dict[str, Any], tests: tuple[Test, ...]) -> Condition:
    reader.no_others(row, frozenset({"name", "pointer", *tests}))
    name = reader.shaped(row, "name", _NAME, _SNAKE) if "name" in row else ""
    given = [test for test in tests if test in row]
    if len(given) != 1:
        reader.fault("condition", f"must hold exactly one of {', '.join(tests)}")
        return Condition("absent", name)
    test = given[0]
    operand = row[test]
    if not _fits(test, operand):
        with reader.at(test):
            reader.fault("type", f"must be {_OPERANDS[test]}")
    if test != "fewer_than":
        return Condition(test, name, _pointer(reader, row, "pointer"), operand)
    if "pointer" in row:
        with reader.at("pointer"):
            reader.fault("condition", "stands beside fewer_than, which counts the records")
    return Condition(test, name, operand=operand)


def _fits(test: Test, operand: object) -> bool:
    if test == "fewer_than":
        return bool(operand) if isinstance(operand, str) else type(operand) is int and operand > 0
    return isinstance(operand, str | int) if test == "equals" else operand is True


def _check_parameters(reader: Reader, walk: Walk) -> None:
    """Refuse a parameter that two members of a walk would send differently."""
    names = [walk.param, *walk.query, *walk.first_only]
    if len(set(names)) < len(names):
        reader.fault("repeated", "names a parameter twice in param, query and first_only")
