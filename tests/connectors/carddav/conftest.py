"""The connector against a real Radicale behind a relay; each test has an account of its own."""

from collections.abc import Iterator

import pytest
from connectors.dav.account import Account
from journeys.conftest import headwater  # noqa: F401 - the fixture
from servers.dav_relay import relay_to
from servers.radicale import Radicale


@pytest.fixture
def account(radicale: Radicale) -> Iterator[Account]:
    """Somebody without any address book yet."""
    with relay_to(radicale.port) as relay:
        yield Account("carddav", radicale, radicale.register(), relay)
