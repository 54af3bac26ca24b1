"""Starts that fail each for a reason of their own, and the bounds of a start and of a stop."""

import asyncio
import sys
import time
from contextlib import suppress

import pytest
from owner.test_supervising import SOURCE, programs, until

from headwater import limits
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
        seen, began = supervisor.observation(one), time.monotonic()
        await supervisor.stop_all()
        return seen, time.monotonic() - began

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
def test_a_program_has_five_seconds_to_end_by_itself(machine, acme, monkeypatch):
    """One that needs a part of them does; one that needs more is ended."""
    assert limits.STOP_SECONDS == 5
    monkeypatch.setattr(limits, "STOP_SECONDS", 2.0)
    last_words = "\n".join(
        [
            "import os, pathlib, signal, threading",
            "def leave(*_):",
            "    if pathlib.Path(__file__).with_name('wait').exists(): threading.Event().wait()",
            "    os._exit(7)",
            "signal.signal(signal.SIGTERM, leave)",
        ]
    )
    instance_id = machine.instance("a", acme.endpoint, f"{last_words}\n{SOURCE}")
    _, quick = observed(machine, instance_id)
    (machine.folder / "a" / "wait").touch()
    _, slow = observed(machine, instance_id)
    assert quick < 2.0 <= slow
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
