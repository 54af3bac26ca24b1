"""What only a ledger on disk can hold, or lose: durability, history, blobs, gaps, orphans, and a disk that fails."""

import asyncio
import hashlib
from contextlib import closing

import apsw
import pytest
from contracts.awaited import Awaited

from headwater.collect.checkpoints import Decision
from headwater.collect.effects import Gap, Keep, Receipt, Stage
from headwater.collect.plan import Authority, RunPlan, plan_scope
from headwater.collect.ports import Conclusion
from headwater.collect.recovery import recover
from headwater.collect.session import Facts
from headwater.collect.verdict import Verdict
from headwater.errors import HeadwaterError
from headwater.events import Tally
from headwater.manifest.declaration import Declaration, Stream
from headwater.store.blobs import BlobFolder
from headwater.store.sqlite.database import open_database
from headwater.store.sqlite.ledger import InstanceName, SqliteLedger
from headwater.store.sqlite.reading import Reader, RecordFilter

AT = "2026-11-30T00:00:00Z"
STREAMS = {name: Stream(name, primary_key=("id",)) for name in ("alpha", "beta", "gamma")}
STREAMS["log"] = Stream("log", primary_key=("id",), semantics="append_only")
DECLARATION = Declaration("https://x.example/flat", "1", "Flat", STREAMS)
LATER = Gap("beta", "beta", "b1", "later", True, None)


def plan(run_id="run_1", authority=None):
    return RunPlan(run_id, DECLARATION, plan_scope(DECLARATION), authority=authority or Authority())


def keep(key, data, stream="alpha", blob=None):
    return Keep(stream, key, AT, None, data, blob)


def ended(*committed):
    return Conclusion(Verdict("succeeded", "succeeded", "It ended.", True), Decision(committed), Facts())


class Store:
    """A database in a folder, and one ledger after another over it."""

    def __init__(self, folder):
        self.folder = folder
        self.database = folder / "h.db"
        self.spool = folder / "spool"
        self.spool.mkdir()

    def ledger(self, name="me"):
        blobs = BlobFolder(self.folder / "blobs", self.spool)
        return Awaited(
            SqliteLedger(open_database(self.database), InstanceName(DECLARATION.connector_id, "flat", name), blobs)
        )

    def use(self, function, name="me"):
        """Run an async function over a ledger, and close it."""

        async def going():
            ledger = self.ledger(name)
            try:
                return await function(ledger)
            finally:
                await ledger.close()

        return asyncio.run(going())

    def look(self, function):
        """Ask a reader."""
        with closing(open_database(self.database, readonly=True)) as connection:
            return function(Reader(connection))

    def execute(self, sql):
        """Do something to the database behind everybody's back."""
        with closing(apsw.Connection(str(self.database))) as connection:
            return connection.execute(sql).fetchall()


@pytest.fixture
def store(tmp_path):
    """A store that holds nothing yet."""
    return Store(tmp_path)


def test_what_was_written_is_there_after_reopening(store):
    """Records, receipts, cursors and the run itself outlive the process."""

    async def first(ledger):
        await ledger.begin(plan())
        receipt = Receipt("alpha", "schema", "It does not fit.", "bad", b"\x00\xff")
        await ledger.write([keep("a", '{"n":1}'), receipt, Stage("alpha", '{"n":1}')], ended=True)
        await ledger.conclude(ended("alpha"))

    store.use(first)
    assert store.use(lambda ledger: ledger.cursors("global")) == {"alpha": '{"n":1}'}
    assert bytes(store.look(lambda r: r.record("flat/me", "alpha", "a"))["data"]) == b'{"n":1}'
    assert store.look(lambda r: r.rejection(1))["line"] == b"\x00\xff"
    assert store.look(lambda r: r.run("last"))["status"] == "succeeded"


def test_a_batch_that_is_not_written_whole_is_not_written_at_all(store):
    """A failure in its midst takes the records before it back, and the ledger can go on."""

    async def use(ledger):
        await ledger.begin(plan())
        await ledger.write([keep("a", "{}")])
        store.execute("CREATE TRIGGER t BEFORE INSERT ON staged BEGIN SELECT RAISE(ABORT, 'no'); END")
        with pytest.raises(HeadwaterError) as raised:
            await ledger.write([keep("b", "{}"), Stage("alpha", "{}")])
        store.execute("DROP TRIGGER t")
        return raised.value.code, await ledger.write([keep("b", "{}")])

    assert store.use(use) == ("storage_failed", {"alpha": Tally(accepted=1)})
    assert len(store.look(lambda r: r.records("flat/me", "alpha", RecordFilter(), 10, None))["items"]) == 2


