"""Naming records in a sentence."""

from collections.abc import Collection

from headwater.checking.watching import Place

_SHOWN = 3


def named(places: Collection[Place]) -> str:
    """Return how many records these are, and the first few: `2 records (items 7, items 9)`."""
    shown = ", ".join(f"{stream} {key[:40]}" for stream, key in sorted(places)[:_SHOWN])
    more = ", …" if len(places) > _SHOWN else ""
    return f"{len(places):,} record{'' if len(places) == 1 else 's'} ({shown}{more})"
