"""Tests that await run in asyncio."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The event loop that Headwater runs in."""
    return "asyncio"
