"""Time and identity: the only room that asks the machine what time it is or for randomness."""

import os
import time
from base64 import urlsafe_b64encode
from contextlib import suppress
from datetime import UTC, datetime, timedelta

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def stamp() -> str:
    """Return the current time as RFC 3339 text with milliseconds and `Z`."""
    return text(now())


def text(moment: datetime) -> str:
    """Write a moment as RFC 3339 text in UTC, with milliseconds and `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse(value: object) -> datetime | None:
    """Read an ISO 8601 date-time, or a date taken as midnight UTC.

    A time without an offset is read as UTC, because that is what its writers mean most often.
    Return None for anything else, and for a time whose UTC year is not one of 1 to 9999. Digits below the
    microsecond are dropped.
    """
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def micros(moment: datetime) -> int:
    """Return whole microseconds since 1970-01-01T00:00:00Z."""
    delta = moment - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def millis() -> int:
    """Return the current time as whole milliseconds since 1970-01-01T00:00:00Z."""
    return micros(now()) // 1000


def from_micros(value: int) -> str:
    """Write microseconds since 1970 as RFC 3339 text."""
    return text(_EPOCH + timedelta(microseconds=value))


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def monotonic() -> float:
    """Return seconds on a clock that never goes back; only differences mean anything."""
    return time.monotonic()


def zone() -> str:
    """Return the name of this machine's time zone, such as `Europe/Zurich`; `UTC` where it has none."""
    from zoneinfo import ZoneInfo

    for place in (os.environ.get("TZ", "").removeprefix(":"), os.path.realpath("/etc/localtime")):
        with suppress(KeyError, ValueError, OSError):
            return ZoneInfo(place.rpartition("/zoneinfo/")[2]).key
    return "UTC"


def identifier(prefix: str) -> str:
    """Return a new unique id such as `run_01jh…`: 48 bits of milliseconds, then 80 random bits.

    Ids sort by the time they were made, and two made in one millisecond still differ (CP-146).
    """
    number = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    digits = [_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5)]
    return f"{prefix}_{''.join(digits)}"


def seed() -> int:
    """Return a number to draw lots by, short enough to be typed again."""
    return int.from_bytes(os.urandom(3), "big")


def token() -> str:
    """Return 32 random bytes as base64url, for a secret that nobody guesses."""
    return urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")


def entropy(size: int) -> bytes:
    """Return random bytes that nobody guesses, for keys, salts and nonces."""
    return os.urandom(size)


def pause(seconds: float) -> None:
    """Wait, in code that has nothing else to do."""
    time.sleep(seconds)
