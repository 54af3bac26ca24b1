"""What a guard asks of the service, and whether the answer holds."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from headwater.errors import HeadwaterError, refuse
from headwater.manifest.guard import Check, Look
from headwater.manifest.pointers import at

GONE: Final = (404, 410)


def input_of(look: Look, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a look, by the input of the write; what that does not give is left out."""
    found = {name: at(given, source) for name, source in look.values.items()}
    return {name: value for name, value in found.items() if value is not None}


def holds(look: Look, body: Any, given: Mapping[str, Any]) -> bool:
    """Whether an answer shows what a look has to see."""
    return any(all(_holds(check, body, given) for check in way) for way in look.ways)


def mismatch(look: Look) -> HeadwaterError:
    """Say that a write is not sent, because something at the service is not as it has to be (CLI-719, CLI-733)."""
    if look.conflicts:
        message = "It was changed at the service since it was read."
        return refuse("service_failure", message, stage="admission", service_code="conflict")
    message = "Something at the service is not as this write needs it to be."
    return refuse("lifecycle_conflict", message)


def _holds(check: Check, body: Any, given: Mapping[str, Any]) -> bool:
    """Whether one value is there as it has to be; what the input does not give is equal to nothing."""
    if check.source is None:
        return _same(at(body, check.pointer), check.literal)
    expected = at(given, check.source)
    return expected is not None and _same(at(body, check.pointer), expected)


def _same(found: Any, expected: Any) -> bool:
    """Compare as JSON does: true is not 1, and a text is not a number."""
    if isinstance(found, bool) or isinstance(expected, bool):
        return found is expected
    if isinstance(expected, float):
        expected = Decimal(str(expected))
    return bool(found == expected)
