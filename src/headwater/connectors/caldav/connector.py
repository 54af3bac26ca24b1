"""The calendars of an account on a CalDAV server, and what is in them."""

from typing import Any, Final

from headwater.connectors.caldav.events import record
from headwater.connectors.dav.account import Service
from headwater.connectors.dav.changes import CTAG, TOKEN
from headwater.connectors.dav.collecting import Walk
from headwater.connectors.dav.xml import DAV, Resource
from headwater.sdk import Connector, StreamRun

CALDAV: Final = "{urn:ietf:params:xml:ns:caldav}"
APPLE: Final = "{http://apple.com/ns/ical/}"
_NAME, _DESCRIPTION = DAV + "displayname", CALDAV + "calendar-description"
_COLOR, _COMPONENTS = APPLE + "calendar-color", CALDAV + "supported-calendar-component-set"
SERVICE: Final = Service(
    name="CalDAV",
    home=CALDAV + "calendar-home-set",
    kind=CALDAV + "calendar",
    data=CALDAV + "calendar-data",
    multiget=CALDAV + "calendar-multiget",
    properties=(_NAME, _DESCRIPTION, _COLOR, _COMPONENTS, TOKEN, CTAG),
)

connector = Connector()


def calendar(found: Resource) -> dict[str, Any]:
    """Return a calendar's record."""
    return {
        "id": found.path,
        "name": found.text(_NAME) or None,
        "description": found.text(_DESCRIPTION) or None,
        "color": found.text(_COLOR) or None,
        "components": [comp.get("name", "") for comp in found.properties.get(_COMPONENTS, ())],
    }


@connector.stream("calendars")
def calendars(stream: StreamRun) -> None:
    """Collect the calendars, and with each what changed in it."""
    Walk(stream, SERVICE, record).collect("events", calendar)


@connector.stream("events")
def events(stream: StreamRun) -> None:
    """Fetch the objects that a run asks for by name, without their calendars."""
    if stream.run.wants("calendars"):
        return
    if stream.resources is None:
        stream.skip("scope_not_supported", "Events come with their calendars, or by name.")
        return
    Walk(stream, SERVICE, record).fetch(stream, "calendars")


connector.run()
