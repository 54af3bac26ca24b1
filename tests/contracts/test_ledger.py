"""The laws of the `Ledger` port, held by every adapter."""

import asyncio

import pytest
from contracts.awaited import Awaited

from headwater.collect.checkpoints import Decision, Withheld
from headwater.collect.effects import Gap, Keep, Receipt, Stage
from headwater.collect.plan import Authority, RunPlan, plan_scope
from headwater.collect.ports import Conclusion
from headwater.collect.session import Facts
from headwater.collect.verdict import Verdict
from headwater.events import Tally
from headwater.manifest.declaration import Declaration, Stream
from headwater.store.apart import LedgerApart
from headwater.store.blobs import BlobFolder
from headwater.store.locks import exclusive
from headwater.store.memory import MemoryLedger
from headwater.store.sqlite.database import open_database
from headwater.store.sqlite.ledger import InstanceName, SqliteLedger
from headwater.store.starting import StoreProcess

AT = "2026-11-30T00:00:00Z"
STREAMS = {name: Stream(name, primary_key=("id",)) for name in ("alpha", "beta", "gamma")}
DECLARATION = Declaration("https://x.example/flat", "1", "Flat", STREAMS)


def plan(run_id: str = "run_1", authority: Authority | None = None) -> RunPlan:
    return RunPlan(run_id, DECLARATION, plan_scope(DECLARATION), authority=authority or Authority())


def keep(key: str, data: str | None, stream: str = "alpha") -> Keep:
    return Keep(stream, key, AT, None, data, None)


def ended(*committed: str, withheld: tuple[Withheld, ...] = (), status: str = "succeeded") -> Conclusion:
    return Conclusion(Verdict(status, status, "It ended.", True), Decision(committed, withheld), Facts())


@pytest.fixture(params=["memory", "sqlite", "apart"])
def drive(request, tmp_path):
    """Run an async function over a fresh ledger of each adapter."""

    async def ledger_of(kind):
        if kind == "memory":
            return MemoryLedger()
        return sqlite_ledger(tmp_path) if kind == "sqlite" else await ledger_apart(tmp_path)

    def driving(use):
        async def going():
            ledger = await ledger_of(request.param)
            try:
                return await use(ledger)
            finally:
                await ledger.close()

        return asyncio.run(going())

    return driving


def sqlite_ledger(folder):
    name = InstanceName("https://x.example/flat", "flat", "me")
    return Awaited(SqliteLedger(open_database(folder / "h.db"), name, BlobFolder(folder / "blobs", folder / "spool")))


async def ledger_apart(folder, name="me"):
    instance = InstanceName("https://x.example/flat", "flat", name)
    with exclusive(folder / f"{name}.lock") as lock:
        return await LedgerApart.open(
            StoreProcess(), folder / "h.db", instance, folder / "blobs", folder / "spool", lock=lock
        )


def test_records_are_counted_by_what_they_change(drive):
    """New and changed records are accepted, the same text is unchanged, a delete of what is there is deleted."""

    async def use(ledger):
        await ledger.begin(plan())
        first = await ledger.write([keep("a", "{}"), keep("b", "{}")])
        again = await ledger.write([keep("a", "{}"), keep("b", '{"x":1}'), keep("a", None)])
        return first, again

    first, again = drive(use)
    assert first == {"alpha": Tally(accepted=2)}
    assert again == {"alpha": Tally(accepted=1, unchanged=1, deleted=1)}


def test_receipts_and_gaps_are_counted_by_stream(drive):
    """What was refused and what is missing stands beside what was kept."""

    async def use(ledger):
        await ledger.begin(plan())
        receipt = Receipt("beta", "schema", "It does not fit.", "k", b"{}")
        gap = Gap("gamma", "gamma", "k", "later", True, None)
        return await ledger.write([receipt, gap, keep("a", "{}")])

    assert drive(use) == {"beta": Tally(rejected=1), "gamma": Tally(gaps=1), "alpha": Tally(accepted=1)}


@pytest.mark.clause("CP-412", "CP-405")
def test_a_staged_cursor_is_no_cursor(drive):
    """Until a run ends well, the next one would start where it did itself."""

    async def use(ledger):
        await ledger.begin(plan())
        await ledger.write([keep("a", "{}"), Stage("alpha", '{"next":1}')])
        return dict(await ledger.cursors("global"))

    assert drive(use) == {}


@pytest.mark.clause("CP-413", "CP-414", "CP-407")
def test_the_last_staged_cursor_commits_as_it_came(drive):
    """One cursor a stream, the latest, and every byte of it."""
    exact = '{"n":123456789012345678901234567890, "t" : "\\u0000\\u00e9", "e":1E400}'

    async def use(ledger):
        await ledger.begin(plan())
        await ledger.write([Stage("alpha", '{"next":1}'), Stage("alpha", exact), Stage("beta", "{}")])
        commit = await ledger.conclude(ended("alpha"))
        return commit, dict(await ledger.cursors("global"))

    commit, cursors = drive(use)
    assert (commit.committed, commit.failed) == (("alpha",), None)
    assert cursors == {"alpha": exact}


@pytest.mark.clause("CP-414")
def test_a_stream_without_a_new_cursor_keeps_its_old_one(drive):
    """No STATE, no change of state."""

    async def use(ledger):
        await ledger.begin(plan("run_1"))
        await ledger.write([Stage("alpha", '{"n":1}'), Stage("gamma", '{"n":0}')])
        await ledger.conclude(ended("alpha", "gamma"))
        await ledger.begin(plan("run_2"))
        await ledger.write([Stage("alpha", '{"n":2}')])
        await ledger.conclude(ended("alpha"))
        return dict(await ledger.cursors("global"))

    assert drive(use) == {"alpha": '{"n":2}', "gamma": '{"n":0}'}


@pytest.mark.clause("CP-400", "CP-401")
def test_namespaces_never_touch(drive):
    """A grant's cursors are its own, and the global ones are nobody's but a proactive run's."""

    async def use(ledger):
        for number, grant in enumerate((None, "G1", "G2")):
            await ledger.begin(plan(f"run_{number}", Authority(grant)))
            await ledger.write([Stage("alpha", f'{{"n":{number}}}')])
            await ledger.conclude(ended("alpha"))
        return [dict(await ledger.cursors(name)) for name in ("global", "grant:G1", "grant:G2", "grant:G3")]

    assert drive(use) == [{"alpha": '{"n":0}'}, {"alpha": '{"n":1}'}, {"alpha": '{"n":2}'}, {}]


def test_an_empty_batch_is_no_error(drive):
    """A run may end without having said a word."""

    async def use(ledger):
        await ledger.begin(plan())
        return dict(await ledger.write([], ended=True))

    assert drive(use) == {}


def test_closing_twice_is_no_error(drive):
    """Whoever cleans up need not know who did before."""

    async def use(ledger):
        await ledger.begin(plan())
        await ledger.close()

    drive(use)
