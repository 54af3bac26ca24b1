"""Undoing runs on disk: what was there before is there again, whatever a run did, or nothing is changed."""

import asyncio
from contextlib import closing

import pytest
from contracts.awaited import Awaited
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.collect.checkpoints import Decision
from headwater.collect.effects import Gap, Keep, Stage
from headwater.collect.plan import Authority, RunPlan, plan_scope
from headwater.collect.ports import Conclusion
from headwater.collect.session import Facts
from headwater.collect.verdict import Verdict
from headwater.errors import HeadwaterError
from headwater.manifest.declaration import Declaration, Stream
from headwater.store.blobs import BlobFolder
from headwater.store.sqlite.database import open_database
from headwater.store.sqlite.ledger import InstanceName, SqliteLedger
from headwater.store.sqlite.reading import Reader, RecordFilter
from headwater.store.sqlite.undo import undo

AT = "2026-11-30T00:00:00Z"
STREAMS = {
    "notes": Stream("notes", primary_key=("id",)),
    "log": Stream("log", primary_key=("id",), semantics="append_only"),
}
DECLARATION = Declaration("https://x.example/flat", "1", "Flat", STREAMS)


class Store:
    """A database, the runs over it, and undoing them."""

    def __init__(self, folder):
        self.folder = folder
        self.blobs = BlobFolder(folder / "blobs", folder / "spool")
        self.runs = 0

    def run(self, records, stream="notes", cursor=None, gaps=(), authority=None, end=True):
        """Run once: records by key (None deletes), then a cursor that commits."""
        self.runs += 1
        run_id = f"run_{self.runs}"

        async def going():
            name = InstanceName(DECLARATION.connector_id, "flat", "me")
            ledger = Awaited(SqliteLedger(open_database(self.folder / "h.db"), name, self.blobs))
            plan = RunPlan(run_id, DECLARATION, plan_scope(DECLARATION), authority=authority or Authority())
            await ledger.begin(plan)
            await ledger.write([Keep(stream, key, AT, None, data, None) for key, data in records.items()])
            await ledger.write([Gap(stream, stream, key, "later", True, None) for key in gaps])
            if cursor is not None:
                await ledger.write([Stage(stream, cursor)])
            if end:
                decision = Decision((stream,) if cursor is not None else ())
                await ledger.conclude(Conclusion(Verdict("succeeded", "succeeded", "", True), decision, Facts()))
            await ledger.close()

        asyncio.run(going())
        return run_id

    def undo(self, run_id, **ways):
        with closing(open_database(self.folder / "h.db")) as connection:
            return undo(connection, self.blobs, run_id, **ways)

    def refused(self, run_id):
        before = self.all()
        with pytest.raises(HeadwaterError) as raised:
            self.undo(run_id)
        assert self.all() == before
        return raised.value

    def look(self, function):
        with closing(open_database(self.folder / "h.db", readonly=True)) as connection:
            return function(Reader(connection))

    def seen(self):
        """Return records, cursors and the open gaps, as a person sees them."""

        def looking(reader):
            records = {
                (name, row["key"]): bytes(row["data"]).decode()
                for name in STREAMS
                for row in reader.every_record("flat/me", name, RecordFilter())
            }
            counts = {row["stream"]: row["records"] for row in reader.streams()}
            assert counts == {name: sum(stream == name for stream, _ in records) for name in STREAMS}
            cursors = {row["stream"]: bytes(row["cursor"]).decode() for row in reader.state("flat/me")}
            gaps = {row["key"] for row in reader.gaps(None, 100, None, healed=False)["items"]}
            return records, cursors, gaps

        return self.look(looking)

    def all(self):
        """Return every row that an undo may touch."""
        tables = ("records", "versions", "runs", "checkpoints", "decisions", "gaps", "streams", "run_streams")
        with closing(open_database(self.folder / "h.db", readonly=True)) as connection:
            return [connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in tables]


