"""Kill -9 of host or child, anywhere: what is stored is never less than what a cursor claims.

Kills fall at a time, at a line of the child, and at a write or sync of the database's disk, before it, in its midst or
after it. HEADWATER_KILLS says how many there are (200), HEADWATER_SEED makes them the same again.
"""

import json
import os
import random
import signal
import sys
import time
from hashlib import sha256
from pathlib import Path
from threading import Timer
from typing import Any

import apsw
import pytest
from faults.hosts import Hosts

GUEST = Path(__file__).parents[1] / "guests" / "steady.py"
STREAMS = {"alpha": range(600), "beta": range(600), "files": range(0, 600, 40)}
LINES = 2 * 600 + 15 + 3 * 24 + 1
KILLS = int(os.environ.get("HEADWATER_KILLS", "200"))
SEED = os.environ["HEADWATER_SEED"]
KILLS_IN_A_ROW = 8
ROUNDS = range(-(-KILLS // KILLS_IN_A_ROW))
KINDS = ["host at a time", "host at a line", "host at a step", "host at a step", "child at a time", "child at a line"]

# What must never be found, whatever was killed: each query counts the offences.
OFFENCES = {
    "a version that repeats the one before it": "versions v JOIN versions p ON p.seq = v.prev WHERE v.data IS p.data",
    "a record that is not its newest version": "records r WHERE version != (SELECT max(seq) FROM versions v"
    " WHERE v.stream = r.stream AND v.key = r.key)",
    "a version without a record": "versions v WHERE NOT EXISTS (SELECT 1 FROM records r"
    " WHERE r.stream = v.stream AND r.key = v.key)",
    "a wrong number of records": "streams s WHERE live != (SELECT count(*) FROM records WHERE stream = s.id)",
    "a cursor that is staged for an ended run": "staged s JOIN runs r ON r.id = s.run WHERE r.status != 'running'",
    "a run that counts other versions than it wrote": "runs r WHERE (SELECT sum(accepted + deleted) FROM run_streams"
    " WHERE run = r.id) != (SELECT count(*) FROM versions WHERE run = r.id)",
    "a cursor of a run that did not commit it": "checkpoints c WHERE NOT EXISTS (SELECT 1 FROM decisions d"
    " WHERE d.run = c.run AND d.stream = c.stream AND d.committed)",
    "a receipt of a sound record": "receipts",
}


class Machine:
    """A Headwater in a folder of its own, over the steady guest, and what its database holds."""

    def __init__(self, folder: Path, hosts: Hosts) -> None:
        self.hosts = hosts
        properties = {"id": {"type": "string"}, "text": {"type": "string"}, "blob_ref": {"type": "object"}}
        schema = {"type": "object", "properties": properties}
        common = {"primary_key": ["id"], "incremental": True, "semantics": "mutable_state", "schema": schema}
        self.manifest = folder / "manifest.json"
        streams = [{"name": name, **common} for name in STREAMS]
        self.manifest.write_text(json.dumps({"connector_id": "https://x.example/steady", "streams": streams}))
        self.where = ["--config", str(folder / "c.toml"), "--state-dir", str(folder / "s"), "--output", "json"]
        self.state = folder / "s"
        self.database = self.state / "headwater.db"

    def start(self, *told: object, fault: dict[str, Any] | None = None) -> int:
        """Start a run, and return the pid of its host."""
        program = [sys.executable, "-SE", str(GUEST), *map(str, told)]
        return self.hosts.start([*self.where, "collect", "--manifest", str(self.manifest), "--", *program], fault)

    def finish(self) -> dict[str, Any]:
        """Run to the end and return the result."""
        self.start()
        assert self.hosts.end()[0] == 0, self.hosts.said
        return self.hosts.said

    def ask(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        connection = apsw.Connection(str(self.database))
        connection.set_busy_timeout(10_000)
        try:
            return connection.execute(sql, values).fetchall()
        finally:
            connection.close()

    def has(self, sql: str) -> bool:
        """Whether the database has tables yet, and a query gives a row."""
        if not self.database.exists() or not self.ask("SELECT 1 FROM sqlite_master WHERE name = 'events'"):
            return False
        return bool(self.ask(sql))

    def stored(self, stream: str) -> dict[str, Any]:
        rows = self.ask(
            "SELECT r.key, v.data FROM records r JOIN versions v ON v.seq = r.version"
            " JOIN streams s ON s.id = r.stream WHERE s.name = ?",
            stream,
        )
        return {key: json.loads(data) for key, data in rows}

    def cursors(self) -> dict[str, int]:
        rows = self.ask("SELECT stream, cursor FROM checkpoints") if self.has("SELECT 1") else []
        return {stream: json.loads(cursor)["next"] for stream, cursor in rows}

    def check(self) -> None:
        """Hold the database to its promises, whatever happened to the run."""
        if not self.has("SELECT 1"):
            return
        keys = {stream: self.stored(stream).keys() for stream in STREAMS}
        for stream, cursor in self.ask(
            "SELECT stream, cursor FROM checkpoints UNION SELECT stream, cursor FROM staged"
        ):
            claimed = {f"{n:05d}" for n in STREAMS[stream] if n < json.loads(cursor)["next"]}
            assert claimed <= keys[stream], f"{stream} claims {cursor}"
        assert self.ask("PRAGMA integrity_check") == [("ok",)]
        assert self.ask("PRAGMA foreign_key_check") == []
        assert {name: self.ask(f"SELECT count(*) FROM {sql}")[0][0] for name, sql in OFFENCES.items()} == dict.fromkeys(
            OFFENCES, 0
        )
        blobs = self.ask("SELECT sha256, size_bytes FROM blobs")
        for digest, size in blobs:
            content = (self.state / "blobs" / digest[:2] / digest).read_bytes()
            assert (len(content), sha256(content).hexdigest()) == (size, digest)
        referred = {data["blob_ref"]["sha256"] for data in self.stored("files").values()}
        assert referred <= {digest for digest, _ in blobs}


def truth(stream: str, data: dict[str, Any], position: int) -> bool:
    text = f"{stream} {position}"
    blob = data.get("blob_ref", {}).get("sha256", "")
    return (data["id"], data["text"]) == (f"{position:05d}", text) and blob in ("", sha256(text.encode()).hexdigest())


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
        machine.start(fault={"at": chance.randint(1, steps), "kind": chance.choice(["before", "torn", "after"])})
    else:
        host = machine.start()
        moment = Timer(chance.uniform(0, seconds), strike, [host, victim])
        moment.start()
        moment.join()
    status, _ = machine.hosts.end()
    assert status in (0, 1, -signal.SIGKILL)
    if status == 1:
        assert machine.hosts.said["cause"] in ("no_done", "truncated"), machine.hosts.said
        assert machine.hosts.said["checkpoints"]["committed"] == []
    return kind if status else ""


def strike(host: int, victim: str) -> None:
    try:
        for pid in children_of(host) if victim == "child" else [host]:
            os.kill(pid, signal.SIGKILL)
    except OSError:  # it ended before
        return


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """Start the server of hosts."""
    server = Hosts(tmp_path_factory.mktemp("hosts"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory, hosts):
    """Measure a run that nobody kills: its seconds, and the steps of its disk."""
    machine = Machine(tmp_path_factory.mktemp("unharmed"), hosts)
    began = time.monotonic()
    machine.start()
    _, steps = hosts.end()
    return time.monotonic() - began, steps


@pytest.mark.clause("CP-410", "CP-412", "CP-460", "CP-464")
@pytest.mark.parametrize("number", ROUNDS)
def test_no_kill_loses_or_doubles_anything(number, tmp_path, hosts, unharmed):
    """After any number of kills, a run to the end holds exactly the truth, each record once."""
    chance = random.Random(f"{SEED}:{number}")
    machine = Machine(tmp_path, hosts)
    for _ in range(KILLS_IN_A_ROW):
        before = machine.cursors()
        kill(machine, chance, *unharmed)
        machine.check()
        assert all(machine.cursors()[stream] >= cursor for stream, cursor in before.items())
    machine.finish()
    machine.check()
    for stream, positions in STREAMS.items():
        held = machine.stored(stream)
        assert held.keys() == {f"{n:05d}" for n in positions}
        assert all(truth(stream, held[f"{n:05d}"], n) for n in positions)
    assert machine.cursors() == dict.fromkeys(STREAMS, 600)
    assert machine.ask("SELECT count(*) FROM versions") == [(sum(map(len, STREAMS.values())),)]
    assert machine.ask("SELECT count(*) FROM runs WHERE status = 'running'") == [(0,)]
    assert list((machine.state / "spool").iterdir()) == []


@pytest.mark.clause("CP-460", "CP-461", "CP-469")
def test_a_cut_off_run_goes_on_from_its_last_durable_cursor(tmp_path, hosts):
    """The next run settles the one that was killed, and starts where its records end."""
    machine = Machine(tmp_path, hosts)
    host = machine.start("stays", LINES // 2)
    while not machine.has("SELECT 1 FROM staged"):
        pass
    os.kill(host, signal.SIGKILL)
    assert hosts.end()[0] == -signal.SIGKILL
    held = sum(len(machine.stored(stream)) for stream in STREAMS)
    result = machine.finish()
    assert machine.ask("SELECT status, cause FROM runs ORDER BY id LIMIT 1") == [("abandoned", "host_gone")]
    settled = machine.ask("SELECT committed, count(*) FROM decisions WHERE run = 1 GROUP BY committed")
    assert settled == [(1, len(STREAMS))]
    assert sum(row["unchanged"] for row in result["streams"]) < held


@pytest.mark.clause("CP-209", "CP-461")
def test_a_killed_connector_commits_nothing(tmp_path, hosts):
    """A connector that dies is no restart: its records stay and its cursors do not move."""
    machine = Machine(tmp_path, hosts)
    machine.start("self", LINES - 1)
    assert hosts.end()[0] == 1
    assert hosts.said["cause"] == "no_done"
    assert hosts.said["checkpoints"]["committed"] == []
    assert machine.cursors() == {}
    assert machine.stored("alpha") != {}


@pytest.mark.parametrize("kind", ["before", "torn", "after"])
@pytest.mark.parametrize("step", [1, 2, 3, 7, 15, 40])
def test_a_kill_while_the_database_is_made_leaves_one_that_can_be_made(tmp_path, hosts, kind, step):
    """A first run that dies at its first steps is forgotten, or found and settled, and the next one is whole."""
    machine = Machine(tmp_path, hosts)
    machine.start(fault={"at": step, "kind": kind})
    assert hosts.end()[0] == -signal.SIGKILL
    machine.finish()
    machine.check()
    assert machine.cursors() == dict.fromkeys(STREAMS, 600)