def test_the_history_of_a_key_is_a_chain(store):
    """Every version is kept, a delete is one without data, and what came back is a new one."""

    async def use(ledger):
        await ledger.begin(plan())
        await ledger.write([keep("a", '{"n":1}'), keep("a", '{"n":2}')])
        await ledger.write([keep("a", None), keep("a", None)])
        return await ledger.write([keep("a", '{"n":2}')])

    assert store.use(use) == {"alpha": Tally(accepted=1)}
    versions = store.look(lambda r: r.history("flat/me", "alpha", "a", 10))
    assert [row["data"] and bytes(row["data"]) for row in versions] == [b'{"n":2}', None, b'{"n":2}', b'{"n":1}']
    assert [row["deleted"] for row in versions] == [False, True, False, False]
    assert store.look(lambda r: r.streams())[0]["records"] == 1


def test_a_deleted_record_is_gone_from_reads(store):
    """A tombstone is history, and no record; a delete of what never was is nothing at all."""

    async def use(ledger):
        await ledger.begin(plan())
        await ledger.write([keep("a", "{}"), keep("b", "{}")])
        return await ledger.write([keep("a", None), keep("never", None)])

    assert store.use(use) == {"alpha": Tally(deleted=1, unchanged=1)}
    assert [row["key"] for row in store.look(lambda r: list(r.every_record("flat/me", "alpha", RecordFilter())))] == [
        "b"
    ]
    with pytest.raises(HeadwaterError, match="no record"):
        store.look(lambda r: r.record("flat/me", "alpha", "a"))
    assert store.execute("SELECT count(*) FROM versions WHERE key = 'never'") == [(0,)]


def test_one_key_many_times_in_a_batch_ends_as_the_last_one(store):
    """Order is kept inside a batch, and a repetition is no version."""
    texts = [f'{{"n":{n // 2}}}' for n in range(1000)]

    async def use(ledger):
        await ledger.begin(plan())
        return await ledger.write([keep("a", text) for text in texts])

    assert store.use(use) == {"alpha": Tally(accepted=500, unchanged=500)}
    assert bytes(store.look(lambda r: r.record("flat/me", "alpha", "a"))["data"]) == b'{"n":499}'
    assert store.look(lambda r: r.repeated_versions("flat/me", "alpha")) == 0


def test_an_append_only_stream_keeps_what_it_has(store):
    """Other content under a key that is there is receipted with its bytes; a delete is obeyed."""

    async def use(ledger):
        await ledger.begin(plan())
        first = await ledger.write([keep("l", '{"n":1}', "log"), keep("l", '{"n":1}', "log")])
        return first, await ledger.write([keep("l", '{"n":2}', "log")])

    assert store.use(use) == ({"log": Tally(accepted=1, unchanged=1)}, {"log": Tally(rejected=1)})
    assert bytes(store.look(lambda r: r.record("flat/me", "log", "l"))["data"]) == b'{"n":1}'
    receipt = store.look(lambda r: r.rejection(1))
    assert (receipt["reason"], receipt["key"], receipt["line"]) == ("append_only", "l", b'{"n":2}')


def test_blobs_are_adopted_or_their_record_is_refused(store):
    """Bytes that came are kept under their digest; missing and false ones cost their own record only."""
    good, other = hashlib.sha256(b"good").hexdigest(), hashlib.sha256(b"other").hexdigest()
    missing = hashlib.sha256(b"missing").hexdigest()
    (store.spool / good).write_bytes(b"good")
    (store.spool / other).write_bytes(b"not what its name says")

    async def use(ledger):
        await ledger.begin(plan())
        blobs = {"a": good, "b": other, "c": missing, "d": good}
        return await ledger.write([keep(key, f'"{key}"', blob=digest) for key, digest in blobs.items()])

    assert store.use(use) == {"alpha": Tally(accepted=2, rejected=2)}
    assert BlobFolder(store.folder / "blobs").path(good).read_bytes() == b"good"
    assert not BlobFolder(store.folder / "blobs").path(other).exists()
    assert store.execute("SELECT key, reason FROM receipts ORDER BY key") == [(key, "blob_missing") for key in "bc"]
    assert not store.spool.exists()


