"""The forty scenarios of conformance/collection-vectors.md, played over the session; row 39 needs a store."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vectors.scenarios import EACH, ROWS

from headwater.collect.checkpoints import decide_abandoned
from headwater.collect.plan import PROACTIVE, Authority


def outcome(played) -> tuple[str, dict[str, str], dict[str, str]]:
    """Return a run's status, the cursors that commit and the reason of each that does not, as the rows have them."""
    held = {
        one.stream: one.reason + (f"[{' '.join(one.keys)}]" if one.keys else "") for one in played.decision.withheld
    }
    return played.verdict.status, played.committed, held


@pytest.mark.parametrize("row", EACH)
def test_a_scenario_ends_as_its_row_says(play, row):
    """Status, committed cursors and the reason of each withheld one are those of the table."""
    played = play(row.manifest, row.script, row.terminal, **(row.play or {}))
    committed = dict(word.split("=") for word in row.committed.split())
    withheld = dict(word.split(":") for word in row.withheld.split())
    assert outcome(played) == (row.status, committed, withheld)


def test_every_scenario_but_the_store_failure_and_the_restart_is_a_row():
    """The table is complete: 39 needs a store, and 40 has no end to play."""
    assert {row.number for row in ROWS} == set(range(1, 39))


def test_row_38_reads_and_advances_the_namespace_of_its_grant_alone():
    """Two grants and a run without one never share a namespace, and a single use has none."""
    names = [authority.namespace for authority in (PROACTIVE, Authority("G1"), Authority("G2"))]
    assert len(set(names)) == 3
    assert None not in names
    assert Authority("G1", single_use=True).namespace is None


@pytest.mark.clause("CP-460", "CP-463", "CP-464", "CP-466")
def test_row_40_commits_what_no_gap_and_no_report_could_hold_back(play):
    """After a controller died, alpha and threads commit; beta has a gap and albums is a detail parent."""
    session = play.begin("COMBO")
    script = "S alpha=a1; S beta=b1; G beta→– b9; S threads=t1; S albums=a1; C photos→albums [p1 ¦ p1]"
    effects = [session.receive(line) for line in play.lines(script)]
    gapped = frozenset(effect.stream for effect in effects if type(effect).__name__ == "Gap")
    decision = decide_abandoned(
        session.plan.graph, tuple(session.staged), gapped, controller_died=True, authority=PROACTIVE, cancelled=False
    )
    assert decision.committed == ("alpha", "threads")
    assert {one.stream: one.reason for one in decision.withheld} == {"beta": "pending_gap", "albums": "detail_parent"}


@pytest.mark.clause("CP-627")
@pytest.mark.parametrize("row", EACH)
def test_a_scenario_ends_the_same_without_its_evidence(play, row):
    """Dropping every STREAM_EVIDENCE line changes neither what commits nor what is short."""
    lines = [statement for statement in row.script.split("; ") if not statement.startswith("E ")]
    options = row.play or {}
    expected = outcome(play(row.manifest, row.script, row.terminal, **options))
    assert outcome(play(row.manifest, "; ".join(lines), row.terminal, **options)) == expected


@pytest.mark.clause("CP-625", "CP-626", "CP-627")
@pytest.mark.parametrize("row", [param for param in EACH if param.values[0].manifest in {"RIDER", "MIX"}])
@given(counts=st.tuples(*[st.integers(0, 99)] * 4), place=st.integers(0, 9))
@settings(max_examples=20, deadline=None)
def test_a_scenario_ends_the_same_with_any_evidence(play, row, counts, place):
    """Whatever numbers a state_stream child reports, and wherever, the outcome is that of the row."""
    child = {"RIDER": "stamps", "MIX": "labels"}[row.manifest]
    lines = [statement for statement in row.script.split("; ") if not statement.startswith("E ")]
    numbers = "+".join(str(count) for count in counts)
    told = [*lines[:place], f"E {child} {sum(counts)}={numbers}", *lines[place:]]
    options = row.play or {}
    expected = outcome(play(row.manifest, row.script, row.terminal, **options))
    assert outcome(play(row.manifest, "; ".join(told), row.terminal, **options)) == expected


@pytest.mark.clause("CP-404")
@pytest.mark.parametrize("row", EACH)
def test_no_scenario_commits_anything_for_a_single_use(play, row):
    """Whatever the run and its end, a single use keeps no cursor."""
    options = {**(row.play or {}), "authority": Authority(single_use=True)}
    assert play(row.manifest, row.script, row.terminal, **options).committed == {}


@pytest.mark.clause("CP-217", "CP-480", "CP-482")
@pytest.mark.parametrize("row", EACH)
def test_every_scenario_commits_nothing_once_it_is_cancelled(play, row):
    """A recorded cancellation decides before anything the connector said."""
    played = play(row.manifest, row.script, row.terminal, **{**(row.play or {}), "cancel": True})
    assert (played.verdict.status, played.committed) == ("cancelled", {})
