"""What a message cannot carry: found before anything is written, and said plainly."""

from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from types import NoneType
from typing import Any

from headwater.sdk.outcome import Misuse

_PLAIN = frozenset({str, int, bool, NoneType})


def check_values(members: Mapping[str, Any], what: str) -> None:
    """Raise `Misuse` where JSON has no exact form: NaN, Infinity, bytes. `what` names the message for the author."""
    if _is_plain(members.values()):
        return
    for place, fault in _faults(members, ""):
        raise Misuse(f"{what} holds {fault} at {place}")


def _is_plain(values: Iterable[Any]) -> bool:
    """Say at a glance that values are what JSON has: of nearly every record, nothing more has to be asked."""
    for value in values:
        kind = type(value)
        if kind in _PLAIN:
            continue
        if kind is float:
            plain = isfinite(value)
        elif kind is dict:
            plain = _is_plain(value.values())
        else:
            plain = (kind is list or kind is tuple) and _is_plain(value)
        if not plain:
            return False
    return True


def _faults(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, float):
        if not isfinite(value):
            yield place, f"{value}, which JSON does not have: send None, or a text"
    elif isinstance(value, bytes | bytearray | memoryview):
        yield place, "bytes, which JSON does not have: hand them to run.blob, or decode them"
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _faults(item, f"{place}/{name}")
    elif isinstance(value, list | tuple | set | frozenset):
        for index, item in enumerate(value):
            yield from _faults(item, f"{place}/{index}")
