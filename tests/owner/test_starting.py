"""Starts that fail each for a reason of their own, and the bounds of a start and of a stop."""

import asyncio
import sys
from contextlib import suppress

import pytest
from owner.test_supervising import SOURCE, programs, until

from headwater import clock, limits
from headwater.errors import HeadwaterError
from headwater.owner.served import identified
from headwater.owner.supervisor import Supervisor
from headwater.settings import Settings

SILENT = "import signal\nsignal.pause()\n"


def observed(machine, instance_id):
    """Start an instance and stop it; return how it stood between, and the seconds that the stop took."""
    settings = Settings(machine.config, machine.state)

    async def work():
        supervisor, one = Supervisor(settings, "owner_x"), identified(settings, instance_id)
        with suppress(HeadwaterError):
            await supervisor.adapter(one, 60)
        seen, began = supervisor.observation(one), clock.monotonic()
        await supervisor.stop_all()
        return seen, clock.monotonic() - began

    return asyncio.run(work())


@pytest.mark.clause("CLI-817", "CLI-818")
def test_a_program_that_says_nothing_has_ten_seconds(machine, acme, monkeypatch):
    """Then it is ended, and the start has failed by its deadline."""
    assert limits.HOOK_START_SECONDS == 10
    monkeypatch.setattr(limits, "HOOK_START_SECONDS", 0.5)
    seen, _ = observed(machine, machine.instance("a", acme.endpoint, SILENT))
    assert (seen["state"], seen["failure"], seen["start_failure"]) == ("failed", "unavailable", "handshake_deadline")
    assert programs(machine) == []


@pytest.mark.clause("CLI-817")
@pytest.mark.parametrize(("allowed", "waits"), [(60.0, False), (1.0, True)])
def test_a_program_has_five_seconds_to_end_by_itself(machine, acme, monkeypatch, allowed, waits):
    """One that ends by itself is not waited for any longer; one that does not is ended when they are over."""
    assert limits.STOP_SECONDS == 5
    monkeypatch.setattr(limits, "STOP_SECONDS", allowed)
    last_words = "\n".join(
        [
            "import atexit, os, signal, threading",
            "def leave(*_):",
            "    threading.Event().wait()" if waits else "    os._exit(7)",
            "signal.signal(signal.SIGTERM, leave)",
            "atexit.register(leave)",  # it may see the end of its input first
        ]
    )
    seen, seconds = observed(machine, machine.instance("a", acme.endpoint, f"{last_words}\n{SOURCE}"))
    assert seen["state"] == "ready"
    assert (seconds >= allowed) is waits
    until(lambda: programs(machine) == [])


@pytest.mark.clause("CLI-818")
def test_a_program_that_cannot_be_started_at_all_is_told(machine, acme, monkeypatch):
    instance_id = machine.instance("a", acme.endpoint)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    seen, _ = observed(machine, instance_id)
    assert (seen["state"], seen["failure"], seen["start_failure"]) == ("failed", "unavailable", "spawn")
    assert "start_log" not in seen


@pytest.mark.clause("CLI-818")
def test_files_that_are_not_those_that_were_added_are_not_started(machine, acme):
    """An added connector is started as it was added, or not at all."""
    machine.instance("a", acme.endpoint)
    machine.type("connectors", "add", str(machine.folder / "a"), "--name", "acme_tickets")
    config = machine.config.read_text().replace("instances.a]", "instances.added]")
    machine.config.write_text(config)
    added = machine.state / "connectors" / "acme_tickets"
    code = next(added.rglob("integration.py"))
    code.chmod(0o600)
    code.write_text(SOURCE + "\n# changed\n")
    seen, _ = observed(machine, "acme_tickets.added")
    assert (seen["state"], seen["failure"], seen["start_failure"]) == ("failed", "unavailable", "digest")
    assert programs(machine) == []
