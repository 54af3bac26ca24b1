"""A real Synapse behind a relay; each test has accounts of its own."""

from collections.abc import Iterator

import pytest
from connectors.matrix.people import Account
from journeys.conftest import headwater  # noqa: F401 - the fixture
from servers.relay import relay_to
from servers.synapse import Synapse, User


@pytest.fixture
def account(synapse: Synapse) -> Iterator[Account]:
    """Somebody without any room yet."""
    with relay_to(synapse.base_url) as relay:
        yield Account(synapse.register(), relay)


@pytest.fixture
def friend(synapse: Synapse) -> User:
    """Somebody else."""
    return synapse.register()