@pytest.fixture
def store(tmp_path):
    (tmp_path / "spool").mkdir()
    return Store(tmp_path)


def test_new_changed_and_deleted_records_are_as_before_and_so_is_the_cursor(store):
    """The run brings one, changes one, deletes one: none of it is left."""
    store.run({"a": '"1"', "b": '"1"'}, cursor='{"at":1}')
    before = store.seen()
    second = store.run({"a": '"2"', "b": None, "c": '"2"'}, cursor='{"at":2}')
    undone = store.undo(second)
    assert store.seen() == before
    assert (undone.streams["notes"].accepted, undone.streams["notes"].deleted) == (2, 1)
    assert undone.cursors == ("notes",)


def test_the_first_run_leaves_nothing_and_no_cursor(store):
    """As if it had never been, but for the history."""
    first = store.run({"a": '"1"'}, cursor='{"at":1}')
    store.undo(first)
    assert store.seen() == ({}, {}, set())
    history = store.look(lambda reader: reader.history("flat/me", "notes", "a", 10))
    assert [row["deleted"] for row in history] == [True, False]


def test_a_record_that_a_run_changed_many_times_goes_back_to_before_the_run(store):
    """Also where it came and went within the run."""
    store.run({"a": '"1"'})
    before = store.seen()
    run = store.run({"a": '"2"'})
    with closing(open_database(store.folder / "h.db")) as connection:
        # One batch after another of one run.
        row = connection.execute("SELECT id, first_version FROM runs WHERE run_id = ?", (run,)).get
        seq = connection.execute("SELECT max(seq) FROM versions").get
        for step, data in enumerate(('"3"', None, '"4"'), 1):
            values = (seq + step, seq + step - 1, row[0], AT, data)
            columns = "(seq, prev, stream, run, key, emitted_at, data)"
            select = "SELECT ?1, ?2, id, ?3, 'a', ?4, ?5 FROM streams WHERE name = 'notes'"
            connection.execute(f"INSERT INTO versions {columns} {select}", values)
        connection.execute("UPDATE records SET version = ?", (seq + 3,))
    store.undo(run)
    assert store.seen() == before


def test_what_was_collected_again_after_an_undo_counts_as_new(store):
    """The undo is no obstacle: the next run brings the same records once more."""
    first = store.run({"a": '"1"'}, cursor='{"at":1}')
    before = store.seen()
    store.undo(first)
    store.run({"a": '"1"'}, cursor='{"at":1}')
    assert store.seen() == before


def test_runs_are_undone_one_after_the_other_the_newest_first(store):
    """An undo is no later run that builds on the one before."""
    runs, states = [], [({}, {}, set())]
    for number in range(4):
        runs.append(store.run({"a": f'"{number}"', f"k{number}": '"x"'}, cursor=f'{{"at":{number}}}'))
        states.append(store.seen())
    for run, state in zip(reversed(runs), reversed(states[:-1]), strict=True):
        store.undo(run)
        assert store.seen() == state


def test_a_run_whose_record_a_later_one_changed_is_refused(store):
    """With the name of the later one, and nothing is changed."""
    first = store.run({"a": '"1"', "b": '"1"'})
    store.run({"a": '"2"'})
    refusal = store.refused(first)
    assert (refusal.code, refusal.command) == ("run_superseded", "headwater runs undo run_2")


def test_a_run_whose_cursor_a_later_one_advanced_is_refused(store):
    """Although no record differs: what the later run left out rests on that cursor."""
    first = store.run({"a": '"1"'}, cursor='{"at":1}')
    store.run({}, cursor='{"at":2}')
    assert store.refused(first).data["runs"] == ["run_2"]


def test_a_later_run_that_saw_the_same_built_on_nothing(store):
    """It wrote no version and no cursor."""
    first = store.run({"a": '"1"'}, cursor='{"at":1}')
    store.run({"a": '"1"'})
    store.undo(first)
    assert store.seen() == ({}, {}, set())


