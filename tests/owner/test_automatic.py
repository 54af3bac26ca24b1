"""Instances that start by themselves: together with their owner, a few at a time, and none because somebody looks."""

import pytest
from owner.test_supervising import SOURCE, programs, signed_in, stopped, until

from headwater import limits
from headwater.link.owner import ask, is_held

WAITING = f"""
import pathlib, time
while not pathlib.Path(__file__).with_name("go").exists():
    time.sleep(0.01)
{SOURCE}
"""


def automatic(machine, name, endpoint, code=None):
    """Configure an instance that starts by itself."""
    machine.instance(name, endpoint, code)
    machine.config.write_text(machine.config.read_text() + 'startup = "automatic"\n')


def states(machine, names):
    """Return how the owner sees these instances; it is asked without a command, which would take its time."""

    def state(name):
        return ask(machine.place, "status", selection=["acme_tickets", name, None])["observation"]["state"]

    return {name: state(name) for name in names}


@pytest.mark.clause("CLI-287", "CLI-800")
def test_looking_starts_neither_the_owner_nor_them(machine, acme):
    automatic(machine, "a", acme.endpoint)
    listed = machine.type("instances", "list")["instances"]
    assert [one["startup"] for one in listed] == ["automatic"]
    for words in (["list"], ["setup", "check"], ["connectors", "list"]):
        machine.type(*words)
    for words in (["instances", "describe"], ["instances", "status"], ["connections", "list"]):
        machine.type(*words, "--connector", "acme_tickets", "--instance", "a")
    machine.type("operations", "list", "acme_tickets/a")
    assert (programs(machine), is_held(machine.place)) == ([], False)


@pytest.mark.clause("CLI-800", "CLI-807")
def test_whoever_starts_the_owner_starts_them_too(machine, acme):
    """One that fails harms no other, and one that is not automatic stays."""
    automatic(machine, "a", acme.endpoint)
    automatic(machine, "b", acme.endpoint, "raise SystemExit(3)")
    machine.instance("e", acme.endpoint)
    machine.instance("d", acme.endpoint)
    signed_in(machine, "e")
    until(lambda: states(machine, "ab") == {"a": "ready", "b": "failed"})
    assert states(machine, "de") == {"e": "ready", "d": "not_running"}
    assert machine.status("b")["start_exit_code"] == 3
    assert signed_in(machine, "a").account.id == "ada"
    assert len(programs(machine)) == 2


@pytest.mark.clause("CLI-813")
def test_one_that_was_stopped_is_not_started_by_itself(machine, acme):
    automatic(machine, "a", acme.endpoint)
    automatic(machine, "b", acme.endpoint)
    machine.start()
    until(lambda: states(machine, "ab") == {"a": "ready", "b": "ready"})
    machine.type(*stopped(machine))
    machine.type("setup", "owner-stop")
    machine.start()
    until(lambda: states(machine, "ab") == {"a": "suppressed", "b": "ready"})
    assert len(programs(machine)) == 1


@pytest.mark.clause("CLI-817")
def test_four_start_at_once(machine, acme):
    assert limits.ADAPTERS_STARTING == 4
    names = "abdefg"
    for name in names:
        automatic(machine, name, acme.endpoint, WAITING)
    machine.start()
    until(lambda: len(programs(machine)) == limits.ADAPTERS_STARTING)
    assert set(states(machine, names).values()) == {"starting"}
    assert len(programs(machine)) == limits.ADAPTERS_STARTING
    for name in names:
        (machine.folder / name / "go").touch()
    until(lambda: set(states(machine, names).values()) == {"ready"})
    assert len(programs(machine)) == len(names)


def test_a_configuration_that_cannot_be_read_costs_no_owner(machine, acme):
    automatic(machine, "a", acme.endpoint)
    machine.config.write_text(machine.config.read_text() + 'startup = "always"\n')
    machine.start()
    assert is_held(machine.place)
