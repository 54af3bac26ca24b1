"""When a schedule is due: on any clock, in any zone, after any outage."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from headwater.collect.schedules import EPOCH, Cron, Due, Every, PastRun, Schedule, back_off, jitter, next_due

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def occurrences(text: str, zone: str, start: str, count: int) -> list[str]:
    """Return the first occurrences after a moment, as the wall clock of the zone shows them."""
    cron, moment, shown = Cron(text, ZoneInfo(zone)), utc(start), []
    for _ in range(count):
        found = cron.after(moment)
        assert found is not None
        assert found > moment
        moment = found
        shown.append(f"{moment.astimezone(ZoneInfo(zone)):%m-%d %H:%M %z}")
    return shown


def run(start: datetime, status: str = "succeeded", minutes: int = 1) -> PastRun:
    return PastRun(start, None if status == "running" else start + minutes * MINUTE, status)


def daily(since: datetime = EPOCH, **more) -> Schedule:
    return Schedule(Cron("0 7 * * *", UTC), since=since, **more)


@pytest.mark.parametrize(
    ("text", "zone", "start", "shown"),
    [
        # Spring: 02:30 is jumped over, and comes just after the jump; the next day is as ever.
        (
            "30 2 * * *",
            "Europe/Zurich",
            "2026-03-28T12:00",
            ["03-29 03:00 +0200", "03-30 02:30 +0200"],
        ),
        ("30 2 * * *", "America/New_York", "2026-03-07T12:00", ["03-08 03:00 -0400", "03-09 02:30 -0400"]),
        ("0,30 2,3 * * *", "Europe/Zurich", "2026-03-29T00:30", ["03-29 03:00 +0200", "03-29 03:30 +0200"]),
        ("*/30 2 * * *", "Europe/Zurich", "2026-03-28T12:00", ["03-29 03:00 +0200", "03-30 02:00 +0200"]),
        # Autumn: 02:30 comes twice, and counts the first time only.
        ("30 2 * * *", "Europe/Zurich", "2026-10-24T12:00", ["10-25 02:30 +0200", "10-26 02:30 +0100"]),
        ("30 1 * * *", "America/New_York", "2026-10-31T12:00", ["11-01 01:30 -0400", "11-02 01:30 -0500"]),
        (
            "*/30 2 * * *",
            "Europe/Zurich",
            "2026-10-24T23:00",
            ["10-25 02:00 +0200", "10-25 02:30 +0200", "10-26 02:00 +0100"],
        ),
        ("0 */2 * * *", "Europe/Zurich", "2026-10-24T23:00", ["10-25 02:00 +0200", "10-25 04:00 +0100"]),
        # Out of the second pass of a repeated hour, the first pass is not seen again.
        ("45 2 * * *", "Europe/Zurich", "2026-10-25T01:10", ["10-26 02:45 +0100"]),
        # Every hour is every hour that passes.
        (
            "0 * * * *",
            "Europe/Zurich",
            "2026-10-24T23:30",
            ["10-25 02:00 +0200", "10-25 02:00 +0100", "10-25 03:00 +0100"],
        ),
        ("0 * * * *", "Europe/Zurich", "2026-03-28T23:30", ["03-29 01:00 +0100", "03-29 03:00 +0200"]),
        # Half an hour, at midnight, a whole day, and winter time that is the odd one.
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00", ["10-04 02:30 +1100", "10-05 02:15 +1100"]),
        ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00", ["04-05 01:45 +1100", "04-06 01:45 +1030"]),
        ("0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00", ["11-04 01:00 -0200", "11-05 00:00 -0200"]),
        ("0 12 * * *", "Pacific/Apia", "2011-12-29T23:00", ["12-31 00:00 +1400", "12-31 12:00 +1400"]),
        ("30 2 * * *", "Africa/Casablanca", "2024-03-09T12:00", ["03-10 02:30 +0100", "03-11 02:30 +0000"]),
        ("0 7 * * *", "Asia/Kolkata", "2026-01-01T00:00", ["01-01 07:00 +0530", "01-02 07:00 +0530"]),
        # Leap days, the end of the month, weekdays.
        ("0 0 29 2 *", "UTC", "2026-01-01T00:00", ["02-29 00:00 +0000", "02-29 00:00 +0000"]),
        ("0 9 L * *", "UTC", "2028-02-01T00:00", ["02-29 09:00 +0000", "03-31 09:00 +0000"]),
        ("0 9 * * MON-FRI", "UTC", "2026-11-27T12:00", ["11-30 09:00 +0000", "12-01 09:00 +0000"]),
    ],
)
def test_occurrences_are_those_of_the_wall_clock(text, zone, start, shown):
    """A skipped time comes just after the jump, a repeated one once, and every hour is a real hour."""
    assert occurrences(text, zone, start, len(shown)) == shown


def test_a_leap_day_waits_for_its_year():
    """A schedule for 29 February is not moved to another day."""
    assert Cron("0 0 29 2 *", UTC).after(utc("2026-03-01")) == utc("2028-02-29")


@pytest.mark.parametrize("text", ["61 * * * *", "* * * *", "x * * * *", "0 0 30 2 *", "5-1 * * * *", "*/0 * * * *", ""])
def test_a_text_that_is_no_expression_is_a_value_error(text):
    """Whoever reads what people write can tell it apart from a schedule."""
    with pytest.raises(ValueError, match=r"Bad|Wrong"):
        Cron(text, UTC).after(NOW)


def test_an_expression_that_names_no_day_has_no_occurrence():
    """The 20th is never in the last week."""
    assert Cron("0 0 */20 * 1L", UTC).after(NOW) is None
    assert next_due("a/b", Schedule(Cron("0 0 */20 * 1L", UTC)), [], NOW) is None


def test_nothing_is_owed_from_before_a_schedule_was_set():
    """A schedule that was set at noon is due tomorrow morning."""
    assert next_due("a/b", daily(since=NOW), [], NOW) == Due(utc("2026-12-01T07:00"), utc("2026-12-01T07:00"))


def test_whatever_was_missed_is_owed_once():
    """Ten days without a scheduler: the oldest occurrence is due, and one success serves them all."""
    past = [run(NOW - 10 * DAY)]
    assert next_due("a/b", daily(), past, NOW) == Due(utc("2026-11-21T07:00"), utc("2026-11-21T07:00"))
    assert next_due("a/b", daily(), [run(NOW), *past], NOW).at == utc("2026-12-01T07:00")


def test_a_run_before_an_occurrence_does_not_serve_it():
    """A minute early is early."""
    assert next_due("a/b", daily(), [run(utc("2026-11-30T06:59"))], NOW).at == utc("2026-11-30T07:00")
    assert next_due("a/b", daily(), [run(utc("2026-11-30T07:00"))], NOW).at == utc("2026-12-01T07:00")


def test_every_counts_from_the_start_of_the_last_success():
    """The first run is due at once; then an interval lies between starts, however long a run takes."""
    schedule = Schedule(Every(3600), since=NOW)
    assert next_due("a/b", schedule, [], NOW).at == NOW
    assert next_due("a/b", schedule, [run(NOW, minutes=50)], NOW + 50 * MINUTE).at == NOW + HOUR
    assert next_due("a/b", schedule, [run(NOW - 5 * DAY)], NOW).at <= NOW


@pytest.mark.parametrize("status", ["failed", "cancelled", "abandoned", "running"])
def test_a_run_that_did_not_succeed_is_tried_again_after_a_while(status):
    """Its occurrence stays owed; the wait counts from its end, or from its start where it has none."""
    failed = run(utc("2026-11-30T07:00"), status, minutes=10)
    ended = failed.ended_at or failed.started_at
    due = next_due("a/b", daily(), [failed, run(utc("2026-11-29T07:00"))], NOW)
    assert due == Due(utc("2026-11-30T07:00"), ended + 5 * MINUTE, 0 if status == "running" else 1)


def test_waits_double_up_to_a_day():
    """5, 10, 20 minutes, and never more than a day, however often it failed."""
    assert [back_off(failures) for failures in range(5)] == [0, 300, 600, 1200, 2400]
    assert back_off(9) == 76_800
    assert {back_off(failures) for failures in (10, 32, 10_000)} == {86_400}


def test_a_success_ends_the_waiting():
    """The next failure waits 5 minutes again."""
    at = utc("2026-11-30T11:00")
    failed = [run(at - hours * HOUR, "failed") for hours in range(1, 5)]
    assert next_due("a/b", Schedule(Every(600)), [run(at), *failed], NOW) == Due(at + 10 * MINUTE, at + 10 * MINUTE)
    later = run(at + 10 * MINUTE, "failed")
    assert next_due("a/b", Schedule(Every(600)), [later, run(at), *failed], NOW).at == later.ended_at + 5 * MINUTE


def test_a_wait_does_not_bring_an_occurrence_forward():
    """What failed before the occurrence is no reason to start before it, nor before its jitter has passed."""
    past = [run(utc("2026-11-30T06:00"), "failed"), run(utc("2026-11-29T07:00"))]
    assert next_due("a/b", daily(), past, utc("2026-11-30T06:30")).at == utc("2026-11-30T07:00")
    put_off = next_due("a/b", daily(jitter_seconds=600), past, utc("2026-11-30T06:30"))
    assert put_off.at == put_off.occurrence + timedelta(seconds=jitter("a/b", put_off.occurrence, 600))
    assert put_off.at > put_off.occurrence


def test_setting_or_resuming_forgets_failures():
    """Whoever mends something and resumes does not wait for a day."""
    failed = [run(NOW - hours * HOUR, "failed") for hours in range(1, 12)]
    assert next_due("a/b", Schedule(Every(60), since=NOW), failed, NOW) == Due(NOW, NOW, 0)


def test_a_paused_schedule_is_never_due():
    """However much is owed."""
    assert next_due("a/b", daily(paused=True), [], NOW) is None


def test_jitter_is_the_same_whenever_it_is_asked_for():
    """A restart does not draw again; another instance and another occurrence have their own."""
    schedule = daily(since=NOW, jitter_seconds=300)
    due = next_due("a/b", schedule, [], NOW)
    assert due == next_due("a/b", schedule, [], NOW + HOUR)
    assert due.at - due.occurrence == timedelta(seconds=jitter("a/b", due.occurrence, 300))
    drawn = {jitter(f"a/{number}", due.occurrence + number * DAY, 300) for number in range(200)}
    assert len(drawn) > 100
    assert min(drawn) >= 0
    assert max(drawn) <= 300


def test_a_clock_that_is_put_back_runs_nothing_twice():
    """The run of 7 o'clock counts, though it is only half past six now; a run in between does not hide it."""
    served = run(utc("2026-11-30T07:00"))
    between = run(utc("2026-11-30T06:31"))
    for past in ([served], [between, served]):
        assert next_due("a/b", daily(), past, utc("2026-11-30T06:30")).at == utc("2026-12-01T07:00")


def test_a_clock_that_was_years_ahead_blocks_nothing():
    """Runs, failures and schedules of 2035 are not waited for."""
    ahead = utc("2035-01-01T00:00")
    assert next_due("a/b", daily(), [run(ahead), run(NOW - DAY)], NOW).at == utc("2026-11-30T07:00")
    assert next_due("a/b", Schedule(Every(3600)), [run(ahead)], NOW).at <= NOW
    assert next_due("a/b", daily(since=ahead), [], NOW).at <= NOW
    assert next_due("a/b", daily(), [run(ahead, "failed"), run(NOW - DAY)], NOW).at <= NOW


def test_an_interval_waits_for_a_future_of_one_interval_at_most():
    """Put back by hours, a clock does not stop an hourly run for hours; a second is no reason for another run."""
    schedule = Schedule(Every(3600))
    assert next_due("a/b", schedule, [run(NOW + 5 * HOUR), run(NOW - 2 * HOUR)], NOW).at == NOW - HOUR
    assert next_due("a/b", schedule, [run(NOW + MINUTE / 60)], NOW).at > NOW + HOUR
