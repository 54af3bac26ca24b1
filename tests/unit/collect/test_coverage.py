"""Coverage: what a report and a gap may say, and which checkpoints they prove, leave short or leave alone."""

import json

import pytest

SOLO = {"stream": "photos", "state_stream": "albums", "reference_only": True, "required_keys": [], "hydrated_keys": []}


def report(**members) -> str:
    """Write the empty report of SOLO with other members; ... leaves one out."""
    merged = {"type": "DETAIL_COVERAGE", **SOLO, **members}
    return json.dumps({name: value for name, value in merged.items() if value is not ...})


def gap(**members) -> str:
    """Write a DETAIL_GAP of photos with other members; ... leaves one out."""
    merged = {"type": "DETAIL_GAP", "stream": "photos", **members}
    return json.dumps({name: value for name, value in merged.items() if value is not ...})


# The shape of a report.


@pytest.mark.clause("CP-500")
@pytest.mark.parametrize("value", [..., False, "true", None, 1])
def test_a_report_is_for_reference_only(play, value):
    """Anything but true, and the report may have been meant as something else."""
    play.refused("SOLO", report(reference_only=value))


@pytest.mark.clause("CP-501", "CP-502")
@pytest.mark.parametrize(
    ("stream", "parent", "scope"),
    [("photos", "albums", "albums notes"), ("ghost", "albums", ""), ("photos", "ghost", ""), (..., "albums", ""),
     ("photos", ..., ""), ("", "albums", "")],
)  # fmt: skip
def test_a_report_names_two_streams_of_the_scope(play, stream, parent, scope):
    """A report about what the run does not collect is a violation."""
    play.refused("SOLO", report(stream=stream, state_stream=parent), scope=scope)


@pytest.mark.clause("CP-502")
def test_a_report_for_a_parent_outside_the_scope_is_refused(play):
    """A run over the detail stream alone has no boundary to report."""
    played = play("SOLO", report(), scope="photos")
    assert (played.verdict.status, played.verdict.cause) == ("failed", "coverage_scope")


@pytest.mark.clause("CP-503", "CP-513")
@pytest.mark.parametrize("member", ["required_keys", "hydrated_keys", "gap_keys"])
@pytest.mark.parametrize("value", [None, "p1", {}, [True], [None], [{}], [["a", "b"]]])
def test_a_key_set_is_an_array_of_strings_and_numbers(play, member, value):
    """Whatever else stands in a set, a boolean among it, makes the report none."""
    play.refused("SOLO", report(**{member: value}))


@pytest.mark.clause("CP-503")
@pytest.mark.parametrize("member", ["required_keys", "hydrated_keys"])
def test_two_of_the_sets_are_mandatory(play, member):
    """A report says what it owed and what it has; gap_keys alone may be absent."""
    play.refused("SOLO", report(**{member: ...}))
    assert play("SOLO", f"S albums=a1; {report()}").committed == {"albums": "a1"}


@pytest.mark.parametrize(
    ("required", "hydrated", "gaps"),
    [
        pytest.param(["p1", "p1"], [], [], marks=pytest.mark.clause("CP-504")),
        pytest.param([7, "7"], [], [], marks=pytest.mark.clause("CP-504", "CP-512")),
        pytest.param([1, 1.0], [], [], marks=pytest.mark.clause("CP-513")),
        pytest.param(["p1"], ["p1", "p1"], [], marks=pytest.mark.clause("CP-505")),
        pytest.param(["p1"], [], ["p1", "p1"], marks=pytest.mark.clause("CP-506")),
        pytest.param(["p1"], ["p1", "p9"], [], marks=pytest.mark.clause("CP-507")),
        pytest.param(["p1"], ["p1"], ["p9"], marks=pytest.mark.clause("CP-508")),
        pytest.param(["p1"], ["p1"], ["p1"], marks=pytest.mark.clause("CP-509")),
        pytest.param(["7"], [7], [7.0], marks=pytest.mark.clause("CP-509", "CP-512")),
    ],
)
def test_the_sets_do_not_contradict_each_other(play, required, hydrated, gaps):
    """A key is required once and has at most one outcome, in canonical form, backed by a gap or not."""
    line = report(required_keys=required, hydrated_keys=hydrated, gap_keys=gaps)
    assert play.refused("SOLO", f"{gap(record_key='p1')}; {line}") == "coverage_keys"


@pytest.mark.clause("CP-512", "CP-513")
@pytest.mark.parametrize("spelling", ["1", "1.0", "1e0", '"1"', "10e-1"])
@pytest.mark.parametrize("other", ["1", "1.0", '"1"'])
def test_a_number_is_one_key_however_it_is_spelled(play, spelling, other):
    """1, 1.0, 1e0 and "1" account for one another, as hydrated and as a gap."""
    line = report(required_keys=["@"], hydrated_keys=["%"]).replace('"@"', spelling).replace('"%"', other)
    assert play("SOLO", f"S albums=a1; {line}").committed == {"albums": "a1"}
    line = report(required_keys=["@"], gap_keys=["@"]).replace('"@"', spelling)
    backing = gap(record_key="%").replace('"%"', other)
    assert play("SOLO", f"S albums=a1; {line}; {backing}").committed == {"albums": "a1"}


