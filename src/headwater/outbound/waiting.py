"""How long a provider asks to wait: foreign text, read into whole and bounded seconds (RFC 9110 10.2.3, INT-286)."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import ceil
from typing import Final

from headwater import limits

_SECONDS: Final = re.compile(r"[0-9]{1,10}")
_NAMEABLE: Final = 4_294_967_295


def retry_after(values: Sequence[str], arrived: datetime) -> int | None:
    """Return the seconds that the `Retry-After` lines of an answer name, at most a day of them.

    None where no line can be read, or two differ. A date counts from when the answer arrived, rounded up; one in the
    past is 0.
    """
    found = {_read(value.strip(), arrived) for value in values}
    (seconds,) = found if len(found) == 1 else (None,)
    return None if seconds is None else min(seconds, limits.RETRY_AFTER_SECONDS)


def _read(value: str, arrived: datetime) -> int | None:
    if _SECONDS.fullmatch(value):
        return int(value) if int(value) <= _NAMEABLE else None
    moment = http_date(value)
    return None if moment is None else max(0, ceil((moment - arrived).total_seconds()))


def http_date(value: str) -> datetime | None:
    """Read an HTTP date (RFC 9110 5.6.7); None where it is none."""
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
