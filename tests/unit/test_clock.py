"""Time and identity: what is read as a time, and ids that sort and never repeat."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headwater import clock

OFFSETS = st.builds(timezone, st.timedeltas(timedelta(hours=-14), timedelta(hours=14)))


@pytest.mark.parametrize(
    "value",
    [None, 3, True, b"2026-04-01", [], "", "yesterday", "2026-13-01", "2026-02-30", "2026-04-01T25:00:00Z", "\ud800",
     "2026-04-01T10:00:00+24:00", "10:00:00Z", "2026-04-01T10:00:60Z", "1775001600"],
)  # fmt: skip
def test_what_is_no_time_is_none(value: object) -> None:
    """It is neither guessed at nor raised over."""
    assert clock.parse(value) is None


@pytest.mark.parametrize("value", ["0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"])
def test_a_time_outside_the_calendar_is_none(value: str) -> None:
    """Whatever is read can be written again: a year 0 or 10000 in UTC cannot."""
    assert clock.parse(value) is None


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("2026-04-01T10:00:00Z", "2026-04-01T10:00:00.000Z"),
        ("2026-04-01T10:00:00+02:00", "2026-04-01T08:00:00.000Z"),
        ("2026-04-01T10:00:00", "2026-04-01T10:00:00.000Z"),
        ("2026-04-01", "2026-04-01T00:00:00.000Z"),
        ("2026-04-01 10:00:00.5Z", "2026-04-01T10:00:00.500Z"),
        ("2026-04-01T10:00:00.123999999Z", "2026-04-01T10:00:00.123Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999Z"),
    ],
)
def test_a_time_is_read_in_utc(value: str, meant: str) -> None:
    """No offset means UTC, a date means midnight, and digits below the millisecond are cut off."""
    moment = clock.parse(value)
    assert moment is not None
    assert clock.text(moment) == meant


@given(st.datetimes(timezones=OFFSETS | st.just(UTC)))
@example(datetime.max.replace(tzinfo=UTC))
@example(datetime.min.replace(tzinfo=UTC))
def test_any_time_that_is_read_survives_the_store(moment: datetime) -> None:
    """From text to microseconds and back to text, nothing moves and nothing raises."""
    read = clock.parse(moment.isoformat())
    if read is None:
        with pytest.raises(OverflowError):
            moment.astimezone(UTC)
        return
    assert read == moment
    assert clock.from_micros(clock.micros(read)) == clock.text(read)


@given(st.datetimes(timezones=st.just(UTC)), st.datetimes(timezones=st.just(UTC)))
def test_microseconds_sort_as_the_times_do(one: datetime, other: datetime) -> None:
    """The order of the store is the order of time, before 1970 too."""
    assert (clock.micros(one) < clock.micros(other)) == (one < other)


def test_a_stamp_is_now() -> None:
    """It has milliseconds and a Z, and reads back."""
    before = clock.now()
    stamp = clock.stamp()
    moment = clock.parse(stamp)
    assert stamp.endswith("Z")
    assert moment is not None
    assert before - timedelta(milliseconds=1) <= moment <= clock.now()


def test_the_monotonic_clock_never_goes_back() -> None:
    """Each reading is at least the one before."""
    readings = [clock.monotonic() for _ in range(1_000)]
    assert readings == sorted(readings)


@pytest.mark.clause("CP-146")
def test_ids_never_repeat() -> None:
    """Ten thousand of them, made by eight threads at once, all differ."""
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: clock.identifier("run"), range(10_000)))
    assert len(set(ids)) == len(ids)


def test_ids_sort_by_time_and_are_plain() -> None:
    """A prefix, an underscore and 26 letters that no one misreads."""
    early = clock.identifier("run")
    began = clock.now()
    while clock.now() - began < timedelta(milliseconds=2):
        pass
    late = clock.identifier("run")
    assert early < late
    prefix, _, digits = early.partition("_")
    assert (prefix, len(digits)) == ("run", 26)
    assert not set(digits) & set("ilou")
    assert digits == digits.lower()
