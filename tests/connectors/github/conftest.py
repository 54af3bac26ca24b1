"""The connector against the local provider; each test has an account of its own."""

from collections.abc import Iterator

import pytest
from connectors.github.account import Account
from journeys.conftest import headwater  # noqa: F401 - the fixture
from servers.github.provider import github_of
from servers.github.world import World


@pytest.fixture
def account() -> Iterator[Account]:
    """An account that has nothing yet."""
    with github_of(World()) as github:
        yield Account(github)
