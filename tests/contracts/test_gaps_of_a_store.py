"""The ledger of gaps on disk: leases, turns, waits, and what heals a gap."""

import asyncio
from contextlib import closing
from dataclasses import replace

import pytest
from contracts.awaited import Awaited
from msgspec import UNSET

from headwater import clock, limits
from headwater.collect.checkpoints import Decision
from headwater.collect.effects import Gap, Keep, Stage
from headwater.collect.gaps import Turn, page_of, scope_of
from headwater.collect.plan import Authority, RunPlan, plan_scope
from headwater.collect.ports import Conclusion
from headwater.collect.recovery import recover
from headwater.collect.session import Facts
from headwater.collect.verdict import Verdict
from headwater.manifest.declaration import Declaration, Stream
from headwater.store.blobs import BlobFolder
from headwater.store.sqlite.database import open_database
from headwater.store.sqlite.ledger import InstanceName, SqliteLedger
from headwater.store.sqlite.reading import Reader

AT = "2026-11-30T00:00:00Z"
DECLARATION = Declaration(
    "https://x.example/flat", "1", "Flat", {name: Stream(name, primary_key=("id",)) for name in ("alpha", "beta")}
)
WHOLE = RunPlan("", DECLARATION, plan_scope(DECLARATION))
ENDED = Conclusion(Verdict("succeeded", "succeeded", "It ended.", True), Decision(), Facts())
NOW = Turn(due_only=False)


class Gaps:
    """A store, and what its runs do to gaps."""

    def __init__(self, folder):
        self.folder = folder
        self.runs = 0

    def use(self, function):
        async def going():
            name = InstanceName(DECLARATION.connector_id, "flat", "me")
            blobs = BlobFolder(self.folder / "blobs", self.folder / "spool")
            ledger = Awaited(SqliteLedger(open_database(self.folder / "h.db"), name, blobs))
            try:
                return await function(ledger)
            finally:
                await ledger.close()

        return asyncio.run(going())

    def run(self, *effects, plan=WHOLE, end=True):
        """Run once with the effects that a connector caused; without `end` the host is killed in its midst."""
        self.runs += 1

        async def going(ledger):
            for orphan in await recover(ledger):
                assert orphan.run_id
            await ledger.begin(replace(plan, run_id=f"run_{self.runs}"))
            tallies = await ledger.write(effects)
            if end:
                await ledger.conclude(ENDED)
            return sum(tally.healed for tally in tallies.values())

        return self.use(going)

    def turn(self, turn=NOW):
        """Return the page that a retry would take."""
        return page_of(self.use(lambda ledger: ledger.open_gaps(turn)))

    def retry(self, turn=NOW, *effects, end=True):
        """Retry what has its turn."""
        page = self.turn(turn)
        plan = replace(WHOLE, scope=scope_of(page), mode="full_refresh", retries=tuple(page))
        return page, self.run(*effects, plan=plan, end=end)

    def wait_is_over(self):
        """Let the wait of every gap pass."""
        with closing(open_database(self.folder / "h.db")) as connection:
            connection.execute("UPDATE gaps SET due_at = '2000-01-01T00:00:00.000Z'")

    def rows(self):
        with closing(open_database(self.folder / "h.db", readonly=True)) as connection:
            return Reader(connection).gaps(None, 1000, None, healed=True)["items"]


@pytest.fixture
def store(tmp_path):
    (tmp_path / "spool").mkdir()
    return Gaps(tmp_path)


def gap(key, *, retryable=True, stream="beta"):
    return Gap(stream, stream, key, "later", retryable, None, '{"status":503}')


def record(key, stream="beta"):
    return Keep(stream, key, AT, None, "{}", None)


def test_a_new_gap_waits_before_it_is_tried_by_itself_and_can_be_tried_at_once(store):
    """The provider that failed a moment ago is not asked again in the same breath."""
    store.run(gap("b1"))
    assert store.turn(Turn()) == []
    assert [item.key for item in store.turn(NOW)] == ["b1"]
    store.wait_is_over()
    assert [item.key for item in store.turn(Turn())] == ["b1"]


def test_no_page_comes_twice_before_every_gap_had_its_turn(store):
    """Far more gaps than a page holds: each is tried once, then the first ones again."""
    count = 2 * limits.GAPS_PER_RETRY + 7
    store.run(*(gap(f"b{number:04d}") for number in range(count)))
    store.wait_is_over()
    pages = [store.retry(Turn())[0] for _ in range(4)]
    tried = [item.key for page in pages for item in page]
    assert [len(page) for page in pages] == [limits.GAPS_PER_RETRY, limits.GAPS_PER_RETRY, 7, 0]
    assert sorted(tried) == [f"b{number:04d}" for number in range(count)]


def test_a_stream_of_new_gaps_does_not_starve_the_old_ones(store):
    """Whoever waited longest is first, however many came since."""
    store.run(gap("old"))
    store.wait_is_over()
    store.run(*(gap(f"new{number:04d}") for number in range(limits.GAPS_PER_RETRY)))
    assert store.turn(NOW)[0].key == "old"


