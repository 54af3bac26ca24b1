"""STREAM_EVIDENCE: what is accepted, what is refused, and that neither moves a checkpoint."""

import json
import re

import pytest

from headwater.collect.verdict import Exit

MAX = 9_007_199_254_740_991
COUNTS = ("emitted", "unchanged", "gapped", "unaccounted")
OUTCOMES = {"emitted": 30, "unchanged": 6, "gapped": 3, "unaccounted": 1}


def evidence(outcomes=OUTCOMES, **members) -> str:
    """Write the evidence of stamps over 40 keys with other members; ... leaves one out."""
    message = {"type": "STREAM_EVIDENCE", "stream": "stamps", "reference_only": True, "considered": 40}
    message |= {"outcomes": outcomes, **members}
    return json.dumps({name: value for name, value in message.items() if value is not ...})


def spelled(considered: str, emitted: str = "0") -> str:
    """Write evidence whose numbers are spelled already."""
    line = evidence({"emitted": "E", "unchanged": 0, "gapped": 0, "unaccounted": 0}, considered="N")
    return line.replace('"N"', considered).replace('"E"', emitted)


@pytest.mark.clause("CP-600", "CP-615", "CP-617")
@pytest.mark.parametrize("outcomes", [OUTCOMES, dict.fromkeys(COUNTS, 0), {**OUTCOMES, "emitted": 3, "gapped": 2}])
def test_evidence_that_adds_up_is_accepted_and_kept(play, outcomes):
    """Numbers are taken at their word: that no record and no gap came is no ground to refuse them."""
    considered = sum(outcomes.values())
    played = play("RIDER", f"S threads=t1; {evidence(outcomes, considered=considered)}")
    assert (played.verdict.status, played.committed) == ("succeeded", {"threads": "t1"})
    assert played.session.facts.evidence == {"stamps": {"considered": considered, **outcomes}}


@pytest.mark.clause("CP-601", "CP-613")
@pytest.mark.parametrize("value", [..., False, "true", 1, None])
def test_evidence_is_for_reference_only(play, value):
    """Anything but true refuses the message."""
    play.refused("RIDER", evidence(reference_only=value))


@pytest.mark.clause("CP-602", "CP-613")
@pytest.mark.parametrize(("stream", "scope"), [("stamps", "threads notes"), ("ghost", ""), (..., ""), ("", "")])
def test_evidence_names_a_stream_of_the_scope(play, stream, scope):
    """A stream that the run does not collect has no evidence."""
    play.refused("RIDER", evidence(stream=stream), scope=scope)


@pytest.mark.clause("CP-603", "CP-613")
@pytest.mark.parametrize(
    ("manifest", "stream"), [("SOLO", "photos"), ("SOLO", "albums"), ("RIDER", "threads"), ("RIDER", "notes")]
)
def test_evidence_is_of_a_state_stream_child(play, manifest, stream):
    """A detail stream has its reports and a self-mapped one its own checkpoint."""
    assert play.refused(manifest, evidence(stream=stream)) == "evidence_stream"


@pytest.mark.clause("CP-605", "CP-610")
@pytest.mark.parametrize("member", ["considered", *COUNTS])
@pytest.mark.parametrize("value", [..., -1, 1.5, "3", None, True])
def test_each_of_the_five_counts_is_a_count(play, member, value):
    """A missing, negative, broken or mistyped one refuses the message."""
    if member == "considered":
        line = evidence(considered=value)
    else:
        merged = {**OUTCOMES, member: value}
        line = evidence({name: count for name, count in merged.items() if count is not ...})
    play.refused("RIDER", line)


@pytest.mark.clause("CP-605")
@pytest.mark.parametrize("outcomes", [..., [], None, 40, "40"])
def test_the_outcomes_are_an_object(play, outcomes):
    """Without the four outcomes there is nothing to add up."""
    play.refused("RIDER", evidence(outcomes))


@pytest.mark.clause("CP-607", "CP-609")
@pytest.mark.parametrize("member", COUNTS)
def test_the_largest_safe_integer_is_a_count(play, member):
    """Up to there a number means the same on both sides, in each of the five places."""
    line = evidence({**dict.fromkeys(COUNTS, 0), member: MAX}, considered=MAX)
    assert play("RIDER", line).session.facts.evidence["stamps"][member] == MAX
    other = "emitted" if member != "emitted" else "gapped"
    over = {**dict.fromkeys(COUNTS, 0), member: MAX, other: 1}
    play.refused("RIDER", evidence(over, considered=MAX))


@pytest.mark.clause("CP-608", "CP-610")
@pytest.mark.parametrize(
    "number",
    [str(MAX + 1), "9007199254740992.0", "1e16", "1" + "0" * 30, "1" + "0" * 400, "1" + "0" * 5_000, "1e999", "NaN",
     "Infinity", "-0.5"],
)  # fmt: skip
def test_no_larger_number_is_a_count(play, number):
    """Neither rounding, nor a crash, nor a literal that is no JSON lets one through."""
    play.refused("RIDER", spelled(number, number))


