"""What the tests of releases share."""

from pathlib import Path

import pytest
from releases.making import Person


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """Somebody who has a configuration and installed nothing."""
    return Person(tmp_path)
