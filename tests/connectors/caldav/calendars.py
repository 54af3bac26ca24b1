"""Calendars for tests."""

from connectors.dav.account import Account


def event(uid: str, summary: str = "", *lines: str) -> str:
    """Return an event as iCalendar."""
    body = [f"UID:{uid}", "DTSTAMP:20260101T000000Z", "DTSTART:20260301T100000Z", "DURATION:PT1H", f"SUMMARY:{summary}"]
    inside = ["BEGIN:VEVENT", *body, *lines, "END:VEVENT"]
    return "\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//tests//EN", *inside, "END:VCALENDAR", ""])


def filled(account: Account, count: int = 3, name: str = "Work") -> str:
    """Make a calendar with events, and return its path."""
    calendar = account.owner.make_calendar(name)
    for number in range(count):
        account.owner.put(f"{calendar}e{number}.ics", event(f"{name}-{number}", f"{name} {number}"))
    return calendar
