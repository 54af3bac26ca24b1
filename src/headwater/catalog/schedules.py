"""Schedules as people write them: an instance's `schedule` table in `collect.toml`, durations and zones."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from headwater import limits
from headwater.collect.schedules import EPOCH, Cron, Every, Schedule
from headwater.errors import HeadwaterError, refuse

MEMBERS = frozenset({"cron", "zone", "every", "jitter", "since", "paused"})
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def read_schedule(members: Mapping[str, Any]) -> Schedule:
    """Turn the members of a schedule table into a schedule, or raise `invalid_schedule` with the first fault."""
    if not MEMBERS.issuperset(members):
        raise _unfit("it has a member that is not known")
    if ("cron" in members) == ("every" in members):
        raise _unfit("it needs either cron or every")
    rhythm = _every(members) if "every" in members else _cron(members)
    jitter = _seconds(members, "jitter") if "jitter" in members else 0
    bound = rhythm.seconds if isinstance(rhythm, Every) else limits.SCHEDULE_JITTER_MAX_SECONDS
    if jitter > bound:
        raise _unfit("its jitter is longer than its interval, or than a day")
    since, paused = members.get("since", EPOCH), members.get("paused", False)
    if not isinstance(since, datetime) or since.tzinfo is None or not isinstance(paused, bool):
        raise _unfit("since must be a time with an offset, and paused true or false")
    return Schedule(rhythm, jitter, since.astimezone(UTC), paused)


def in_words(seconds: int) -> str:
    """Write a duration with the largest unit that measures it: 21600 is `6h`."""
    unit = next(unit for unit in ("d", "h", "m", "s") if seconds % _UNITS[unit] == 0)
    return f"{seconds // _UNITS[unit]}{unit}"


def _cron(members: Mapping[str, Any]) -> Cron:
    text, zone = members["cron"], members.get("zone", "UTC")
    if not isinstance(text, str) or len(text.split()) != 5:
        raise _unfit("cron has five fields: minute, hour, day, month, day of the week")
    if not isinstance(zone, str):
        raise _unfit("its zone is not one that is known here")
    try:
        cron = Cron(text, ZoneInfo(zone))
    except (KeyError, ValueError, OSError) as error:  # not a name, no such zone, or a folder of zones
        raise _unfit("its zone is not one that is known here; names are such as Europe/Zurich") from error
    try:
        occurs = cron.after(EPOCH) is not None
    except ValueError as error:
        raise _unfit("its cron expression does not fit") from error
    if not occurs:
        raise _unfit("its cron expression names no time that ever comes")
    return cron


def _every(members: Mapping[str, Any]) -> Every:
    if "zone" in members:
        raise _unfit("a zone goes with cron only")
    seconds = _seconds(members, "every")
    if not limits.SCHEDULE_EVERY_SECONDS <= seconds <= limits.SCHEDULE_EVERY_MAX_SECONDS:
        raise _unfit("every is at least 1m and at most 366d")
    return Every(seconds)


def _seconds(members: Mapping[str, Any], name: str) -> int:
    found = re.fullmatch(r"(\d{1,9})([smhd])", str(members[name]), re.ASCII)
    if found is None:
        raise _unfit(f"{name} is a number with s, m, h or d, such as 5m or 6h")
    return int(found[1]) * _UNITS[found[2]]


def _unfit(what: str) -> HeadwaterError:
    return refuse("invalid_schedule", f"The schedule does not fit: {what}.", safe="Nothing was changed.")
