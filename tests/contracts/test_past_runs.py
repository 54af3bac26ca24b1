"""What a schedule sees of the runs of an instance: whole ones in its own name, newest first, and no other."""

import asyncio
from contextlib import closing
from datetime import timedelta

import pytest
from contracts.awaited import Awaited

from headwater import clock, limits
from headwater.collect.checkpoints import Decision
from headwater.collect.plan import PROACTIVE, Authority, RunPlan, plan_scope
from headwater.collect.ports import Conclusion
from headwater.collect.session import Facts
from headwater.collect.verdict import Verdict
from headwater.manifest.declaration import Declaration, Stream
from headwater.store.blobs import BlobFolder
from headwater.store.sqlite.database import open_database
from headwater.store.sqlite.ledger import InstanceName, SqliteLedger
from headwater.store.sqlite.reading import Reader
from headwater.wire.messages import CollectionScope, CollectionStream

STREAMS = {name: Stream(name, primary_key=("id",)) for name in ("alpha", "beta")}
FLAT = Declaration("https://x.example/flat", "1", "Flat", STREAMS)
OTHER = Declaration("https://y.example/flat", "1", "Flat", STREAMS)


def run(folder, status="succeeded", *, declaration=FLAT, name="me", scope=None, authority=PROACTIVE):
    """Run once over everything, or over a scope; without a status it goes on."""

    async def going():
        instance = InstanceName(declaration.connector_id, "flat", name)
        ledger = Awaited(
            SqliteLedger(open_database(folder / "h.db"), instance, BlobFolder(folder / "blobs", folder / "spool"))
        )
        planned = plan_scope(declaration, scope)
        await ledger.begin(RunPlan(clock.identifier("run"), declaration, planned, authority=authority))
        if status is not None:
            await ledger.conclude(Conclusion(Verdict(status, "x", "It ended."), Decision(), Facts()))
        await ledger.close()

    asyncio.run(going())


def past(folder, declaration=FLAT, instance="flat/me", streams=("alpha", "beta")):
    with closing(open_database(folder / "h.db", readonly=True)) as connection:
        return Reader(connection).past_runs(declaration.connector_id, instance, streams)


def test_runs_come_newest_first_with_their_times(tmp_path):
    """One that goes on has no end."""
    for status in ("succeeded", "failed", None):
        run(tmp_path, status)
    runs = past(tmp_path)
    assert [(one.status, one.ended_at is None) for one in runs] == [
        ("running", True),
        ("failed", False),
        ("succeeded", False),
    ]
    assert all(timedelta(0) <= clock.now() - one.started_at < timedelta(minutes=2) for one in runs)


@pytest.mark.parametrize(
    "other",
    [
        {"scope": CollectionScope([CollectionStream("alpha")])},
        {"scope": CollectionScope([CollectionStream("alpha", resources=["1"]), CollectionStream("beta")])},
        {"authority": Authority("G1")},
        {"authority": Authority(single_use=True)},
        {"name": "you"},
        {"declaration": OTHER},
    ],
    ids=["one stream", "narrowed", "a grant", "single use", "another instance", "another connector"],
)
def test_no_other_run_serves_a_schedule(tmp_path, other):
    """A run over less, for somebody else or of something else does not count."""
    run(tmp_path, **other)
    assert past(tmp_path) == []
    run(tmp_path)
    assert len(past(tmp_path)) == 1


def test_a_run_over_more_than_is_scheduled_counts(tmp_path):
    """An instance that schedules one stream is served by a run over all."""
    run(tmp_path)
    assert len(past(tmp_path, streams=["alpha"])) == 1
    assert past(tmp_path, streams=["alpha", "new"]) == []


def test_a_connector_whose_short_name_was_taken_is_found(tmp_path):
    """Its name in the store was made distinct, and its instance is still its own."""
    run(tmp_path)
    run(tmp_path, "failed", declaration=OTHER)
    assert [one.status for one in past(tmp_path)] == ["succeeded"]
    assert [one.status for one in past(tmp_path, OTHER)] == ["failed"]


def test_only_the_latest_runs_are_looked_at(tmp_path):
    """A long history costs a schedule nothing."""
    for _ in range(limits.SCHEDULE_PAST_RUNS + 1):
        run(tmp_path)
    assert len(past(tmp_path)) == limits.SCHEDULE_PAST_RUNS
