"""Narrowed: fewer streams, fewer fields, one record, a window of time. Each is kept, or refused aloud.

One stream is narrowed at a time while the others stay whole, so that a stream which another one feeds is still fed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from headwater import clock, limits
from headwater.checking.bench import Bench, Trial
from headwater.checking.findings import Finding, inapplicable, judged
from headwater.checking.losses import named
from headwater.checking.watching import Place
from headwater.collect.admission import OUT_OF_SCOPE
from headwater.collect.plan import plan_scope
from headwater.wire.messages import CollectionScope, CollectionStream, TimeRange

PACK = "narrowed"
ALOUD = "CP-317"
_NOT_SUPPORTED = "scope_not_supported"
_WHY_NOT = {
    "CP-311": "No record came that could be asked for alone.",
    "CP-312": "No record of a stream with a consent_time_field came.",
    "CP-313": "Nothing could be narrowed.",
    "CP-315": "It has no field that could be left out.",
    ALOUD: "Nothing could be narrowed.",
}


@dataclass(frozen=True)
class Case:
    """A narrowing: what is done, the records that it leaves in, and the clauses that too few or too many break."""

    what: str
    scope: CollectionScope
    wanted: frozenset[Place]
    too_few: str
    too_many: str


async def narrowed(bench: Bench, whole: Trial) -> list[Finding]:
    """Narrow the scope in each of the four ways."""
    shown: dict[str, Finding] = {}
    for case in _cases(bench, whole):
        trial = await bench.trial(PACK, replace(bench.plan, scope=case.scope))
        for finding in _judged(case, trial):
            if finding.mark == "fail" or finding.clause not in shown:
                shown[finding.clause] = finding
    missing = [inapplicable(PACK, why, clause)[0] for clause, why in _WHY_NOT.items() if clause not in shown]
    return [*shown.values(), *missing]


def _cases(bench: Bench, whole: Trial) -> Iterator[Case]:
    streams = bench.declaration.streams
    full = plan_scope(bench.declaration).streams
    own = [entry for entry in full if streams[entry.name].parents == (entry.name,)]
    if len(full) > 1:
        wanted = _of(whole, own[0].name)
        yield Case(f"only {own[0].name}", CollectionScope([own[0]]), wanted, "CP-313", "CP-313")
    if any(stream.fields - stream.essential_fields for stream in streams.values()):
        few = [CollectionStream(name, fields=sorted(stream.essential_fields)) for name, stream in streams.items()]
        yield Case("few fields", CollectionScope(few), whole.present, "CP-315", "CP-315")
    brought = [entry.name for entry in full if _of(whole, entry.name)]
    for name in brought[: limits.CHECK_STREAMS]:
        yield _one_record(full, whole, name)
        if any(place[0] == name for place in whole.times):
            yield _window(full, whole, name)


def _one_record(full: list[CollectionStream], whole: Trial, stream: str) -> Case:
    place = sorted(_of(whole, stream))[len(_of(whole, stream)) // 2]
    entry = CollectionStream(stream, resources=[place[1]])
    return Case(f"one record of {stream}", _with(full, entry), frozenset([place]), "CP-311", "CP-313")


def _window(full: list[CollectionStream], whole: Trial, stream: str) -> Case:
    """Ask for the later half, without its end: both edges lie on a record."""
    times = {place: time for place, time in whole.times.items() if place in _of(whole, stream)}
    inner = sorted(times.values())
    since, until = clock.from_micros(inner[len(inner) // 2]), clock.from_micros(inner[-1])
    window = TimeRange(since, until) if since < until else TimeRange(since)
    edges = _micros(since), _micros(until) if since < until else inner[-1] + 1
    wanted = frozenset(place for place, time in times.items() if edges[0] <= time < edges[1])
    scope = _with(full, CollectionStream(stream, time_range=window))
    return Case(f"a window of {stream}", scope, wanted, "CP-312", "CP-313")


def _micros(text: str) -> int:
    moment = clock.parse(text)
    assert moment is not None
    return clock.micros(moment)


def _of(trial: Trial, stream: str) -> frozenset[Place]:
    return frozenset(place for place in trial.present if place[0] == stream)


def _with(full: list[CollectionStream], entry: CollectionStream) -> CollectionScope:
    return CollectionScope([entry if other.name == entry.name else other for other in full])


def _judged(case: Case, trial: Trial) -> Iterator[Finding]:
    skips = {skip.stream for skip in trial.outcome.facts.skips if skip.reason == _NOT_SUPPORTED}
    outside = sum(receipt.reason == OUT_OF_SCOPE for receipt in trial.receipts)
    refused = trial.session.refused.get(OUT_OF_SCOPE)
    line = refused.line if refused else None
    if broken := [name for name in skips if name and trial.seen(name)]:
        yield judged(ALOUD, PACK, f"{case.what}: it skipped {broken[0]} and sent records of it.", line=line)
    elif outside:
        fault = f"{case.what}: {outside:,} records lay outside the scope"
        yield judged(case.too_many, PACK, f"{fault}.", line=line)
        yield judged(ALOUD, PACK, f"{fault}, and nothing was said.", line=line)
    elif skips or trial.cause in ("connector_failed", "stream_collection_failed"):
        yield judged(ALOUD, PACK, "", f"{case.what}: it said that it cannot.")
    elif not trial.succeeded:
        yield judged(ALOUD, PACK, f"{case.what}: {trial.message}")
    elif missing := case.wanted - trial.present:
        yield judged(case.too_few, PACK, f"{case.what}: {named(missing)} did not come.")
    else:
        for clause in {case.too_few, case.too_many, ALOUD}:
            yield judged(clause, PACK, "", f"{case.what}: {len(case.wanted):,} of {len(case.wanted):,} came.")
