"""What an upgrade changes: the streams, the command, and what the connector asks for."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from headwater.manifest.declaration import Declaration, Stream
from headwater.manifest.package import Package


@dataclass(frozen=True)
class Difference:
    """How a new version of a connector differs, in sentences. `asks` is what it wants that the old one did not."""

    changes: tuple[str, ...]
    asks: tuple[str, ...]


def difference(before: tuple[Declaration, Package], after: tuple[Declaration, Package]) -> Difference:
    """Compare two versions of a connector."""
    changes = list(_streams(before[0], after[0]))
    if before[1].command != after[1].command:
        changes.append(f"the command is {shlex.join(after[1].command)} now")
    return Difference(tuple(changes), (*_bindings(before[0], after[0]), *_package(before, after)))


def _streams(before: Declaration, after: Declaration) -> Iterator[str]:
    for name in sorted(before.streams.keys() | after.streams.keys()):
        if name not in before.streams:
            yield f"{name} is new"
        elif name not in after.streams:
            yield f"{name} is gone; what was collected of it stays"
        else:
            yield from (f"{name} {words}" for words in _stream(before.streams[name], after.streams[name]))


def _stream(before: Stream, after: Stream) -> Iterator[str]:
    if before.primary_key != after.primary_key:
        yield "has another primary key"
    if before.semantics != after.semantics:
        yield f"is {after.semantics} now"
    if before.parents != after.parents:
        yield f"has its cursor with {', '.join(after.parents)} now"
    if before.schema != after.schema:
        new, gone = sorted(after.fields - before.fields), sorted(before.fields - after.fields)
        named = [f"{words} {', '.join(fields)}" for words, fields in (("adds", new), ("drops", gone)) if fields]
        yield f"has another schema{': ' if named else ''}{'; '.join(named)}"


def _bindings(before: Declaration, after: Declaration) -> Iterator[str]:
    for name, binding in after.bindings.items():
        if name not in before.bindings:
            yield f"the binding {name}"
        elif binding.options != before.bindings[name].options:
            yield f"the binding {name}, with other options"


def _package(before: tuple[Declaration, Package], after: tuple[Declaration, Package]) -> Iterator[str]:
    yield from (f"the variable {name}" for name in after[1].environment if name not in before[1].environment)
    if after[1].compatibility not in ("", before[1].compatibility):
        yield f"the compatibility {after[1].compatibility}"