@pytest.mark.clause("CP-610")
@pytest.mark.parametrize(("considered", "emitted"), [("214.0", "214"), ("214", "214.0"), ("2.14e2", "214")])
def test_a_count_is_an_integer_by_value(play, considered, emitted):
    """214.0 is 214, and it is kept as an integer."""
    facts = play("RIDER", spelled(considered, emitted)).session.facts
    assert re.fullmatch(r"\{'considered': 214, 'emitted': 214, .*", str(facts.evidence["stamps"]))


@pytest.mark.clause("CP-609")
@pytest.mark.parametrize("considered", [0, 39, 41])
def test_the_outcomes_add_up_exactly(play, considered):
    """One key too many or too few refuses the message."""
    assert play.refused("RIDER", evidence(considered=considered)) == "evidence_counts"


@pytest.mark.clause("CP-611")
def test_a_stream_gives_its_evidence_once(play):
    """A second message is refused, the same one too; two streams give one each."""
    again = evidence(dict.fromkeys(COUNTS, 0), considered=0)
    for second in (evidence(), again):
        assert play.refused("RIDER", f"{evidence()}; {second}") == "evidence_twice"
    two = "alpha stamps=alpha labels=alpha"
    played = play(play.declared(two), f"{evidence()}; {evidence(stream='labels')}")
    assert list(played.session.facts.evidence) == ["stamps", "labels"]


@pytest.mark.clause("CP-612")
def test_evidence_of_one_run_is_none_of_another(play):
    """Two runs at once, or one after the other, each accept their own."""
    first, second = play.begin("RIDER"), play.begin("RIDER")
    for session in (first, second):
        assert session.receive(evidence().encode()) is None
        assert list(session.facts.evidence) == ["stamps"]


@pytest.mark.clause("CP-613", "CP-614")
def test_refused_evidence_fails_the_run_and_is_not_dropped(play):
    """The cause names the rule, nothing commits, and no evidence is shown as if it had been good."""
    played = play("RIDER", f"S threads=t1; {evidence(considered=39)}")
    assert (played.verdict.status, played.verdict.cause) == ("failed", "evidence_counts")
    assert (played.committed, played.session.facts.evidence) == ({}, {})


def test_evidence_is_read_from_its_own_members_alone(play):
    """A state_stream or key sets beside the counts are not taken for a report."""
    line = evidence(state_stream="notes", required_keys=["s1"], hydrated_keys=[])
    played = play("RIDER", f"S threads=t1; S notes=n1; {line}")
    assert (len(played.committed), played.session.facts.coverage) == (2, ())


@pytest.mark.clause("CP-625")
def test_missing_keys_in_evidence_withhold_nothing(play):
    """Gapped and unaccounted counts are told, and the parent commits."""
    line = evidence({"emitted": 0, "unchanged": 0, "gapped": 20, "unaccounted": 20})
    assert play("RIDER", f"S threads=t1; {line}").committed == {"threads": "t1"}


@pytest.mark.clause("CP-626")
def test_full_evidence_releases_nothing(play):
    """A short report and a failed child withhold the parent whatever the evidence says."""
    line = evidence({**dict.fromkeys(COUNTS, 0), "emitted": 40}, stream="labels")
    script = f"S inbox=1; S people=1; {line}; C bodies→inbox [m1 m2 ¦ m1]"
    assert play("MIX", script).withheld == {"inbox": "unaccounted"}
    script = f"S inbox=1; S people=1; {line}; C bodies→inbox [m1 ¦ m1]; F labels"
    assert play("MIX", script, "scf").withheld == {"inbox": "covered_stream_failed"}


@pytest.mark.clause("CP-629")
@pytest.mark.parametrize("ending", ["ok", "failed", "idle", "cancelled"])
def test_evidence_outlives_every_ending(play, ending):
    """After a success, a failure, a timeout and a cancellation the five counts are among the facts."""
    session = play.begin("RIDER")
    session.receive(evidence().encode())
    if ending == "idle":
        session.stop("idle", "The connector was silent.")
    if ending == "cancelled":
        session.cancel()
    session.end(Exit(0 if ending == "ok" else 1))
    assert session.facts.evidence == {"stamps": {"considered": 40, **OUTCOMES}}


@pytest.mark.clause("CP-909")
def test_a_run_without_evidence_shows_none(play):
    """A child that reports nothing leaves commits and facts as they would be without the message type."""
    played = play("RIDER", "S threads=t1; R stamps 1; S notes=n1")
    assert (played.committed, played.session.facts.evidence) == ({"threads": "t1", "notes": "n1"}, {})
