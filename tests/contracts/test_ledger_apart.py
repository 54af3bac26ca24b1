"""The store's process: it dies with its host or before it, says what it refuses, and holds the lock to the end."""

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import closing

import apsw
import msgspec
import pytest

from headwater.collect.batches import Batches
from headwater.collect.checkpoints import Decision
from headwater.collect.effects import Keep, Stage
from headwater.collect.plan import RunPlan, plan_scope
from headwater.collect.ports import Conclusion
from headwater.collect.session import Facts
from headwater.collect.verdict import Verdict
from headwater.errors import HeadwaterError
from headwater.manifest.declaration import Declaration, Stream
from headwater.store.apart import LedgerApart
from headwater.store.locks import exclusive
from headwater.store.memory import MemoryLedger
from headwater.store.sqlite.database import open_database
from headwater.store.sqlite.ledger import InstanceName
from headwater.store.starting import StoreProcess
from headwater.version import RELEASE

AT = "2026-11-30T00:00:00Z"
DECLARATION = Declaration("https://x.example/flat", "1", "Flat", {"alpha": Stream("alpha", primary_key=("id",))})
PLAN = RunPlan("run_1", DECLARATION, plan_scope(DECLARATION))
NAME = InstanceName("https://x.example/flat", "flat", "me")


def keep(key, data='{"id":"1"}'):
    return Keep("alpha", key, AT, None, data, None)


def apart(folder, use):
    """Run an async function over a ledger in a process of its own."""

    async def going():
        with exclusive(folder / "me.lock") as lock:
            ledger = await LedgerApart.open(
                StoreProcess(), folder / "h.db", NAME, folder / "blobs", folder / "spool", lock=lock
            )
            try:
                return await use(ledger)
            finally:
                await ledger.close()

    return asyncio.run(going())


def test_what_the_database_refuses_is_refused_as_it_is(tmp_path):
    """Code, sentence, next action and data cross the socket; no process stays behind."""
    open_database(tmp_path / "h.db").close()
    with closing(apsw.Connection(str(tmp_path / "h.db"))) as connection:
        connection.execute("PRAGMA user_version = 999")

    async def never(_ledger):
        raise AssertionError

    with pytest.raises(HeadwaterError) as raised:
        apart(tmp_path, never)
    refusal = raised.value
    assert (refusal.code, refusal.next_action, refusal.data) == (
        "metadata_schema_newer",
        "upgrade",
        {"store_version": "unrecorded", "binary_version": RELEASE},
    )
    assert refusal.safe


def test_a_store_that_is_killed_is_a_failure_to_store_and_costs_nothing_that_was_stored(tmp_path):
    """Each call says so from then on; what was durable is there."""

    async def use(ledger):
        await ledger.begin(PLAN)
        await ledger.write([keep("a")])
        ledger._process.kill()
        for call in (ledger.write([keep("b")]), ledger.cursors("global")):
            with pytest.raises(HeadwaterError, match="store's process ended") as raised:
                await call
            assert raised.value.code == "storage_failed"

    apart(tmp_path, use)
    with closing(open_database(tmp_path / "h.db")) as connection:
        assert connection.execute("SELECT key FROM records").fetchall() == [("a",)]


def test_a_fault_inside_the_store_is_told_without_its_words(tmp_path):
    """What it was is nobody's business; that it failed is."""

    async def use(ledger):
        await ledger.begin(PLAN)
        with pytest.raises(HeadwaterError) as raised:
            await ledger.write([Keep("nowhere", "a", AT, None, "{}", None)])
        return raised.value

    refusal = apart(tmp_path, use)
    assert (refusal.code, "nowhere" in refusal.message) == ("storage_failed", False)


def test_signals_to_the_whole_group_do_not_end_the_store(tmp_path):
    """Ctrl-C is for the host to act on; its last words are still to be stored."""

    async def use(ledger):
        await ledger.begin(PLAN)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(ledger._process.pid, number)
        return await ledger.write([keep("a")])

    assert apart(tmp_path, use)["alpha"].accepted == 1


HOST = """
import asyncio, os, sys, time
from pathlib import Path
from contracts.test_ledger_apart import NAME, PLAN, keep
from headwater.store.apart import LedgerApart
from headwater.store.starting import StoreProcess
from headwater.store.locks import exclusive

async def main(folder):
    with exclusive(folder / "me.lock") as lock:
        places = (folder / "h.db", NAME, folder / "blobs", folder / "spool")
        ledger = await LedgerApart.open(StoreProcess(), *places, lock=lock)
        await ledger.begin(PLAN)
        asyncio.create_task(ledger.write([keep("a")]))
        await asyncio.sleep(0)
        print(ledger._process.pid, flush=True)
        time.sleep(60)

asyncio.run(main(Path(sys.argv[1])))
"""


