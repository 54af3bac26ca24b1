"""A server of hosts for each module, and what a run without a fault costs."""

import time

import pytest
from faults.hosts import Hosts
from faults.machine import Machine


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """Start the server of hosts."""
    server = Hosts(tmp_path_factory.mktemp("hosts"))
    yield server
    server.close()


@pytest.fixture
def machine(tmp_path, hosts):
    """A Headwater that has seen nothing yet."""
    return Machine(tmp_path, hosts)


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory, hosts):
    """Measure a run without a fault: its seconds, and the steps of its disk."""
    machine = Machine(tmp_path_factory.mktemp("unharmed"), hosts)
    began = time.monotonic()
    machine.start()
    steps = hosts.end().steps
    return time.monotonic() - began, steps
