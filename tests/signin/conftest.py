"""What the tests of signing in share: asyncio for those that await, and a provider that grants at once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from signin.granting import Granting
from signin.provider import Provider, provider
from signin.test_connecting import Consenting


@pytest.fixture
def anyio_backend() -> str:
    """The event loop that Headwater runs in."""
    return "asyncio"


@pytest.fixture
def granting() -> Granting:
    """A provider's behaviour, which a test may change."""
    return Granting()


@pytest.fixture
def running(granting: Granting) -> Iterator[Provider]:
    """That provider, over HTTP."""
    with provider(granting) as running:
        yield running


@pytest.fixture
def headwater(tmp_path: Path) -> Consenting:
    """A Headwater that is connected to nothing."""
    return Consenting(tmp_path)
