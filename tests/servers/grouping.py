"""Tests that share a server run on one worker, so that it is started once."""

from collections.abc import Sequence

import pytest

SHARED = ("synapse", "oidc_provider", "radicale")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Put each test that asks for a server into the server's group."""
    for item in items:
        for name in SHARED:
            if name in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(name))
                break