@pytest.mark.clause("CP-513")
@pytest.mark.parametrize(("key", "other"), [(1.5, "1"), ("1.0", 1), ("01", 1), (10**22, 10**22 + 1), (-1, 1)])
def test_keys_that_differ_stay_apart(play, key, other):
    """Only a number is canonical; a string is its own spelling."""
    line = report(required_keys=[key], hydrated_keys=[other])
    assert play.refused("SOLO", line) == "coverage_keys"


@pytest.mark.clause("CP-514")
def test_a_compound_key_is_its_minified_text(play):
    """The text of the array stands in the sets as one string."""
    key = '["u1","2026-04-01"]'
    line = report(required_keys=[key], hydrated_keys=[key])
    assert play("SOLO", f"S albums=a1; {line}").committed == {"albums": "a1"}


@pytest.mark.clause("CP-510")
def test_a_shortfall_is_no_violation(play):
    """An unaccounted key leaves the run as it is, withholds its parent and is shown among the facts."""
    played = play("SOLO", "S albums=a1; C photos→albums [p1 p2 p3 ¦ p1]; S notes=n1")
    assert (played.verdict.status, played.committed) == ("succeeded", {"notes": "n1"})
    (held,) = played.decision.withheld
    assert (held.message, held.keys) == ("2 keys of photos are unaccounted for.", ("p2", "p3"))
    (fact,) = played.session.facts.coverage
    assert fact == {
        "stream": "photos", "parent": "albums", "required": 3, "hydrated": 1, "gaps": 0, "unaccounted": ["p2", "p3"],
    }  # fmt: skip


@pytest.mark.clause("CP-518")
def test_coverage_is_judged_as_it_stands_at_done(play):
    """Report, gap and STATE may come in any order."""
    parts = ["S albums=a1", "G photos→albums p2", "C photos→albums [p1 p2 ¦ p1 ¦ gap p2]"]
    for first, second, third in [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)]:
        script = f"{parts[first]}; {parts[second]}; {parts[third]}"
        assert play("SOLO", script).committed == {"albums": "a1"}


@pytest.mark.clause("CP-519")
def test_a_connector_without_details_owes_no_report(play):
    """Without a declared detail stream every checkpoint commits on success."""
    assert play("FLAT", "S alpha=a1; S beta=b1; S gamma=g1").committed == {"alpha": "a1", "beta": "b1", "gamma": "g1"}


@pytest.mark.clause("CP-521")
@pytest.mark.parametrize("second", ["[p1 ¦ p1]", "[∅ ¦ ∅]"])
def test_a_boundary_reports_once(play, second):
    """A second report for it is refused, even the same one."""
    assert play.refused("SOLO", f"C photos→albums [p1 ¦ p1]; C photos→albums {second}") == "coverage_twice"


@pytest.mark.clause("CP-522")
def test_a_self_mapped_stream_gains_no_parent(play):
    """A report cannot make one stream's checkpoint depend on another."""
    assert play.refused("FLAT", "C alpha→beta [k ¦ ∅]") == "coverage_parent"


# The manifest goes before the evidence.


@pytest.mark.clause("CP-525")
@pytest.mark.parametrize("parent", ["threads", "notes", "stamps"])
def test_a_state_stream_child_reports_no_coverage(play, parent):
    """Whichever parent it names, the report is a violation."""
    assert play.refused("RIDER", f"C stamps→{parent} [s1 ¦ s1]") == "coverage_of_state_stream"


@pytest.mark.clause("CP-526")
def test_a_report_names_a_declared_parent(play):
    """A stream of the scope that the manifest does not name as a parent is none."""
    assert play.refused("MIX", "C bodies→people [m1 ¦ m1]") == "coverage_parent"


@pytest.mark.clause("CP-527")
@pytest.mark.parametrize(("short", "whole"), [("inbox", "archive"), ("archive", "inbox")])
def test_each_parent_is_gated_by_its_own_report(play, short, whole):
    """An incomplete boundary withholds itself and not its sibling."""
    script = f"S inbox=1; S archive=1; C bodies→{short} [m1 m2 ¦ m1]; C bodies→{whole} [m1 ¦ m1]"
    played = play("DUAL", script)
    assert (played.verdict.status, played.committed, played.withheld) == (
        "succeeded", {whole: "1"}, {short: "unaccounted"},
    )  # fmt: skip


