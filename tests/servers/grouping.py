"""Tests that share a server run on one worker, so that it is started once.

A folder of `tests/connectors`, and `tests/servers`, is such a group; every other test goes wherever there is room.
"""

import re

import pytest
from xdist.scheduler import LoadScopeScheduling

_TOGETHER = re.compile(r"tests/(?:connectors/[^/]+|servers)/")


class Together(LoadScopeScheduling):
    """Hands out groups of tests, the largest first."""

    def _split_scope(self, nodeid: str) -> str:
        found = _TOGETHER.match(nodeid)
        return found[0] if found else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Together | None:
    """Schedule by group where `scripts/test` asks for it; xdist's own marks say nothing to pytest 9.2."""
    return Together(config, log) if config.getvalue("dist") == "loadgroup" else None