def test_a_blob_may_not_be_a_link_to_somebody_elses_file(store):
    """A connector cannot make the host keep a file that it may not read itself."""
    secret = store.folder / "secret"
    secret.write_bytes(b"secret")
    digest = hashlib.sha256(b"secret").hexdigest()
    (store.spool / digest).symlink_to(secret)

    async def use(ledger):
        await ledger.begin(plan())
        return await ledger.write([keep("a", "{}", blob=digest)])

    assert store.use(use) == {"alpha": Tally(rejected=1)}
    assert secret.read_bytes() == b"secret"


def test_a_blob_that_cannot_be_kept_costs_the_batch(store):
    """A file system that refuses is a disk that failed, and no error of ours."""
    digest = hashlib.sha256(b"good").hexdigest()
    (store.spool / digest).write_bytes(b"good")
    (store.folder / "blobs").write_bytes(b"a file where a folder should be")

    async def use(ledger):
        await ledger.begin(plan())
        with pytest.raises(HeadwaterError, match="disk reported an error") as raised:
            await ledger.write([keep("a", "{}", blob=digest)])
        return raised.value.code

    assert store.use(use) == "storage_failed"


def test_a_gap_is_pending_until_its_record_comes(store):
    """A gap is reported again and again as one, and is recovered in the run that brings the record."""

    async def use(ledger):
        for number in (1, 2):
            await ledger.begin(plan(f"run_{number}"))
            await ledger.write([LATER])
            await ledger.conclude(ended())
        await ledger.begin(plan("run_3"))
        await ledger.write([keep("b1", "{}", "beta")])
        await ledger.conclude(ended())

    store.use(use)
    assert store.look(lambda r: r.gaps(None, 10, None, healed=False))["items"] == []
    (gap,) = store.look(lambda r: r.gaps(None, 10, None, healed=True))["items"]
    assert (gap["status"], gap["times"], gap["first_run"], gap["last_run"]) == ("recovered", 2, "run_1", "run_3")


def test_a_gap_belongs_to_its_namespace(store):
    """A record that came under another grant heals no gap of this one."""

    async def use(ledger):
        await ledger.begin(plan("run_1", Authority("G1")))
        await ledger.write([LATER])
        await ledger.conclude(ended())
        await ledger.begin(plan("run_2"))
        await ledger.write([keep("b1", "{}", "beta")])

    store.use(use)
    (gap,) = store.look(lambda r: r.gaps(None, 10, None, healed=False))["items"]
    assert gap["status"] == "pending"


def test_two_instances_share_nothing(store):
    """The same keys and streams of another instance are others."""

    async def use(ledger):
        await ledger.begin(plan(f"run_{id(ledger)}"))
        await ledger.write([keep("a", "{}"), Stage("alpha", "{}")])
        await ledger.conclude(ended("alpha"))

    store.use(use, "me")
    assert store.use(lambda ledger: ledger.cursors("global"), "you") == {}
    store.use(use, "you")
    held = [(row["instance"], row["records"]) for row in store.look(lambda r: r.streams()) if row["records"]]
    assert sorted(held) == [("flat/me", 1), ("flat/you", 1)]


