"""What an operation says of itself, whether a definition turns it into a request or an integration's code does it."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypedDict, TypeVar

from msgspec import Struct

from headwater import limits
from headwater.manifest.faults import Reader
from headwater.manifest.walk import Walk

Effect = Literal["read", "write"]
SAID: Final = frozenset({"description", "effect", "contract", "profiles", "scopes", "walk"})
"""The members that every operation may have."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_CONTRACT: Final = re.compile(r"[A-Za-z0-9._/-]{1,128}")
T = TypeVar("T")


class Operation(Struct, frozen=True, kw_only=True):
    """One thing that can be asked of a provider.

    `contract` is the family that it belongs to, if it does. `profiles` are the ways to sign in that serve it, empty
    for all, and `scopes` what the credential has to be granted. `walk` is how its pages follow one another, where it
    has pages.
    """

    id: str
    description: str
    effect: Effect
    contract: str = ""
    profiles: Sequence[str] = ()
    scopes: Sequence[str] = ()
    walk: Walk | None = None


class Said(TypedDict):
    """What is read in the same way of every operation."""

    id: str
    description: str
    contract: str
    profiles: Sequence[str]
    scopes: Sequence[str]


def read_each(
    reader: Reader, holder: dict[str, Any], one: Callable[[Reader, str, dict[str, Any]], T]
) -> Mapping[str, T]:
    """Read the member `operations` by their names, each with `one`."""
    found = reader.table(holder, "operations", required=True)
    operations = {}
    with reader.at("operations"):
        if len(found) > limits.OPERATIONS:
            reader.fault("count", f"must be at most {limits.OPERATIONS} operations")
        for name in list(found)[: limits.OPERATIONS]:
            if not _NAME.fullmatch(name):
                with reader.at(name):
                    reader.fault("shape", "must be a name such as issues.list")
                continue
            row = reader.table(found, name)
            with reader.at(name):
                operations[name] = one(reader, name, row)
    return operations


def read_said(reader: Reader, name: str, row: dict[str, Any]) -> Said:
    """Read what every operation says of itself; its effect and its walk depend on the rest of it."""
    family = "must be a family such as datasource.feed/v1"
    return Said(
        id=name,
        description=reader.plain(row, "description", limits.DESCRIPTION_CHARACTERS),
        contract=reader.shaped(row, "contract", _CONTRACT, family) if "contract" in row else "",
        profiles=reader.names(row, "profiles") or (),
        scopes=reader.names(row, "scopes") or (),
    )


def check_walk(reader: Reader, walk: Walk, effect: Effect, asked: set[str]) -> None:
    """Note where a walk does not fit its operation: it is of a read, by parameters (`asked`) that the read takes."""
    named = {walk.param, *walk.query, *walk.first_only}
    named |= {end.operand for end in walk.ends if end.test == "fewer_than" and isinstance(end.operand, str)}
    with reader.at("walk"):
        if effect == "write":
            reader.fault("effect", "stands with a read only")
        for name in sorted(named - asked):
            reader.fault("parameter", f"names {name}, which is no parameter that the operation sends")
