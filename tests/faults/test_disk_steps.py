"""A disk that fails at any write or sync, once or for good: the run says so, claims nothing, and the next is whole.

HEADWATER_FAULTS says how many faults there are (24), HEADWATER_SEED makes them the same again.
"""

import os
import random

import apsw
import pytest
from faults.hosts import Disk
from faults.machine import Machine

from headwater.collect.checkpoints import Decision
from headwater.collect.effects import Stage
from headwater.collect.plan import RunPlan, plan_scope
from headwater.collect.ports import Conclusion
from headwater.collect.session import Facts
from headwater.collect.verdict import Verdict
from headwater.errors import HeadwaterError
from headwater.manifest.declaration import Declaration, Stream
from headwater.store.blobs import BlobFolder
from headwater.store.sqlite.database import open_database
from headwater.store.sqlite.ledger import InstanceName, SqliteLedger

FAULTS = range(int(os.environ.get("HEADWATER_FAULTS", "24")))
SEED = os.environ["HEADWATER_SEED"]
FOR_GOOD = 1_000_000
WORDS = {"full": "The disk is full.", "broken": "The disk reported an error."}


@pytest.mark.clause("CP-410", "CP-411", "CP-412")
@pytest.mark.parametrize("number", FAULTS)
def test_a_disk_that_fails_anywhere_costs_nothing_but_the_run(number, machine: Machine, unharmed):
    """What the command says became of the cursors is what the database holds, and the next run makes all whole."""
    chance = random.Random(f"{SEED}:{number}")
    kind = chance.choice([*WORDS])
    machine.start(fault={"at": chance.randint(1, unharmed[1]), "kind": kind, "steps": chance.choice([1, 3, FOR_GOOD])})
    status = machine.hosts.end().status
    said = machine.hosts.said
    assert set(machine.cursors()) == set(said.get("checkpoints", {"committed": []})["committed"])
    if status == 0:
        assert said["status"] == "succeeded"
    else:
        assert (status, said["kind"]) == (1, "operational")
        assert {said["code"], said.get("cause")} & {"metadata_unavailable", "storage_failed"}
        assert said["message"].startswith(WORDS[kind])
    machine.check()
    machine.finish()
    machine.is_whole()


STREAMS = {name: Stream(name, primary_key=("id",)) for name in ("alpha", "beta")}
DECLARATION = Declaration("https://x.example/flat", "1", "Flat", STREAMS)
LONG = '"' + "x" * 100_000 + '"'


@pytest.mark.clause("CP-450", "CP-452")
@pytest.mark.parametrize("kind", WORDS)
@pytest.mark.parametrize("late", range(1, 12))
def test_a_disk_that_fails_among_the_cursors_commits_all_that_it_says(tmp_path, kind, late):
    """Where SQLite gives up the whole transaction, no cursor before the failing one is called committed."""

    def going():
        disk = Disk()
        connection = open_database(tmp_path / "h.db")
        connection.execute("PRAGMA cache_size = 2")  # the cursors do not fit: they reach the disk before the commit
        name = InstanceName("https://x.example/flat", "flat", "me")
        ledger = SqliteLedger(connection, name, BlobFolder(tmp_path / "blobs"))
        ledger.begin(RunPlan("run_1", DECLARATION, plan_scope(DECLARATION)))
        ledger.write([Stage(stream, LONG) for stream in STREAMS], ended=True)
        disk.times, disk.kind = range(disk.seen + late * 8, FOR_GOOD), kind
        conclusion = Conclusion(Verdict("succeeded", "", "", may_commit=True), Decision(tuple(STREAMS)), Facts())
        try:
            return ledger.conclude(conclusion).committed
        except HeadwaterError:
            return ()
        finally:
            disk.times = range(0)
            ledger.close()
            disk.unregister()
            apsw.set_default_vfs("unix")

    committed = going()
    connection = open_database(tmp_path / "h.db")
    held = [stream for (stream,) in connection.execute("SELECT stream FROM checkpoints ORDER BY stream")]
    assert tuple(held) == committed
    decided = [
        stream for (stream,) in connection.execute("SELECT stream FROM decisions WHERE committed ORDER BY stream")
    ]
    assert tuple(decided) == committed
    ((status,),) = connection.execute("SELECT status FROM runs")
    assert status == ("succeeded" if len(committed) == 2 else "failed" if committed else "running")
    connection.close()
