"""The address books of an account on a CardDAV server, and what is in them."""

from typing import Any, Final

from headwater.connectors.carddav.contacts import record
from headwater.connectors.dav.account import Service
from headwater.connectors.dav.changes import CTAG, TOKEN
from headwater.connectors.dav.collecting import Walk
from headwater.connectors.dav.xml import DAV, Resource
from headwater.sdk import Connector, StreamRun

CARDDAV: Final = "{urn:ietf:params:xml:ns:carddav}"
_NAME, _DESCRIPTION = DAV + "displayname", CARDDAV + "addressbook-description"
SERVICE: Final = Service(
    name="CardDAV",
    home=CARDDAV + "addressbook-home-set",
    kind=CARDDAV + "addressbook",
    data=CARDDAV + "address-data",
    multiget=CARDDAV + "addressbook-multiget",
    properties=(_NAME, _DESCRIPTION, TOKEN, CTAG),
)

connector = Connector()


def address_book(found: Resource) -> dict[str, Any]:
    """Return an address book's record."""
    return {"id": found.path, "name": found.text(_NAME) or None, "description": found.text(_DESCRIPTION) or None}


@connector.stream("address_books")
def address_books(stream: StreamRun) -> None:
    """Collect the address books, and with each what changed in it."""
    Walk(stream, SERVICE, record).collect("contacts", address_book)


@connector.stream("contacts")
def contacts(stream: StreamRun) -> None:
    """Fetch the cards that a run asks for by name, without their address books."""
    if stream.run.wants("address_books"):
        return
    if stream.resources is None:
        stream.skip("scope_not_supported", "Contacts come with their address books, or by name.")
        return
    Walk(stream, SERVICE, record).fetch(stream, "address_books")


connector.run()
