"""The record of a calendar object: times, zones, recurrences, people, and what is broken."""

from typing import Any

import pytest
from connectors.caldav.calendars import event
from hypothesis import given
from hypothesis import strategies as st

from headwater.connectors.caldav.events import record
from headwater.connectors.caldav.times import duration


def of(text: str) -> dict[str, Any]:
    """Return the record of a text."""
    return record("/c/x.ics", "/c/", '"1"', text)


def timed(*lines: str) -> dict[str, Any]:
    """Return the record of an event with these lines and no other time."""
    return of("\n".join(["BEGIN:VCALENDAR", "BEGIN:VEVENT", *lines, "END:VEVENT", "END:VCALENDAR"]))


@pytest.mark.parametrize(
    ("line", "start", "zone", "instant"),
    [
        ("DTSTART:20260301T100000Z", "2026-03-01T10:00:00", "UTC", "2026-03-01T10:00:00Z"),
        ("DTSTART;TZID=Europe/Berlin:20260701T100000", "2026-07-01T10:00:00", "Europe/Berlin", "2026-07-01T08:00:00Z"),
        (
            "DTSTART;TZID=/x.org/y/Europe/Berlin:20260701T100000",
            "2026-07-01T10:00:00",
            "/x.org/y/Europe/Berlin",
            "2026-07-01T08:00:00Z",
        ),
        (
            "DTSTART;TZID=W. Europe Standard Time:20260701T100000",
            "2026-07-01T10:00:00",
            "W. Europe Standard Time",
            None,
        ),
        ("DTSTART;TZID=../../etc/passwd:20260701T100000", "2026-07-01T10:00:00", "../../etc/passwd", None),
        ("DTSTART:20260701T100000", "2026-07-01T10:00:00", None, None),
        ("DTSTART;VALUE=DATE:20260701", "2026-07-01", None, None),
        ("DTSTART:20161231T235960Z", "2016-12-31T23:59:59", "UTC", "2016-12-31T23:59:59Z"),
        ("DTSTART;TZID=Asia/Tokyo:00010101T000000", "0001-01-01T00:00:00", "Asia/Tokyo", None),
        ("DTSTART:20260230T100000Z", None, None, None),
        ("DTSTART:tomorrow", None, None, None),
    ],
)
def test_times(line: str, start: str | None, zone: str | None, instant: str | None) -> None:
    """RFC 5545, 3.3.5: UTC, a zone's clock, floating, a day; and what is no time is none."""
    data = timed(line)
    assert (data["start"], data["time_zone"], data["starts_at"]) == (start, zone, instant)
    assert data["all_day"] is (None if start is None else "T" not in start)
    assert data["fault"] is None


@pytest.mark.parametrize(
    ("lines", "end"),
    [
        (["DTEND:20260301T113000Z"], "2026-03-01T11:30:00"),
        (["DURATION:PT1H30M"], "2026-03-01T11:30:00"),
        (["DURATION:P1W2DT3S"], "2026-03-10T10:00:03"),
        (["DURATION:P999999W"], None),
        (["DURATION:soon"], None),
        ([], None),
    ],
)
def test_ends(lines: list[str], end: str | None) -> None:
    """By an end, or by a length; a length that leads out of time is none."""
    assert timed("DTSTART:20260301T100000Z", *lines)["end"] == end


@pytest.mark.parametrize("text", ["", "P", "PT", "1H", "P1H", "PT1D"])
def test_what_is_no_duration_is_none(text: str) -> None:
    """RFC 5545, 3.3.6."""
    assert duration(text) is None


def test_a_recurrence_that_differs_stands_beside_its_series() -> None:
    """One object has both, and the series gives the record its fields."""
    moved = ["BEGIN:VEVENT", "UID:a", "RECURRENCE-ID:20260308T100000Z", "DTSTART:20260308T120000Z", "SUMMARY:Later"]
    series = ["BEGIN:VEVENT", "UID:a", "DTSTART:20260301T100000Z", "RRULE:FREQ=WEEKLY", "EXDATE:20260315T100000Z"]
    lines = ["BEGIN:VCALENDAR", *moved, "END:VEVENT", *series, "SUMMARY:Weekly", "END:VEVENT", "END:VCALENDAR"]
    data = of("\n".join(lines))
    assert data["summary"] == "Weekly"
    assert data["recurrence"] == ["RRULE:FREQ=WEEKLY", "EXDATE:20260315T100000Z"]
    (override,) = data["overrides"]
    assert (override["recurrence"], override["summary"]) == ("2026-03-08T10:00:00", "Later")
    assert override["starts_at"] == "2026-03-08T12:00:00Z"


def test_people_and_words() -> None:
    """Attendees with their answers, categories that are lists, alarms, and escapes."""
    data = of(
        event(
            "a",
            r"Tea\, and \"cake\"",
            "ORGANIZER;CN=Ada:MAILTO:ada@example.org",
            'ATTENDEE;CN="Lovelace, B";ROLE=CHAIR;PARTSTAT=ACCEPTED:mailto:b@example.org',
            "ATTENDEE:urn:uuid:1",
            r"CATEGORIES:home,a\,b",
            "CATEGORIES:more",
            "BEGIN:VALARM",
            "ACTION:DISPLAY",
            "SUMMARY:not this",
            "END:VALARM",
        )
    )
    assert data["summary"] == 'Tea, and "cake"'
    assert data["organizer"] == {"address": "ada@example.org", "name": "Ada", "role": None, "status": None}
    assert data["attendees"] == [
        {"address": "b@example.org", "name": "Lovelace, B", "role": "CHAIR", "status": "ACCEPTED"},
        {"address": "urn:uuid:1", "name": None, "role": None, "status": None},
    ]
    assert data["categories"] == ["home", "a,b", "more"]
    assert data["alarms"] == 1


def test_a_todo() -> None:
    """With its due time as its end."""
    lines = ["BEGIN:VTODO", "DUE:20260301T100000Z", "COMPLETED:20260228T090000Z", "STATUS:COMPLETED", "END:VTODO"]
    data = of("\n".join(["BEGIN:VCALENDAR", *lines, "END:VCALENDAR"]))
    assert (data["kind"], data["due_at"], data["completed_at"]) == (
        "todo",
        "2026-03-01T10:00:00Z",
        "2026-02-28T09:00:00Z",
    )


def test_one_bad_line_costs_no_other() -> None:
    """It is said, and the text is there whole."""
    text = event("a", "Good", "this is no line")
    data = of(text)
    assert (data["summary"], data["fault"], data["raw"]) == ("Good", "1 of its lines cannot be read", text)


_PIECES = [
    "BEGIN:VCALENDAR",
    "END:VCALENDAR",
    "BEGIN:VEVENT",
    "END:VEVENT",
    "DTSTART:99991231T235959",
    "DTSTART;TZID=a/../b:1",
    "DURATION:-P999999W",
    "RECURRENCE-ID:x",
    "ATTENDEE",
    "SUMMARY:a",
    "CATEGORIES:\\,,",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=10).map("\n".join) | st.text())
def test_any_text_has_a_record(text: str) -> None:
    """Whatever a server holds, the run goes on, and the text is kept."""
    assert of(text)["raw"] == text
