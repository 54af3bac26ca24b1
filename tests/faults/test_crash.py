"""Kill -9 of host or child, anywhere: what is stored is never less than what a cursor claims.

Kills fall on the host, its store or its child, at a time, at a line of the child, and at a write or sync of the
database's disk, before it, in its midst or after it. HEADWATER_KILLS says how many there are (200), HEADWATER_SEED
makes them the same again.
"""

import os
import random
import signal
from threading import Timer

import pytest
from faults.machine import LINES, STREAMS, Machine

KILLS = int(os.environ.get("HEADWATER_KILLS", "200"))
SEED = os.environ["HEADWATER_SEED"]
KILLS_IN_A_ROW = 8
ROUNDS = range(-(-KILLS // KILLS_IN_A_ROW))
KINDS = [
    *("host at a time", "host at a line", "host at a step", "host at a step"),
    *("child at a time", "child at a line", "store at a time", "store at a step"),
]


def children_of(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def kill(machine: Machine, chance: random.Random, seconds: float, steps: int) -> str:
    """Start a run and kill it, or only its connector, somewhere; a run that ended before is as good."""
    kind = chance.choice(KINDS)
    victim, _, place = kind.partition(" at a ")
    if place == "line":
        told = chance.choice(["self", "torn"]) if victim == "child" else "host {pid}"
        machine.start(*told.split(), chance.randint(1, LINES))
    elif place == "step":
        fault = {"at": chance.randint(1, steps), "kind": chance.choice(["before", "torn", "after"])}
        machine.start(fault={**fault, "alone": victim == "store"})
    else:
        host = machine.start()
        moment = Timer(chance.uniform(0, seconds), strike, [host, victim])
        moment.start()
        moment.join()
    status = machine.hosts.end().status
    assert status in (0, 1, -signal.SIGKILL)
    if status == 1:
        said = machine.hosts.said
        if victim == "store":
            assert "storage_failed" in (said["code"], said.get("cause")), said
        else:
            assert said["cause"] in ("no_done", "truncated", "exit_disagrees"), said
        assert said.get("checkpoints", {"committed": []})["committed"] == []
    return kind if status else ""


def role_of(pid: int) -> str:
    """Tell what a child of a host is: its store, its connector, or neither yet: still a copy of the host."""
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        words = file.read()
    if b"faults.hosts import store" in words:
        return "store"
    return "" if b"faults/hosts.py" in words else "child"


def strike(host: int, victim: str) -> None:
    try:
        for pid in [host] if victim == "host" else children_of(host):
            if victim in ("host", role_of(pid)):
                os.kill(pid, signal.SIGKILL)
    except OSError:  # it ended before
        return


@pytest.mark.clause("CP-410", "CP-412", "CP-460", "CP-464")
@pytest.mark.parametrize("number", ROUNDS)
def test_no_kill_loses_or_doubles_anything(number, machine, unharmed):
    """After any number of kills, a run to the end holds exactly the truth, each record once."""
    chance = random.Random(f"{SEED}:{number}")
    for _ in range(KILLS_IN_A_ROW):
        before = machine.cursors()
        kill(machine, chance, *unharmed)
        machine.check()
        assert all(machine.cursors()[stream] >= cursor for stream, cursor in before.items())
    machine.finish()
    machine.is_whole()


@pytest.mark.clause("CP-460", "CP-461", "CP-469")
def test_a_cut_off_run_goes_on_from_its_last_durable_cursor(machine):
    """The next run settles the one that was killed, and starts where its records end."""
    host = machine.start("stays", LINES // 2)
    while not machine.has("SELECT 1 FROM staged"):
        pass
    os.kill(host, signal.SIGKILL)
    assert machine.hosts.end().status == -signal.SIGKILL
    held = sum(len(machine.stored(stream)) for stream in STREAMS)
    result = machine.finish()
    assert machine.ask("SELECT status, cause FROM runs ORDER BY id LIMIT 1") == [("abandoned", "host_gone")]
    settled = machine.ask("SELECT committed, count(*) FROM decisions WHERE run = 1 GROUP BY committed")
    assert settled == [(1, len(STREAMS))]
    assert sum(row["unchanged"] for row in result["streams"]) < held


@pytest.mark.clause("CP-209", "CP-461")
def test_a_killed_connector_commits_nothing(machine):
    """A connector that dies is no restart: its records stay and its cursors do not move."""
    machine.start("self", LINES - 1)
    assert machine.hosts.end().status == 1
    assert machine.hosts.said["cause"] == "no_done"
    assert machine.hosts.said["checkpoints"]["committed"] == []
    assert machine.cursors() == {}
    assert machine.stored("alpha") != {}


@pytest.mark.parametrize("kind", ["before", "torn", "after"])
@pytest.mark.parametrize("step", [1, 2, 3, 7, 15, 40])
def test_a_kill_while_the_database_is_made_leaves_one_that_can_be_made(machine, kind, step):
    """A first run that dies at its first steps is forgotten, or found and settled, and the next one is whole."""
    machine.start(fault={"at": step, "kind": kind})
    assert machine.hosts.end().status == -signal.SIGKILL
    machine.finish()
    machine.is_whole()
