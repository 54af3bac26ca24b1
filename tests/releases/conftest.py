"""What the tests of releases share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from operate.desk import desk_in
from releases.making import Person
from releases.shelf import Shelf, definition


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """Somebody who has a configuration and installed nothing."""
    return Person(tmp_path)


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    """A desk that nothing is connected at, and no release."""
    with desk_in(tmp_path) as desk:
        yield Shelf(desk)


@pytest.fixture
def served(shelf: Shelf) -> str:
    """The digest of a release that serves `acme/me`, which is connected at the desk and was asked nothing."""
    digest = shelf.opted("acme/me", {"services/acme.toml": definition(shelf.url)})
    shelf.place("acme/me")
    shelf.connect("acme/me")
    shelf.desk.running.asked.clear()
    return digest
