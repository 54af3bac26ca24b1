"""A shop to change."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from writes.shop import Shop, shop_in


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """A shop that is connected, with a key and a policy."""
    with shop_in(tmp_path) as one:
        yield one