@pytest.mark.clause("CP-529")
def test_fewer_reports_do_not_shrink_what_is_declared(play):
    """A boundary that is never reported is withheld in every run, the second as the first."""
    for cursor in ("1", "2"):
        played = play("DUAL", f"S inbox={cursor}; S archive={cursor}; C bodies→inbox [m1 ¦ m1]")
        assert (played.committed, played.withheld) == ({"inbox": cursor}, {"archive": "no_report"})


# Gaps.


@pytest.mark.clause("CP-535")
@pytest.mark.parametrize(
    "wrong",
    [{"stream": ...}, {"stream": "ghost"}, {"stream": ""}, {"record_key": []}, {"record_key": True},
     {"record_key": None}, {"retryable": "yes"}, {"detail_locator": []}, {"list_cursor": "x"}, {"last_error": "x"},
     {"gap_id": 5}, {"lease_id": 5}, {"reason": 5}, {"parent_stream": 5}],
)  # fmt: skip
def test_a_gap_of_another_shape_is_refused(play, wrong):
    """The stream is mandatory and in scope; everything else is optional and typed."""
    play.refused("SOLO", gap(**wrong))


@pytest.mark.clause("CP-535")
def test_a_gap_needs_only_its_stream(play):
    """Type and stream make a gap, and one for a stream outside the scope is none."""
    assert play("SOLO", f"S notes=n1; {gap()}").verdict.status == "succeeded"
    assert play.refused("SOLO", gap(), scope="albums notes") == "gap_scope"


@pytest.mark.parametrize(
    ("line", "accounted"),
    [
        pytest.param(gap(record_key="p1"), True, marks=pytest.mark.clause("CP-538")),
        pytest.param(gap(record_key="p1", parent_stream="albums"), True, marks=pytest.mark.clause("CP-538")),
        pytest.param(gap(record_key="p1", retryable=False), True),
        pytest.param(gap(record_key="p1", parent_stream="notes"), False, marks=pytest.mark.clause("CP-545")),
        pytest.param(gap(record_key="p1", parent_stream=""), False, marks=pytest.mark.clause("CP-545")),
        pytest.param(gap(record_key="p2"), False, marks=pytest.mark.clause("CP-542")),
        pytest.param(gap(record_key="p1", stream="notes"), False, marks=pytest.mark.clause("CP-542")),
        pytest.param(gap(detail_locator={"id": "p1"}), False, marks=pytest.mark.clause("CP-544")),
        pytest.param(gap(gap_id="p1"), False, marks=pytest.mark.clause("CP-544")),
    ],
)
def test_a_gap_backs_the_key_of_its_own_boundary(play, line, accounted):
    """Stream, boundary and key all have to be those of the report."""
    played = play("SOLO", f"S albums=a1; {line}; C photos→albums [p1 ¦ ∅ ¦ gap p1]")
    assert played.verdict.status == "succeeded"
    assert played.withheld == ({} if accounted else {"albums": "unaccounted"})


@pytest.mark.clause("CP-539", "CP-540")
@pytest.mark.parametrize(("named", "withheld"), [("–", ["inbox", "archive"]), ("inbox", ["archive"])])
def test_a_gap_of_one_parent_never_serves_another(play, named, withheld):
    """Of several parents, a gap counts for the one it names; where it names none it counts for none."""
    sets = "[m1 ¦ ∅ ¦ gap m1]"
    script = f"S inbox=1; S archive=1; G bodies→{named} m1; C bodies→inbox {sets}; C bodies→archive {sets}"
    assert list(play("DUAL", script).withheld) == withheld


@pytest.mark.clause("CP-541")
def test_a_key_may_be_a_gap_here_and_hydrated_there(play):
    """Two boundaries may differ about one key."""
    sets = "C bodies→inbox [m1 ¦ ∅ ¦ gap m1]; C bodies→archive [m1 ¦ m1]"
    assert len(play("DUAL", f"S inbox=1; S archive=1; G bodies→inbox m1; {sets}").committed) == 2


@pytest.mark.clause("CP-543")
def test_a_gap_that_the_report_does_not_list_accounts_for_nothing(play):
    """The report has to name the key as a gap, and the gap has to exist."""
    for sets, held in (("[p1 ¦ ∅]", True), ("[p1 ¦ ∅ ¦ gap ∅]", True), ("[p1 ¦ ∅ ¦ gap p1]", False)):
        played = play("SOLO", f"S albums=a1; G photos→albums p1; C photos→albums {sets}")
        assert ("albums" in played.withheld) is held


@pytest.mark.clause("CP-556", "CP-557")
@pytest.mark.parametrize("extra", ["", "; G photos→albums p1"])
def test_an_optional_skip_earns_no_credit(play, extra):
    """optional_skip_keys is a member that nothing here knows or can be told to know."""
    played = play("SOLO", f"S albums=a1; C photos→albums [p1 ¦ ∅ ¦ optional p1]{extra}")
    assert (played.committed, played.withheld) == ({}, {"albums": "unaccounted"})
