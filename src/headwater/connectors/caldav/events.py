"""The record of one calendar object: an event, a to-do or a journal entry, with what differs in single recurrences."""

from typing import Any, Final

from headwater.connectors.caldav.times import Moment, duration, moment
from headwater.connectors.dav.content import BrokenError, Component, Line, components

KINDS: Final = {"VEVENT": "event", "VTODO": "todo", "VJOURNAL": "journal"}
_TEXTS: Final = ("SUMMARY", "DESCRIPTION", "LOCATION", "STATUS", "URL")


def record(path: str, calendar: str, etag: str, text: str) -> dict[str, Any]:
    """Return the record. What cannot be read is null, and `fault` says so; `raw` is always the whole text."""
    found, fault = _objects(text)
    master = next((item for item in found if item.first("RECURRENCE-ID") is None), found[0] if found else None)
    others = [item for item in found if item is not master]
    data = _fields(master or Component(""))
    return {
        "id": path,
        "calendar": calendar,
        "etag": etag or None,
        "kind": KINDS[master.name] if master else None,
        **data,
        "overrides": [_override(item) for item in others],
        "fault": fault,
        "raw": text,
    }


def _objects(text: str) -> tuple[list[Component], str | None]:
    try:
        outer, unread = components(text)
    except BrokenError as error:
        return [], str(error)
    found = [
        item for calendar in outer if calendar.name == "VCALENDAR" for item in calendar.inside if item.name in KINDS
    ]
    if not found:
        return [], "it has neither event, to-do nor journal entry"
    return found, f"{unread} of its lines cannot be read" if unread else None


def _fields(item: Component) -> dict[str, Any]:
    start, end = _span(item)
    return {
        "uid": item.text("UID"),
        **{name.lower(): item.text(name) for name in _TEXTS},
        **_times(start, end),
        "due_at": _instant(item, "DUE"),
        "completed_at": _instant(item, "COMPLETED"),
        "created_at": _instant(item, "CREATED"),
        "modified_at": _instant(item, "LAST-MODIFIED"),
        "organizer": _person(item.first("ORGANIZER")),
        "attendees": [person for line in item.all("ATTENDEE") if (person := _person(line))],
        "categories": [text for line in item.all("CATEGORIES") for text in line.parts(",") if text],
        "recurrence": [f"{line.name}:{line.value}" for line in item.lines if line.name in {"RRULE", "RDATE", "EXDATE"}],
        "alarms": sum(inner.name == "VALARM" for inner in item.inside),
    }


def _override(item: Component) -> dict[str, Any]:
    """Return what one recurrence of its own says; the whole of it is in `raw`."""
    which = moment(item.first("RECURRENCE-ID"))
    start, end = _span(item)
    return {
        "recurrence": which.written if which else None,
        "summary": item.text("SUMMARY"),
        "status": item.text("STATUS"),
        **_times(start, end),
    }


def _times(start: Moment | None, end: Moment | None) -> dict[str, Any]:
    return {
        "start": start.written if start else None,
        "end": end.written if end else None,
        "all_day": start.all_day if start else None,
        "time_zone": start.zone or None if start else None,
        "starts_at": start.instant if start else None,
        "ends_at": end.instant if end else None,
    }


def _span(item: Component) -> tuple[Moment | None, Moment | None]:
    start, end = moment(item.first("DTSTART")), moment(item.first("DTEND") or item.first("DUE"))
    length = duration(item.text("DURATION") or "")
    if end is None and start is not None and length is not None:
        try:
            end = start.after(length)
        except OverflowError:
            end = None
    return start, end


def _instant(item: Component, name: str) -> str | None:
    found = moment(item.first(name))
    return found.instant if found else None


def _person(line: Line | None) -> dict[str, Any] | None:
    if line is None:
        return None
    address = line.value.strip()
    is_mail = address.lower().startswith("mailto:")
    return {
        "address": address[len("mailto:") :] if is_mail else address,
        "name": line.parameter("CN") or None,
        "role": line.parameter("ROLE") or None,
        "status": line.parameter("PARTSTAT") or None,
    }
