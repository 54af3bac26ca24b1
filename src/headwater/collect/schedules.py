"""When a scheduled instance is due: from its schedule, its past runs and the time, and from nothing else.

An occurrence is a moment that the schedule names. It is served by the first run that starts at or after it and
succeeds; until then it stays owed, and a failed run is tried again after a growing delay. What was missed while
nothing ran is owed once: the next run serves all of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from hashlib import sha256
from itertools import takewhile

from cronsim import CronSim, CronSimError

from headwater import limits

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Cron:
    """The minutes that a cron expression of five fields names, on the wall clock of a zone.

    An hour field of `*` means every hour that passes. Any other names hours of the wall clock: one that the clock
    jumps over comes just after the jump, and one that it repeats comes once, the first time.
    """

    text: str
    zone: tzinfo

    def after(self, moment: datetime) -> datetime | None:
        """Return the first occurrence after a moment, in UTC; None where none comes within 50 years.

        Raise ValueError for a text that is no cron expression.
        """
        local = moment.astimezone(self.zone)
        hourly = len(self.text.split()) == 5 and self.text.split()[1] == "*"
        try:
            for found in CronSim(self.text, local if hourly else local.replace(tzinfo=None)):
                occurrence = found.astimezone(UTC) if hourly else _on_the_wall(found, self.zone)
                if occurrence > moment:
                    return occurrence
        except CronSimError as error:
            raise ValueError(str(error)) from error
        return None


@dataclass(frozen=True)
class Every:
    """A number of seconds after the start of the last run that succeeded."""

    seconds: int


@dataclass(frozen=True)
class Schedule:
    """When an instance is collected. A start is put off by up to `jitter_seconds`; nothing before `since` is owed."""

    rhythm: Cron | Every
    jitter_seconds: int = 0
    since: datetime = EPOCH
    paused: bool = False


@dataclass(frozen=True)
class PastRun:
    """A run of everything that the schedule collects, whoever started it. Without an end it goes on, or was cut off.

    `lacked_credential` says that it failed because the provider did not accept the credential.
    """

    started_at: datetime
    ended_at: datetime | None
    status: str
    lacked_credential: bool = False

    @property
    def succeeded(self) -> bool:
        """Whether it served what was owed when it started."""
        return self.status == "succeeded"


@dataclass(frozen=True)
class Due:
    """The oldest occurrence that is not served, when its run may start, and how many ended without success in a row."""

    occurrence: datetime
    at: datetime
    failures: int = 0


def repaired(past: Sequence[PastRun]) -> list[PastRun]:
    """Return past runs without those that a connection which is usable again would not have failed (INT-337)."""
    return [run for run in past if not run.lacked_credential]


def next_due(instance: str, schedule: Schedule, past: Sequence[PastRun], now: datetime) -> Due | None:
    """Return what is due next, now or later; None for a schedule that is paused or has no occurrence any more.

    `past` is newest first. Times in the future come of a clock that was wrong. They are believed up to a bound: so
    a clock that is put back runs nothing twice, and one that was years ahead blocks nothing.
    """
    if schedule.paused:
        return None
    since = schedule.since if _is_believed(schedule.since, now, limits.SCHEDULE_CLOCK_SECONDS) else EPOCH
    occurrence = _occurrence(schedule.rhythm, since, past, now)
    if occurrence is None:
        return None
    at = occurrence + timedelta(seconds=jitter(instance, occurrence, schedule.jitter_seconds))
    failed = list(takewhile(lambda run: not run.succeeded and run.started_at >= since, past))
    if failed:
        wait, last = back_off(len(failed)), failed[0].ended_at or failed[0].started_at
        if _is_believed(last, now, wait):
            at = max(at, last + timedelta(seconds=wait))
    return Due(occurrence, at, sum(run.status != "running" for run in failed))


def jitter(instance: str, occurrence: datetime, bound_seconds: int) -> int:
    """Return 0 to `bound_seconds` seconds, the same ones whenever an instance and an occurrence are asked for."""
    digest = sha256(f"{instance} {occurrence.isoformat()}".encode()).digest()
    return int.from_bytes(digest[:8]) % (bound_seconds + 1)


def back_off(failures: int) -> float:
    """Return the seconds from the end of the last of some failures in a row to the next try; 0 after none."""
    if failures == 0:
        return 0.0
    return min(limits.SCHEDULE_RETRY_SECONDS * 2.0 ** min(failures - 1, 32), limits.SCHEDULE_RETRY_MAX_SECONDS)


def _occurrence(rhythm: Cron | Every, since: datetime, past: Sequence[PastRun], now: datetime) -> datetime | None:
    """Return the first occurrence that no success served. The first of `Every` is at once."""
    successes = [run.started_at for run in past if run.succeeded]
    if isinstance(rhythm, Cron):
        served = [start for start in successes if _is_believed(start, now, limits.SCHEDULE_CLOCK_SECONDS)]
        return rhythm.after(max([since, *served]))
    last = next((start for start in successes if _is_believed(start, now, rhythm.seconds)), None)
    return since if last is None else last + timedelta(seconds=rhythm.seconds)


def _is_believed(moment: datetime, now: datetime, ahead_seconds: float) -> bool:
    """Whether a moment is past, or not further ahead than some seconds."""
    return moment <= now + timedelta(seconds=ahead_seconds)


def _on_the_wall(naive: datetime, zone: tzinfo) -> datetime:
    """Return when a wall clock first shows a time, or what it shows just after the jump that skips it, in UTC."""
    while True:
        moment = naive.replace(tzinfo=zone).astimezone(UTC)
        if moment.astimezone(zone).replace(tzinfo=None) == naive:
            return moment
        naive += timedelta(minutes=1)
