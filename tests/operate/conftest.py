"""A shop to ask."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from journeys.conftest import Headwater
from operate.counter import Counter, counter_in
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
def closed(tmp_path: Path) -> Iterator[Counter]:
    """A counter, whose operations are code, that is not connected."""
    with counter_in(tmp_path) as one:
        yield one


@pytest.fixture
def counter(closed: Counter) -> Counter:
    """A counter that is connected, and was never asked."""
    closed.connect()
    return closed


@pytest.fixture
def typed(desk: Desk) -> Headwater:
    """The command line of a Headwater whose shop is connected."""
    return desk.headwater
