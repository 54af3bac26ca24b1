"""Trying gaps again: whose turn it is, how long a try that failed waits, and what a retry asks for.

The Collection Profile has no message that hands gaps to a connector. A retry asks in the profile's own words
instead: a run over the streams that miss something, narrowed to the keys that are missing (CP-311).
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from headwater import limits
from headwater.wire.messages import CollectionScope, CollectionStream


class OpenGap(NamedTuple):
    """A gap that can be tried again. `key` is canonical, `tries` how often it was tried."""

    number: int
    stream: str
    key: str
    tries: int


@dataclass(frozen=True)
class Turn:
    """Which gaps may be tried. Without `due_only` the owner asked: no wait holds, and no bound on tries.

    `numbers` names gaps; these are tried even where their connector called them not retryable. `untried_since`
    (RFC 3339, UTC) leaves out those that were tried since, so that one command takes each gap once.
    """

    due_only: bool = True
    streams: Collection[str] = ()
    numbers: Collection[int] = ()
    untried_since: str | None = None


def wait_after(tries: int) -> timedelta:
    """Return how long a gap waits after its latest try: twice as long each time, up to a day. 0 for none yet."""
    seconds = limits.GAP_WAIT_SECONDS * 2.0 ** min(tries, 20)
    return timedelta(seconds=min(seconds, limits.GAP_WAIT_MAX_SECONDS))


def page_of(gaps: Sequence[OpenGap]) -> list[OpenGap]:
    """Return the first gaps, as many as one retry takes: the rest keep their turn for the next."""
    page: list[OpenGap] = []
    room = limits.GAPS_PER_RETRY_BYTES
    for gap in gaps[: limits.GAPS_PER_RETRY]:
        room -= len(gap.key.encode())
        if room < 0 and page:
            break
        page.append(gap)
    return page


def scope_of(gaps: Sequence[OpenGap]) -> CollectionScope:
    """Return the scope that asks for just these records."""
    keys: defaultdict[str, list[str]] = defaultdict(list)
    for gap in gaps:
        keys[gap.stream].append(gap.key)
    return CollectionScope([CollectionStream(stream, resources=names) for stream, names in keys.items()])
