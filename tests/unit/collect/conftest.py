"""The player of scripts, for every test of the verb."""

import pytest
from vectors.notation import Player


@pytest.fixture(scope="session")
def play() -> Player:
    """Give the player of scripts."""
    return Player()
