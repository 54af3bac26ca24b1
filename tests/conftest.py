"""One seed for a whole test run, printed at its head: the crash tests and whoever draws lots use it."""

import os
import random

# Servers that more than one part of the tests runs against.
pytest_plugins = ["servers.grouping", "servers.oidc", "servers.radicale", "servers.synapse"]

SEED = "HEADWATER_SEED"


def pytest_configure():
    """Choose the seed before any worker starts, so that all of them have the same."""
    os.environ.setdefault(SEED, str(random.SystemRandom().randrange(1 << 32)))


def pytest_report_header():
    """Print the seed: the same one makes the same kills."""
    return f"{SEED}={os.environ[SEED]}"
