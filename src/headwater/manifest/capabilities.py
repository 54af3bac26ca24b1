"""What an integration may say that it can do: a closed vocabulary of families, and what each capability rests on.

The spec's own family is tickets. A further family names capabilities of its own; together they form one graph
without cycles, checked before any manifest is read (INT-130 to INT-133).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType
from typing import Final

from msgspec import Struct


class Capability(Struct, frozen=True):
    """One thing that an integration can do.

    `needs` holds groups of capabilities, of each of which at least one must be declared. `hooks` must be
    implemented where it is declared, `optional_hooks` may be. `lists` says that it brings a type of resources.
    """

    name: str
    needs: tuple[tuple[str, ...], ...] = ()
    hooks: tuple[str, ...] = ()
    optional_hooks: tuple[str, ...] = ()
    lists: bool = False


Family = Sequence[Capability]
Vocabulary = Mapping[str, Capability]

_SYNC: Final = "manual_sync"
TICKETS: Final[Family] = (
    Capability("account", hooks=("get_account",)),
    Capability("groups", (("account",),), ("list_groups",), lists=True),
    Capability("events", (("account",),), ("list_events",), lists=True),
    Capability("ticket_inventory", (("events",),), ("list_ticket_inventory",), lists=True),
    Capability(
        "ticket_fulfillment",
        (("ticket_inventory",),),
        ("quote", "fulfill", "get_fulfillment"),
        ("cancel_fulfillment",),
    ),
    Capability("scheduled_sync", ((_SYNC,),)),
    Capability("credential_refresh", hooks=("refresh_credential",)),
    Capability("webhooks", ((_SYNC,),), ("verify_webhook", "map_webhook")),
)
RECORDS: Final[Family] = (Capability("records", (("account",),), lists=True),)
"""What a connector of the Collection Profile brings: streams of records, and no list hooks."""


def vocabulary(*families: Family) -> Vocabulary:
    """Join families into one vocabulary, with `manual_sync` over everything that they list.

    Raise `ValueError` where a name stands twice, a need names nothing, or the graph has a cycle.
    """
    rows = [row for family in families for row in family]
    listable = tuple(row.name for row in rows if row.lists)
    rows.append(Capability(_SYNC, (("account",), listable)))
    names = [row.name for row in rows]
    if len(set(names)) < len(names):
        raise ValueError("a capability stands in two families")
    known = {row.name: row for row in rows}
    graph = {row.name: {name for group in row.needs for name in group} for row in rows}
    if any(name not in known for needs in graph.values() for name in needs):
        raise ValueError("a capability needs one that no family has")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise ValueError("the capabilities need one another in a circle") from error
    return MappingProxyType(known)


@cache
def standard() -> Vocabulary:
    """Return the vocabulary of this Headwater."""
    return vocabulary(TICKETS, RECORDS)


def unmet(declared: Collection[str], known: Vocabulary) -> Iterator[tuple[str, str]]:
    """Yield each declared capability that misses something, with what would do."""
    for name in declared:
        for group in known[name].needs if name in known else ():
            if not any(one in declared for one in group):
                yield name, " or ".join(group)
