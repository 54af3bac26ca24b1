"""A shop to ask."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from journeys.conftest import Headwater
from operate.desk import Desk, desk_in


@pytest.fixture
def unconnected(tmp_path: Path) -> Iterator[Desk]:
    """A desk whose instance is not connected."""
    with desk_in(tmp_path) as one:
        yield one


@pytest.fixture
def desk(unconnected: Desk) -> Desk:
    """A desk whose instance is connected."""
    unconnected.connect()
    return unconnected


@pytest.fixture
def typed(desk: Desk) -> Headwater:
    """The command line of a Headwater whose shop is connected."""
    return desk.headwater
