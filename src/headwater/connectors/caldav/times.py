"""Times as iCalendar writes them (RFC 5545, 3.3.4 to 3.3.6), and the instant that each names, where it names one."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from headwater.connectors.dav.content import Line

_TIME: Final = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)(Z?))?")
_DURATION: Final = re.compile(
    r"([+-]?)P(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,9})S)?)?"
)


@dataclass(frozen=True)
class Moment:
    """A time as it was written: on the clock of a zone, of UTC, or of wherever one is (`zone` empty)."""

    local: datetime
    zone: str
    all_day: bool

    @property
    def written(self) -> str:
        """The date, or the date and time, without its zone."""
        return self.local.date().isoformat() if self.all_day else self.local.isoformat()

    @property
    def instant(self) -> str | None:
        """The instant in UTC; None for a day, a floating time, and a zone that is not in the tz database."""
        zone = None if self.all_day else _zone(self.zone)
        if zone is None:
            return None
        try:
            return self.local.replace(tzinfo=zone).astimezone(UTC).isoformat().replace("+00:00", "Z")
        except OverflowError:
            return None

    def after(self, duration: timedelta) -> "Moment":
        """Return the moment that is later by a duration; raise `OverflowError` where years end."""
        return Moment(self.local + duration, self.zone, self.all_day)


def moment(line: Line | None) -> Moment | None:
    """Return the time that a property holds, None where it holds none that can be read."""
    found = _TIME.fullmatch(line.value.strip()) if line is not None else None
    if line is None or found is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    try:
        # A leap second has no place in Python's time: it is the second before.
        local = datetime(year, month, day, hour, minute, min(second, 59))
    except ValueError:
        return None
    return Moment(local, "UTC" if found[7] else line.parameter("TZID"), found[4] is None)


def duration(text: str) -> timedelta | None:
    """Return a duration, None where it cannot be read."""
    found = _DURATION.fullmatch(text.strip())
    if found is None or not any(found.groups()[1:]):
        return None
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
    length = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    return -length if found[1] == "-" else length


def _zone(name: str) -> ZoneInfo | None:
    """Find a zone of the tz database; some programs write a prefix of their own before its name."""
    parts = name.strip("/").split("/")
    for first in range(len(parts)):
        try:
            return ZoneInfo("/".join(parts[first:]))
        except (ValueError, OSError, KeyError):
            continue
    return None
