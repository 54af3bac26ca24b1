"""The guard of a write: what has to be so at the service before it is sent, and what shows that it was done.

Guard   what a definition asks for around one write; its `inputs` are given by the caller, compared, and never sent
Look    one read of the same definition, with parameters from the write's input, and what its answer has to say
Check   one value of that answer: equal to a value of the input, or to a literal
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from headwater import limits
from headwater.manifest.faults import Reader
from headwater.manifest.pointers import is_pointer, tokens

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_GUARD: Final = frozenset({"inputs", "preflight", "postflight"})
_BEFORE: Final = frozenset({"operation", "values", "checks", "mismatch"})
_AFTER: Final = frozenset({"operation", "values", "checks", "any_of", "absent"})
_CHECK: Final = frozenset({"pointer", "input", "literal"})
Scalar = str | int | float | bool


class Check(Struct, frozen=True):
    """One value that an answer has to hold at `pointer`: that of the input at `source`, or `literal`.

    A literal of None is no value there, or null.
    """

    pointer: str
    source: str | None = None
    literal: Scalar | None = None


class Look(Struct, frozen=True):
    """One read, and what it has to show: all of the checks of at least one of `ways`.

    `values` are its parameters, each by a pointer into the write's input. With `absent` the thing has to be gone.
    `conflicts` says that a difference means that it was changed meanwhile.
    """

    operation: str
    values: Mapping[str, str]
    ways: Sequence[Sequence[Check]] = ((),)
    conflicts: bool = False
    absent: bool = False


class Guard(Struct, frozen=True):
    """What stands around a write. `inputs` describes each further member of its input; nothing of them is sent."""

    inputs: Mapping[str, str] = {}
    before: Sequence[Look] = ()
    after: Look | None = None

    @property
    def looks(self) -> Sequence[Look]:
        """Every read of it."""
        return [*self.before, *([self.after] if self.after else [])]


NONE: Final = Guard()
"""What stands around a write that declares nothing."""


def read_guard(reader: Reader, holder: dict[str, Any], taken: frozenset[str]) -> Guard:
    """Read the member `guard` of a write, whose input has the members `taken` already; faults go to the reader."""
    table = reader.table(holder, "guard")
    with reader.at("guard"):
        reader.no_others(table, _GUARD)
        inputs = dict(_inputs(reader, table, taken))
        known = taken | inputs.keys()
        before = [_before(reader, row, known) for row in reader.rows(table, "preflight")]
        if len(before) > limits.GUARD_LOOKS:
            reader.fault("count", f"must hold at most {limits.GUARD_LOOKS} preflights")
        after = _after(reader, table, known) if "postflight" in table else None
        guard = Guard(inputs, before, after)
        if sum(len(way) for look in guard.looks for way in look.ways) > limits.GUARD_CHECKS:
            reader.fault("count", f"must hold at most {limits.GUARD_CHECKS} checks")
    return guard


def check_looks(reader: Reader, guard: Guard, reads: Mapping[str, tuple[frozenset[str], frozenset[str]]]) -> None:
    """Note the looks of a guard that are no reads of its definition, or that do not give what those take.

    `reads` has the parameters of each read: all of them, and those that it needs.
    """
    places: list[tuple[str | int, ...]] = [("preflight", index) for index in range(len(guard.before))]
    for place, look in zip([*places, ("postflight",)], guard.looks, strict=False):
        known = reads.get(look.operation)
        with reader.at("guard", *place):
            if known is None:
                with reader.at("operation"):
                    reader.fault("operation", "must name a read of this definition")
            elif not known[1] <= look.values.keys() <= known[0]:
                with reader.at("values"):
                    reader.fault("parameter", "must give what the read needs, and nothing that it does not take")


def _inputs(reader: Reader, table: dict[str, Any], taken: frozenset[str]) -> Iterator[tuple[str, str]]:
    inputs = reader.table(table, "inputs")
    with reader.at("inputs"):
        for name in list(inputs)[: limits.GUARD_CHECKS]:
            text = reader.plain(inputs, name, limits.DESCRIPTION_CHARACTERS)
            with reader.at(name):
                if name in taken or not _NAME.fullmatch(name):
                    reader.fault("shape", "must be a name that no parameter of the operation has")
            yield name, text


def _before(reader: Reader, row: dict[str, Any], known: frozenset[str]) -> Look:
    reader.no_others(row, _BEFORE)
    conflicts = reader.choice(row, "mismatch", ("conflict",)) is not None
    ways = [_checks(reader, row, known)]
    if not ways[0]:
        reader.fault("checks", "must hold a check")
    return Look(*_read(reader, row, known), ways, conflicts)


def _after(reader: Reader, table: dict[str, Any], known: frozenset[str]) -> Look:
    row = reader.table(table, "postflight")
    with reader.at("postflight"):
        reader.no_others(row, _AFTER)
        absent = bool(reader.flag(row, "absent"))
        ways = [_way(reader, way, known) for way in reader.rows(row, "any_of")] or [_checks(reader, row, known)]
        if ("any_of" in row and ("checks" in row or len(ways) < 2)) or (absent == any(ways)):
            reader.fault("checks", "must hold checks, or any_of with two or more ways, or absent = true")
        return Look(*_read(reader, row, known), ways, absent=absent)


def _read(reader: Reader, row: dict[str, Any], known: frozenset[str]) -> tuple[str, Mapping[str, str]]:
    operation = reader.text(row, "operation", required=True) or ""
    values = reader.table(row, "values")
    with reader.at("values"):
        for name, source in values.items():
            with reader.at(name):
                _check_source(reader, source, known)
    return operation, values


def _way(reader: Reader, row: dict[str, Any], known: frozenset[str]) -> Sequence[Check]:
    reader.no_others(row, frozenset({"checks"}))
    return _checks(reader, row, known)


def _checks(reader: Reader, row: dict[str, Any], known: frozenset[str]) -> Sequence[Check]:
    checks = []
    for one in reader.rows(row, "checks"):
        reader.no_others(one, _CHECK)
        pointer = one.get("pointer")
        if not isinstance(pointer, str) or not is_pointer(pointer):
            with reader.at("pointer"):
                reader.fault("pointer", "must be a JSON pointer into the answer")
            pointer = ""
        if ("input" in one) == ("literal" in one):
            reader.fault("expected", "must hold input or literal, and not both")
        if "input" in one:
            with reader.at("input"):
                _check_source(reader, one["input"], known)
        if not isinstance(one.get("literal"), Scalar | None):
            with reader.at("literal"):
                reader.fault("type", "must be a text, a number, true or false")
        checks.append(Check(pointer, one.get("input"), one.get("literal")))
    return checks


def _check_source(reader: Reader, source: object, known: frozenset[str]) -> None:
    """Note what does not point at a member of the write's input, or into one."""
    if not isinstance(source, str) or not source or not is_pointer(source) or tokens(source)[0] not in known:
        reader.fault("pointer", "must be a JSON pointer into the input of the write")