@pytest.mark.clause("CP-450", "CP-451", "CP-452", "CP-453", "CP-454", "CP-456", "CP-458")
@pytest.mark.parametrize(("failing", "committed"), [("alpha", []), ("beta", ["alpha"]), ("gamma", ["alpha", "beta"])])
def test_a_checkpoint_that_cannot_be_written_costs_none_before_it(store, failing, committed):
    """The run fails and says which one it was; those before it stand, and all others are due again (row 39)."""
    streams = ("alpha", "beta", "gamma")

    async def first(ledger):
        await ledger.begin(plan("run_0"))
        await ledger.write([Stage(stream, '"old"') for stream in streams])
        await ledger.conclude(ended(*streams))
        store.execute(
            "CREATE TRIGGER t BEFORE UPDATE ON checkpoints WHEN new.stream = "
            f"'{failing}' BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
        await ledger.begin(plan("run_1"))
        await ledger.write([Stage(stream, '"new"') for stream in streams])
        return await ledger.conclude(ended(*streams))

    commit = store.use(first)
    assert (list(commit.committed), commit.failed) == (committed, failing)
    cursors = store.use(lambda ledger: ledger.cursors("global"))
    assert cursors == {stream: '"new"' if stream in committed else '"old"' for stream in streams}
    run = store.look(lambda r: r.run("run_1"))
    assert (run["status"], run["cause"]) == ("failed", "checkpoint_write_failed")
    assert failing in run["message"]
    assert run["checkpoints"]["committed"] == committed
    reasons = {held["stream"]: held["reason"] for held in run["checkpoints"]["withheld"]}
    assert reasons.pop(failing) == "write_failed"
    assert set(reasons.values()) <= {"not_reached"}
    assert len(committed) + 1 + len(reasons) == 3


def cut_off(store, *effects, authority=None, ended=False):
    """Leave a run in the midst of its work."""

    async def use(ledger):
        await ledger.begin(plan("run_cut", authority))
        await ledger.write([keep("a", "{}"), *effects], ended=ended)

    store.use(use)


@pytest.mark.clause("CP-460", "CP-466", "CP-469")
def test_an_orphan_is_settled_stream_by_stream(store):
    """What was staged behind durable records commits; a stream with an open gap stays where it was."""
    cut_off(store, Stage("alpha", '{"n":1}'), Stage("beta", '{"n":1}'), LATER)
    (settled,) = store.use(recover)
    assert (settled.run_id, settled.decision.committed) == ("run_cut", ("alpha",))
    assert [(held.stream, held.reason) for held in settled.decision.withheld] == [("beta", "pending_gap")]
    assert store.use(recover) == []
    assert store.use(lambda ledger: ledger.cursors("global")) == {"alpha": '{"n":1}'}
    assert store.execute("SELECT status, cause FROM runs") == [("abandoned", "host_gone")]
    assert store.execute("SELECT count(*) FROM staged") == [(0,)]


@pytest.mark.clause("CP-462", "CP-470")
@pytest.mark.parametrize(("ended_", "authority"), [(True, None), (False, Authority(single_use=True))])
def test_an_orphan_that_had_ended_or_was_for_once_commits_nothing(store, ended_, authority):
    """Once the connector reported its end, or where nothing is to be kept, the exception does not apply."""
    cut_off(store, Stage("alpha", '{"n":1}'), ended=ended_, authority=authority)
    (settled,) = store.use(recover)
    assert settled.decision.committed == ()
    assert store.execute("SELECT count(*) FROM checkpoints") == [(0,)]
    assert store.look(lambda r: r.run("run_cut"))["status"] == "abandoned"


@pytest.mark.clause("CP-401", "CP-460")
def test_an_orphan_of_a_grant_is_settled_in_its_own_namespace(store):
    """The next run need not be of the same grant to clean up."""
    cut_off(store, Stage("alpha", '{"n":1}'), authority=Authority("G1"))
    store.use(recover)
    assert store.use(lambda ledger: ledger.cursors("grant:G1")) == {"alpha": '{"n":1}'}
    assert store.use(lambda ledger: ledger.cursors("global")) == {}


def test_another_instance_settles_no_orphan_of_this_one(store):
    """Its run may be alive: each instance has a lock of its own."""
    cut_off(store, Stage("alpha", '{"n":1}'))
    assert store.use(recover, "you") == []
    assert store.look(lambda r: r.run("run_cut"))["status"] == "running"


FULL, LOCKED_OUT = "The disk is full.", "The database cannot be opened for writing."


@pytest.mark.parametrize(("pragma", "words"), [("max_page_count = 60", FULL), ("query_only = ON", LOCKED_OUT)])
@pytest.mark.clause("CP-411")
def test_a_disk_that_takes_no_more_keeps_what_it_has(store, pragma, words):
    """The batch is refused with the reason, and what was durable before is whole."""

    async def use(ledger):
        await ledger.begin(plan())
        await ledger.write([keep("a", "{}"), Stage("alpha", "{}")])
        ledger.ledger._connection.execute(f"PRAGMA {pragma}")
        with pytest.raises(HeadwaterError) as raised:
            await ledger.write([keep(f"{n}", '{"text":"' + "x" * 500 + '"}') for n in range(1000)])
        return raised.value

    error = store.use(use)
    assert (error.code, error.kind) == ("storage_failed", "operational")
    assert error.message == f"{words} The last batch was not kept."
    assert [row["key"] for row in store.look(lambda r: list(r.every_record("flat/me", "alpha", RecordFilter())))] == [
        "a"
    ]
    assert store.execute("PRAGMA integrity_check") == [("ok",)]


def test_a_locked_database_is_waited_for_and_then_refused(store):
    """Another program that holds the lock for too long costs the batch, and no more."""

    async def use(ledger):
        await ledger.begin(plan())
        ledger.ledger._connection.set_busy_timeout(10)
        other = apsw.Connection(str(store.database))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(HeadwaterError, match="locked") as raised:
            await ledger.write([keep("a", "{}")])
        other.execute("ROLLBACK")
        other.close()
        return raised.value.code, await ledger.write([keep("a", "{}")])

    assert store.use(use) == ("storage_failed", {"alpha": Tally(accepted=1)})
