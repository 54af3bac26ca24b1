"""JSON as it crosses an operation, in and out: read once, exactly, and within bounds.

A number with a fraction stays the number that was written, whatever its digits; an object with a member twice is none.
"""

from typing import Any, Final

import jiter

from headwater import limits
from headwater.manifest.document import children

_LEVELS: Final = 2 * limits.INPUT_LEVELS


class Undecodable(Exception):
    """The bytes are not one JSON value that can be read."""


def decoded(document: bytes) -> Any:
    """Return the value of a document. Raise `Undecodable` for what is not exactly one, or is 128 levels deep."""
    try:
        value = jiter.from_json(document, catch_duplicate_keys=True, float_mode="decimal", allow_inf_nan=False)
    except (ValueError, RecursionError):
        raise Undecodable from None
    if depth_of(value, _LEVELS) >= _LEVELS:
        raise Undecodable
    return value


def depth_of(value: Any, most: int) -> int:
    """Return how many levels of objects and arrays a value has, at most so many."""
    levels, level = 0, [value]
    while level and levels < most:
        level = [one for one in level if isinstance(one, dict | list)]
        levels += bool(level)
        level = [child for node in level for _, child in children(node)]
    return levels
