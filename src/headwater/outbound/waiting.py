"""How long a provider asks to wait: foreign text, read into whole seconds (RFC 9110 10.2.3)."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import ceil
from typing import Final

_SECONDS: Final = re.compile(r"[0-9]{1,10}")
_NAMEABLE: Final = 4_294_967_295


def retry_after(values: Sequence[str], arrived: datetime) -> int | None:
    """Return the seconds that the `Retry-After` lines of an answer name.

    None where no line can be read, two differ, or they are more than 32 bits can name. A date counts from when the
    answer arrived, rounded up; one in the past is 0.
    """
    found = {_read(value.strip(), arrived) for value in values}
    (seconds,) = found if len(found) == 1 else (None,)
    return seconds if seconds is not None and seconds <= _NAMEABLE else None


def _read(value: str, arrived: datetime) -> int | None:
    if _SECONDS.fullmatch(value):
        return int(value)
    moment = http_date(value)
    return None if moment is None else max(0, ceil((moment - arrived).total_seconds()))


def http_date(value: str) -> datetime | None:
    """Read an HTTP date (RFC 9110 5.6.7); None where it is none."""
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
