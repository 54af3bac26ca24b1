"""How good what is shown of connections is: where it is from, and until when it counts.

A connection is labelled once, and a page by the labels of its rows and by nothing else (CLI-324 to 326).
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from headwater.connect.changes import standing_of
from headwater.connect.model import Connection, Target
from headwater.connect.state import is_stale

Source = Literal["authority", "cached"]
"""The database that every change is written to, or a copy that may be behind it."""


class Labels(Struct, frozen=True, omit_defaults=True):
    """What is told beside something shown. `stale` says that it may no longer be so; no deadline is known of None."""

    source: Source
    stale: bool
    observed_at_ms: int
    valid_until_ms: int | None = None


def of_row(connection: Connection, target: Target, now_ms: int) -> Labels:
    """Label one connection. What was revoked is so for good."""
    stale = connection.lifecycle != "revoked" and is_stale(connection, standing_of(connection, target, now_ms), now_ms)
    until = connection.evidence.valid_until_ms if connection.lifecycle == "live" else None
    return Labels("authority", stale, now_ms, until)


def of_page(rows: Sequence[Labels], now_ms: int) -> Labels:
    """Label a page: it is no better than the worst of its rows, and good only until a deadline that is known."""
    until = min((row.valid_until_ms for row in rows if row.valid_until_ms is not None), default=None)
    is_cached = any(row.source == "cached" for row in rows)
    lapsed = until is None or until <= now_ms
    stale = is_cached or lapsed or any(row.stale for row in rows)
    return Labels("cached" if is_cached else "authority", stale, now_ms, until)