def test_the_lock_is_held_until_the_store_of_a_killed_host_has_ended(tmp_path):
    """While a batch of the old run can still be stored, no new run begins."""
    with closing(open_database(tmp_path / "h.db")):
        pass
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    host = subprocess.Popen([sys.executable, "-c", HOST, str(tmp_path)], stdout=subprocess.PIPE, env=environment)
    blocker = apsw.Connection(str(tmp_path / "h.db"))
    store = int(host.stdout.readline())
    blocker.set_busy_timeout(10_000)
    os.kill(store, signal.SIGSTOP)
    host.kill()
    host.communicate()
    with pytest.raises(HeadwaterError, match="Another run"), exclusive(tmp_path / "me.lock"):
        pass
    os.kill(store, signal.SIGCONT)
    for _ in range(500):
        try:
            with exclusive(tmp_path / "me.lock"):
                break
        except HeadwaterError:
            time.sleep(0.01)
    else:
        pytest.fail("the store does not end")
    assert blocker.execute("SELECT count(*) FROM records").get in (0, 1)
    blocker.close()


def test_a_large_batch_crosses_whole(tmp_path):
    """Larger than any buffer of the socket, both ways at once."""
    text = '"' + "x" * 5_000_000 + '"'

    async def use(ledger):
        await ledger.begin(PLAN)
        tallies = await ledger.write([keep(str(n), text) for n in range(4)] + [Stage("alpha", text)])
        return tallies["alpha"].accepted

    assert apart(tmp_path, use) == 4


class Failing(MemoryLedger):
    """A ledger whose second batch is not kept."""

    def __init__(self):
        super().__init__()
        self.batches = []

    async def write(self, effects, *, ended=False):
        await asyncio.sleep(0.01)
        if len(self.batches) == 1:
            self.batches.append(None)
            raise HeadwaterError("storage_failed")
        self.batches.append(list(effects))
        return await super().write(effects, ended=ended)


def test_what_follows_a_batch_that_was_not_kept_is_not_kept_either():
    """A cursor in the third batch would stand before the records of the second."""

    async def going():
        ledger = Failing()
        batches = Batches(ledger)
        for key in "abc":
            batches.filling.append(keep(key))
            try:
                await batches.hand_over()
            except HeadwaterError:
                break
        else:
            pytest.fail("nothing was said")
        await batches.settle()
        return ledger

    ledger = asyncio.run(going())
    assert [key for _, key in ledger.records] == ["a"]
    assert ledger.batches[1:] == [None]


def test_a_batch_fills_while_the_one_before_it_is_stored():
    """The host goes on with the next line at once; it waits only for the batch before the last."""

    async def going():
        gate = asyncio.Event()

        class Slow(MemoryLedger):
            async def write(self, effects, *, ended=False):
                await gate.wait()
                return await super().write(effects, ended=ended)

        batches = Batches(Slow())
        batches.filling.append(keep("a"))
        assert await batches.hand_over() is None
        assert batches.are_open
        batches.filling.append(keep("b"))
        second = asyncio.create_task(batches.hand_over())
        await asyncio.sleep(0.01)
        assert not second.done()
        gate.set()
        assert (await second)["alpha"].accepted == 1
        assert (await batches.settle())["alpha"].accepted == 1
        assert not batches.are_open

    asyncio.run(going())


def test_the_end_of_a_run_is_stored_as_any_other_call(tmp_path):
    """The conclusion crosses with its verdict and its facts."""

    async def use(ledger):
        await ledger.begin(PLAN)
        await ledger.write([keep("a"), Stage("alpha", '{"at":1}')], ended=True)
        verdict = Verdict("succeeded", "succeeded", "It ended.", may_commit=True)
        commit = await ledger.conclude(Conclusion(verdict, Decision(("alpha",)), Facts()))
        return commit.committed, await ledger.cursors("global")

    assert apart(tmp_path, use) == (("alpha",), {"alpha": '{"at":1}'})


UNSET = msgspec.UNSET


def test_what_is_unset_crosses_as_what_it_is():
    """Whatever module happens to hold its name here, such as this one: the other side has no tests."""
    content = pickle.dumps([msgspec.UNSET])
    assert __name__.encode() not in content
    program = "import sys, pickle, msgspec; assert pickle.loads(sys.stdin.buffer.read())[0] is msgspec.UNSET"
    subprocess.run([sys.executable, "-I", "-c", f"import headwater.store.frames; {program}"], input=content, check=True)
