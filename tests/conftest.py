"""One seed for a whole test run, printed at its head: the crash tests and whoever draws lots use it."""

import gc
import os
import random
import signal

# Servers that more than one part of the tests runs against.
pytest_plugins = ["servers.grouping", "servers.oidc", "servers.radicale", "servers.synapse"]

MANY_DESCRIPTORS = 200
SEED = "HEADWATER_SEED"


def pytest_configure():
    """Choose the seed before any worker starts, so that all of them have the same.

    What a shell in the background has ignored for its children is heard again: commands are interrupted in tests.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    os.environ.setdefault(SEED, str(random.SystemRandom().randrange(1 << 32)))


def pytest_report_header():
    """Print the seed: the same one makes the same kills."""
    return f"{SEED}={os.environ[SEED]}"


OFTEN = gc.get_threshold()


def pytest_runtest_teardown() -> None:
    """Let go of what a test left in circles: the command line, once it is imported, collects garbage rarely."""
    gc.set_threshold(*OFTEN)
    gc.unfreeze()
    if len(os.listdir("/proc/self/fd")) > MANY_DESCRIPTORS:
        gc.collect()
