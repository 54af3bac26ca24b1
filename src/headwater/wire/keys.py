"""Keys as text: the one canonical form that host and connector compare."""

import json
from decimal import Decimal
from typing import Any

from headwater.wire.messages import DetailKey, Key


def canonical_key(key: Key) -> str:
    """Return a record's key as one string; a compound key is a JSON array without spaces (CORE-018)."""
    return key if isinstance(key, str) else json.dumps(key, ensure_ascii=False, separators=(",", ":"))


def canonical_component(value: Any) -> str | None:
    """Return the string of one primary-key value, None where it has none: 7 and 7.0 are "7" (CORE-019)."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return detail_key(value)


def detail_key(value: DetailKey) -> str:
    """Return the canonical string of a detail key: 7, 7.0 and "7" are the same key (CP-512, CP-513)."""
    if isinstance(value, float) and value.is_integer():
        return str(int(Decimal(repr(value))))
    return value if isinstance(value, str) else str(value)
