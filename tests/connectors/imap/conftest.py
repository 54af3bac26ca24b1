"""One real Dovecot for all tests here; each test is a user of its own."""

import itertools
from collections.abc import Iterator

import pytest
from connectors.imap.people import Person
from journeys.conftest import headwater  # noqa: F401 - the fixture
from servers.dovecot import Dovecot, dovecot

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[Dovecot]:
    """The server with all that it offers."""
    with dovecot() as running:
        yield running


@pytest.fixture(scope="session")
def plain_server() -> Iterator[Dovecot]:
    """One that offers neither CONDSTORE nor QRESYNC, and lets people in without TLS."""
    with dovecot(plain=True, more="imap_capability = IMAP4rev1 LITERAL+ UIDPLUS\n") as running:
        yield running


@pytest.fixture
def person(server: Dovecot) -> Person:
    """Somebody with an empty inbox."""
    return Person(server, f"user{next(_numbers)}")


@pytest.fixture
def plain_person(plain_server: Dovecot) -> Person:
    """The same on the lesser server."""
    return Person(plain_server, f"user{next(_numbers)}")


@pytest.fixture
def counting_person() -> Iterator[Person]:
    """The same on a server that counts changes, and does not tell what vanished."""
    with dovecot(more="imap_capability = IMAP4rev1 LITERAL+ UIDPLUS ENABLE CONDSTORE\n") as running:
        yield Person(running, "ada")