def test_a_try_counts_and_the_next_one_waits_twice_as_long(store):
    """The wait runs from the try, whatever came of it."""
    store.run(gap("b1"))
    store.retry()
    (row,) = store.rows()
    assert row["tries"] == 1
    assert clock.parse(row["due_at"]) - clock.parse(row["tried_at"]) == 2 * (
        clock.parse("2026-01-01T00:15:00Z") - clock.parse("2026-01-01T00:00:00Z")
    )


def test_a_gap_that_was_tried_too_often_is_given_up_and_can_still_be_asked_for(store):
    """By itself nothing is tried for ever; the owner may always."""
    store.run(gap("b1"))
    for _ in range(limits.GAP_TRIES):
        store.wait_is_over()
        assert len(store.retry(Turn())[0]) == 1
    store.wait_is_over()
    assert store.turn(Turn()) == []
    assert store.rows()[0]["status"] == "given_up"
    assert len(store.turn(NOW)) == 1


def test_a_gap_that_is_not_retryable_is_tried_only_by_its_number(store):
    """Its connector said that it will not help; the owner may know better."""
    store.run(gap("b1", retryable=False))
    store.wait_is_over()
    (row,) = store.rows()
    assert (row["status"], store.turn(Turn()), store.turn(NOW)) == ("not_retryable", [], [])
    assert [item.key for item in store.turn(Turn(due_only=False, numbers=[row["gap"]]))] == ["b1"]


def test_a_turn_can_be_narrowed_to_streams(store):
    """What was not asked for is left alone."""
    store.run(gap("b1"), gap("a1", stream="alpha"))
    assert [item.stream for item in store.turn(Turn(due_only=False, streams=["alpha"]))] == ["alpha"]


def test_a_gap_without_a_key_has_no_turn(store):
    """There is nothing that a scope could ask for."""
    store.run(Gap("beta", None, None, "later", True, '{"page":7}'))
    store.wait_is_over()
    assert store.turn(Turn()) == store.turn(NOW) == []


def test_one_command_takes_each_gap_once(store):
    """Those that were tried since it began are left out."""
    store.run(gap("b1"))
    begun = Turn(due_only=False, untried_since=clock.stamp())
    store.retry(begun)
    assert store.turn(begun) == []


def test_a_gap_that_is_leased_is_nobody_elses(store):
    """While a run tries it, no other gets it."""
    store.run(gap("b1"))
    store.retry(end=False)
    assert store.turn() == []
    assert store.rows()[0]["status"] == "in_progress"


@pytest.mark.clause("CP-547")
def test_a_lease_ends_with_its_run_also_when_the_host_is_killed(store):
    """The next run settles the one that was cut off, and the gap has its turn again."""
    store.run(gap("b1"))
    store.retry(end=False)
    store.run()
    assert [(item.key, item.tries) for item in store.turn()] == [("b1", 1)]
    store.retry()
    assert [(item.key, item.tries) for item in store.turn()] == [("b1", 2)]


def test_the_record_heals_the_gap_in_the_batch_that_stores_it(store):
    """It is seen at once, and it is counted."""
    store.run(gap("b1"), gap("b2"))
    _, healed = store.retry(NOW, record("b1"))
    assert healed == 1
    assert {row["key"]: row["status"] for row in store.rows()} == {"b1": "recovered", "b2": "pending"}


def test_a_gap_that_comes_back_begins_anew(store):
    """What was recovered and is missing again is a new try of a new trouble."""
    store.run(gap("b1"))
    store.retry(NOW, record("b1"))
    store.run(gap("b1"))
    (row,) = store.rows()
    assert (row["status"], row["tries"], row["times"]) == ("pending", 0, 2)
    assert store.turn(Turn()) == []


def test_a_run_that_is_narrowed_notes_and_heals_the_gaps_of_whole_runs(store):
    """The record is there for all, whatever else the run left out."""
    store.run(gap("b1"))
    entry = replace_fields(WHOLE.scope.streams[1], resources=["b1"])
    narrowed = replace(WHOLE, scope=type(WHOLE.scope)([entry]))
    assert narrowed.namespace != "global"
    store.run(gap("b2"), record("b1"), plan=narrowed)
    assert {row["key"]: row["status"] for row in store.rows()} == {"b1": "recovered", "b2": "pending"}


def replace_fields(entry, **members):
    return type(entry)(**{name: members.get(name, getattr(entry, name, UNSET)) for name in entry.__struct_fields__})


def test_gaps_of_a_grant_are_not_tried_for_the_owner(store):
    """A retry collects in the owner's name: what another authority misses is not its to ask for."""
    store.run(gap("b1"), plan=replace(WHOLE, authority=Authority("G1")))
    store.wait_is_over()
    assert store.turn(Turn()) == store.turn(NOW) == []


def test_a_retry_keeps_no_cursor(store):
    """It says nothing of what lies between the gaps."""
    store.run(gap("b1"))
    page = store.turn()
    plan = replace(WHOLE, scope=scope_of(page), retries=tuple(page))
    assert plan.namespace is None
    assert plan.cursorless[0] == "retry"
    store.run(Stage("beta", '{"at":1}'), plan=plan)
    assert store.use(lambda ledger: ledger.cursors("global")) == {}
