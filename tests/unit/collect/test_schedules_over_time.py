"""A scheduler's days, played fast: outages, slow and failing runs, clocks that are set. What must hold of any."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.collect.schedules import Cron, Due, Every, PastRun, Schedule, jitter, next_due

ZONES = ("UTC", "Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia")
EXPRESSIONS = ("0 7 * * *", "30 2 * * *", "*/20 * * * *", "0 */3 * * *", "15 * * * *", "0 0 1 * *", "59 23 * * SUN")
played = settings(deadline=None)
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)

moments = st.datetimes(datetime(2000, 1, 1), datetime(2037, 1, 1)).map(lambda naive: naive.replace(tzinfo=UTC))
crons = st.builds(Cron, st.sampled_from(EXPRESSIONS), st.sampled_from(ZONES).map(ZoneInfo))
everies = st.builds(Every, st.integers(60, 10 * 86_400))
schedules = st.builds(Schedule, crons | everies, jitter_seconds=st.integers(0, 60), since=moments)


@dataclass
class Life:
    """A schedule, a clock and the runs. A look starts what is due, and the run is over at once or after a while."""

    schedule: Schedule
    now: datetime
    past: list[PastRun] = field(default_factory=list)
    begun: list[tuple[Due, PastRun]] = field(default_factory=list)

    def look(self, *, succeeds: bool = True, seconds: int = 0) -> bool:
        """Look once, and return whether a run started."""
        due = next_due("a/b", self.schedule, self.past, self.now)
        if due is None or due.at > self.now:
            return False
        ended = self.now + seconds * SECOND
        run = PastRun(self.now, ended, "succeeded" if succeeds else "failed")
        self.past.insert(0, run)
        self.begun.append((due, run))
        self.now = ended
        return True

    def served(self) -> list[datetime]:
        """Return the occurrence of each run that succeeded."""
        return [due.occurrence for due, run in self.begun if run.succeeded]


@played
@given(crons, moments)
def test_an_occurrence_is_after_the_moment_and_the_next_one_after_it(cron, moment):
    """Time goes on: no occurrence is passed by, and none comes again."""
    first = cron.after(moment)
    assert first > moment
    assert cron.after(first - SECOND) == first
    assert cron.after(first) > first


@played
@given(schedules, moments, moments)
def test_a_start_is_put_off_by_its_jitter_at_most(schedule, start, moment):
    """Never earlier than the occurrence, and never later than the bound."""
    due = next_due("a/b", schedule, [PastRun(start, start, "succeeded")], moment)
    assert 0 <= (due.at - due.occurrence).total_seconds() <= schedule.jitter_seconds
    assert 0 <= jitter("c/d", due.occurrence, schedule.jitter_seconds) <= schedule.jitter_seconds


steps = st.tuples(st.integers(1, 3 * 86_400), st.booleans(), st.integers(0, 7200))


@played
@given(schedules, st.lists(steps, max_size=40))
def test_no_occurrence_is_served_twice_and_none_before_its_time(schedule, taken):
    """Whatever fails and however long it takes: each success is for an occurrence of its own, at or after it."""
    life = Life(schedule, schedule.since)
    for seconds, succeeds, length in taken:
        life.now += seconds * SECOND
        life.look(succeeds=succeeds, seconds=length)
    served = life.served()
    assert served == sorted(set(served))
    assert all(run.started_at >= due.at >= due.occurrence >= schedule.since for due, run in life.begun)


@played
@given(schedules, st.timedeltas(timedelta(0), timedelta(days=800)))
def test_after_any_outage_there_is_one_run_at_most_and_then_the_future(schedule, outage):
    """What was missed is caught up by one run, and the next is due strictly later than that run's start."""
    life = Life(schedule, schedule.since)
    life.past.append(PastRun(life.now, life.now, "succeeded"))
    owed = next_due("a/b", schedule, life.past, life.now)
    life.now += outage
    assert life.look() == (owed.at <= life.now)
    assert not life.look()
    assert next_due("a/b", schedule, life.past, life.now).occurrence > life.past[0].started_at


@played
@given(crons, moments, st.lists(st.tuples(st.integers(-20 * 3600, 3 * 86_400), st.booleans()), max_size=40))
def test_a_clock_that_is_set_serves_no_occurrence_twice(cron, start, taken):
    """Forwards and back, as long as it is never a day behind what it showed before."""
    life, latest = Life(Schedule(cron, since=start), start), start
    for seconds, succeeds in taken:
        life.now = max(life.now + seconds * SECOND, latest - DAY + SECOND)
        latest = max(latest, life.now)
        life.look(succeeds=succeeds)
    served = life.served()
    assert len(served) == len(set(served))


@played
@given(crons | everies, moments, moments)
def test_no_clock_blocks_a_schedule(rhythm, wrong, right):
    """After runs under any clock, a run that is owed by the right one starts within two of its intervals."""
    life = Life(Schedule(rhythm), right)
    life.past = [PastRun(wrong, wrong, "succeeded")]
    due = next_due("a/b", life.schedule, life.past, life.now)
    assert due.at <= (right + 2 * rhythm.seconds * SECOND if isinstance(rhythm, Every) else rhythm.after(right + DAY))


@played
@given(schedules, moments, st.integers(1, 60))
def test_failures_space_their_tries_out(schedule, start, failures):
    """Each try waits longer than the one before, up to a day, and the occurrence stays the same."""
    life = Life(schedule, max(start, schedule.since))
    life.past.append(PastRun(schedule.since, schedule.since, "succeeded"))
    for _ in range(failures):
        life.now = max(life.now, next_due("a/b", schedule, life.past, life.now).at)
        assert life.look(succeeds=False)
    starts = [run.started_at for _, run in life.begun]
    waits = [later - earlier for earlier, later in pairwise(starts)]
    assert waits == [min(300 * 2**number, 86_400) * SECOND for number in range(failures - 1)]
    assert len({due.occurrence for due, _ in life.begun}) == 1