def test_a_run_that_failed_can_be_undone_too(store):
    """It moved no cursor; its records go."""
    store.run({"a": '"1"'}, cursor='{"at":1}')
    before = store.seen()
    store.undo(store.run({"a": '"2"'}))
    assert store.seen() == before


def test_no_run_is_undone_twice_and_no_undo_is_undone(store):
    """Collecting again is the way forward."""
    first = store.run({"a": '"1"'})
    undone = store.undo(first)
    assert store.refused(first).code == "run_superseded"
    assert store.refused(undone.run_id).code == "run_superseded"


def test_a_run_that_is_not_there_is_said(store):
    """And one of an instance that is being collected."""
    first = store.run({"a": '"1"'})
    assert store.refused("run_nothing").code == "not_found"
    store.run({"a": '"2"'}, end=False)
    assert store.refused(first).code == "run_active"


def test_a_rehearsal_says_the_same_and_changes_nothing(store):
    """Not even the place of the next version."""
    first = store.run({"a": '"1"', "b": '"1"'}, cursor='{"at":1}')
    before = store.all()
    said = store.undo(first, rehearse=True)
    assert store.all() == before
    undone = store.undo(first)
    assert (said.streams, said.cursors) == (undone.streams, undone.cursors)


def test_an_append_only_stream_can_be_undone_and_collected_again(store):
    """What only grows shrinks by an undo, and nothing else."""
    store.run({"a": '"1"'}, stream="log")
    before = store.seen()
    second = store.run({"b": '"1"'}, stream="log")
    after = store.seen()
    store.undo(second)
    assert store.seen() == before
    store.run({"b": '"1"'}, stream="log")
    assert store.seen() == after


def test_gaps_go_with_the_run_that_found_them_and_come_back_with_the_record_that_healed_them(store):
    """A gap is a promise about what is missing now."""
    store.run({}, gaps=["a"])
    second = store.run({"a": '"1"'}, gaps=["b"])
    assert store.seen()[2] == {"b"}
    store.undo(second)
    assert store.seen()[2] == {"a"}


def test_a_grants_cursor_goes_back_in_its_own_namespace(store):
    """Nobody else's moves."""
    store.run({"a": '"1"'}, cursor='{"at":1}')
    granted = store.run({"b": '"1"'}, cursor='{"at":7}', authority=Authority("G1"))
    store.undo(granted)
    rows = store.look(lambda reader: reader.state("flat/me"))
    assert [(row["namespace"], bytes(row["cursor"])) for row in rows] == [("global", b'{"at":1}')]


def test_a_run_of_the_release_before_is_refused(store):
    """What it replaced was not kept."""
    first = store.run({"a": '"1"'}, cursor='{"at":1}')
    with closing(open_database(store.folder / "h.db")) as connection:
        connection.execute("UPDATE decisions SET previous = NULL")
    assert store.refused(first).code == "run_superseded"


RUN = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(['"1"', '"2"', None]), max_size=4)


@settings(max_examples=30, deadline=None)
@given(runs=st.lists(st.tuples(RUN, st.booleans()), min_size=1, max_size=6), back=st.integers(1, 6))
def test_undoing_the_last_runs_brings_back_the_state_before_them(tmp_path_factory, runs, back):
    """Whatever they wrote; and what is written afterwards is kept as ever."""
    folder = tmp_path_factory.mktemp("undo")
    (folder / "spool").mkdir()
    store = Store(folder)
    store.run({})
    states, names = [store.seen()], []
    for number, (records, commits) in enumerate(runs):
        names.append(store.run(records, cursor=f'{{"at":{number}}}' if commits else None))
        states.append(store.seen())
    for _ in range(min(back, len(names))):
        states.pop()
        store.undo(names.pop())
        assert store.seen() == states[-1]
    store.run({"a": '"9"'})
    assert store.seen()[0]["notes", "a"] == '"9"'
    assert store.look(lambda reader: reader.repeated_versions("flat/me", "notes")) == 0
