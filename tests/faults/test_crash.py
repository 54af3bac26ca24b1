"""Kill -9 at random points, of host or child: what is stored is never less than what a cursor claims.

HEADWATER_KILLS says how many kills there are (50), HEADWATER_SEED makes them the same again.
"""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

GUEST = Path(__file__).parents[1] / "guests" / "steady.py"
RECORDS = 1_200
KILLS = int(os.environ.get("HEADWATER_KILLS", "50"))
SEED = os.environ["HEADWATER_SEED"]
KILLS_IN_A_ROW = 5
ROUNDS = range(-(-KILLS // KILLS_IN_A_ROW))


class Machine:
    """A Headwater in a folder of its own, over the steady guest."""

    def __init__(self, folder: Path) -> None:
        manifest = folder / "manifest.json"
        streams = [{"name": name, "primary_key": ["id"], "incremental": True} for name in ("alpha", "beta")]
        manifest.write_text(json.dumps({"connector_id": "https://x.example/steady", "streams": streams}))
        where = ["--config", str(folder / "c.toml"), "--state-dir", str(folder / "s"), "--output", "json"]
        collect = ["collect", "--manifest", str(manifest), "--", sys.executable, str(GUEST)]
        self.command = [sys.executable, "-m", "headwater", *where, *collect]
        self.database = folder / "s" / "headwater.db"

    def start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def kill(self, after_seconds: float, *, child: bool) -> None:
        """Start a run and kill it, or only its connector, after a time; a run that ended before is as good."""
        process = self.start()
        try:
            process.wait(after_seconds)
        except subprocess.TimeoutExpired:
            victims = children_of(process.pid) if child else [process.pid]
            for victim in victims:
                os.kill(victim, signal.SIGKILL)
        process.communicate(timeout=60)

    def finish(self) -> dict:
        """Run to the end and return the result."""
        done = subprocess.run(self.command, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["result"]

    def ask(self, sql: str) -> list:
        connection = apsw.Connection(str(self.database))
        connection.set_busy_timeout(10_000)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()


def children_of(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def stored(machine: Machine, stream: str) -> dict[str, str]:
    rows = machine.ask(
        "SELECT r.key, v.data FROM records r JOIN versions v ON v.seq = r.version"
        f" JOIN streams s ON s.id = r.stream WHERE s.name = '{stream}'"
    )
    return dict(rows)


def check(machine: Machine) -> None:
    """Hold the database to its promises, whatever happened to the run."""
    if not machine.database.exists() or not machine.ask("SELECT 1 FROM sqlite_master WHERE name = 'staged'"):
        return
    claims = machine.ask("SELECT stream, cursor FROM checkpoints") + machine.ask("SELECT stream, cursor FROM staged")
    for stream, cursor in claims:
        keys = stored(machine, stream).keys()
        missing = [n for n in range(json.loads(cursor)["next"]) if f"{n:05d}" not in keys]
        assert missing == [], f"{stream} claims {cursor}"
    repeated = machine.ask("SELECT count(*) FROM versions v JOIN versions p ON p.seq = v.prev WHERE v.data IS p.data")
    assert repeated == [(0,)]
    assert machine.ask("PRAGMA integrity_check") == [("ok",)]
    assert machine.ask(
        "SELECT count(*) FROM streams s WHERE live != (SELECT count(*) FROM records WHERE stream = s.id)"
    ) == [(0,)]


@pytest.mark.clause("CP-410", "CP-412", "CP-460", "CP-464")
@pytest.mark.parametrize("number", ROUNDS)
def test_no_kill_loses_or_doubles_anything(number, tmp_path):
    """After any number of kills, a run to the end holds exactly the truth, each record once."""
    chance = random.Random(f"{SEED}:{number}")
    machine = Machine(tmp_path)
    for _ in range(KILLS_IN_A_ROW):
        machine.kill(chance.uniform(0.05, 0.7), child=chance.random() < 0.2)
        check(machine)
    result = machine.finish()
    check(machine)
    for stream in ("alpha", "beta"):
        truth = {f"{n:05d}": {"id": f"{n:05d}", "text": f"{stream} {n}"} for n in range(RECORDS)}
        assert {key: json.loads(text) for key, text in stored(machine, stream).items()} == truth
    assert machine.ask("SELECT count(*) FROM versions") == [(2 * RECORDS,)]
    assert machine.ask("SELECT count(*) FROM runs WHERE status = 'running'") == [(0,)]
    assert machine.ask("SELECT count(*) FROM staged") == [(0,)]
    assert sorted(result["checkpoints"]["committed"]) in ([], ["alpha", "beta"])


@pytest.mark.clause("CP-460", "CP-461", "CP-469")
def test_a_cut_off_run_goes_on_from_its_last_durable_cursor(tmp_path):
    """The next run settles the one that was killed, and starts where its records end."""
    machine = Machine(tmp_path)
    process = machine.start()
    staged = "SELECT count(*) FROM staged"
    while not (machine.database.exists() and tables(machine) and machine.ask(staged)[0][0] == 2):
        assert process.poll() is None, "the run ended before anything was staged"
    process.kill()
    process.communicate(timeout=60)
    held = sum(len(stored(machine, stream)) for stream in ("alpha", "beta"))
    result = machine.finish()
    assert machine.ask("SELECT status, cause FROM runs ORDER BY id LIMIT 1") == [("abandoned", "host_gone")]
    settled = "SELECT stream, committed FROM decisions WHERE run = 1 ORDER BY stream"
    assert machine.ask(settled) == [("alpha", 1), ("beta", 1)]
    sent_again = sum(row["unchanged"] for row in result["streams"])
    assert sent_again < held


def tables(machine: Machine) -> bool:
    return bool(machine.ask("SELECT 1 FROM sqlite_master WHERE name = 'staged'"))


@pytest.mark.clause("CP-209", "CP-461")
def test_a_killed_connector_commits_nothing(tmp_path):
    """A connector that dies is no restart: its records stay and its cursors do not move."""
    machine = Machine(tmp_path)
    process = machine.start()
    while not (machine.database.exists() and tables(machine) and machine.ask("SELECT count(*) FROM staged")[0][0]):
        assert process.poll() is None
    for child in children_of(process.pid):
        os.kill(child, signal.SIGKILL)
    _, stderr = process.communicate(timeout=60)
    data = json.loads(stderr)["error"]["data"]
    assert (process.returncode, data["cause"]) == (1, "no_done")
    assert data["checkpoints"]["committed"] == []
    assert machine.ask("SELECT count(*) FROM checkpoints") == [(0,)]
    assert stored(machine, "alpha") != {}
