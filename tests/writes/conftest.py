"""A shop to change."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from operate.desk import Desk, desk_in
from writes.shop import Shop, shop_in


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """A shop that is connected, with a key and a policy."""
    with shop_in(tmp_path) as one:
        yield one


@pytest.fixture
def unconnected(tmp_path: Path) -> Iterator[Desk]:
    """A desk whose instance is not connected, and where nothing was ever approved."""
    with desk_in(tmp_path) as one:
        yield one
