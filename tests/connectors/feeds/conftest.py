"""A web site for each test."""

from collections.abc import Iterator

import pytest
from connectors.feeds.site import Site, site
from journeys.conftest import headwater  # noqa: F401 - the fixture


@pytest.fixture(name="site")
def running() -> Iterator[Site]:
    """A site that has nothing yet."""
    with site() as ours:
        yield ours
