"""Checkpoints: which of the staged ones commit after a success, a certified failure, or a host that went away."""

import pytest

from headwater.collect.checkpoints import decide_abandoned
from headwater.collect.plan import PROACTIVE, Authority
from headwater.manifest.graph import CheckpointGraph

COMBO = ("alpha", "beta", "threads", "albums")


def held(decision) -> dict[str, str]:
    """Return the reason of each withheld checkpoint."""
    return {one.stream: one.reason for one in decision.withheld}


# A certified failure.


@pytest.mark.clause("CP-430", "CP-434", "CP-440", "CP-441")
def test_all_but_the_failed_stream_commits_with_its_latest_cursor(play):
    """What is staged after the failed stream's skip counts too, and of the failed stream nothing is written."""
    played = play("FLAT", "S alpha=a1; S beta=b1; F beta; S beta=b2; S gamma=g1; S alpha=a2", "scf")
    assert played.verdict.status == "failed"
    assert (played.committed, played.withheld) == ({"gamma": "g1", "alpha": "a2"}, {"beta": "stream_failed"})


@pytest.mark.clause("CP-432")
def test_a_failed_child_withholds_the_parent_that_covers_it(play):
    """A state_stream child has no checkpoint of its own to lose."""
    played = play("RIDER", "S threads=t1; S notes=n1; F stamps", "scf")
    assert (played.committed, played.withheld) == ({"notes": "n1"}, {"threads": "covered_stream_failed"})
    (one,) = played.decision.withheld
    assert one.message == "It covers stamps, which could not be collected."


@pytest.mark.clause("CP-433")
@pytest.mark.parametrize("reported", [[], ["inbox"], ["archive"], ["inbox", "archive"]])
def test_a_failed_detail_stream_withholds_every_declared_parent(play, reported):
    """Which parents it reported makes no difference; the manifest names them."""
    reports = "".join(f"; C bodies→{parent} [m1 ¦ m1]" for parent in reported)
    played = play("DUAL", f"S inbox=1; S archive=1{reports}; F bodies", "scf")
    assert (played.committed, set(played.withheld)) == ({}, {"inbox", "archive"})
    assert set(played.withheld.values()) == {"covered_stream_failed"}


@pytest.mark.clause("CP-436")
def test_several_failures_withhold_the_union_of_their_parents(play):
    """Each failed stream adds its own parents."""
    script = "S inbox=1; S archive=1; S people=1; C bodies→inbox [∅ ¦ ∅]; C bodies→archive [∅ ¦ ∅]; F labels; F people"
    played = play("MIX", script, "scf")
    assert (played.committed, set(played.withheld)) == ({"archive": "1"}, {"inbox", "people"})


@pytest.mark.clause("CP-437", "CP-439")
@pytest.mark.parametrize("terminal", ["ok", "scf"])
def test_a_shortfall_withholds_whether_or_not_something_failed(play, terminal):
    """Coverage is judged for every staged checkpoint, on success and on a certified failure of another stream."""
    failed = "; F people" if terminal == "scf" else ""
    script = "S inbox=1; S archive=1; S people=1; C bodies→inbox [m1 m2 ¦ m1]; C bodies→archive [m3 ¦ m3]"
    played = play("MIX", script + failed, terminal)
    assert played.withheld == {"inbox": "unaccounted", **({"people": "stream_failed"} if failed else {})}


@pytest.mark.clause("CP-438")
def test_a_parent_without_a_report_is_withheld(play):
    """The sibling that was reported is judged on its own report."""
    played = play("DUAL", "S inbox=1; S archive=1; C bodies→archive [m1 ¦ m1]")
    assert (played.committed, played.withheld) == ({"archive": "1"}, {"inbox": "no_report"})


@pytest.mark.clause("CP-442")
@pytest.mark.parametrize("scope", ["inbox archive", "inbox"])
def test_no_report_is_owed_for_a_stream_outside_the_scope(play, scope):
    """Without the detail stream in scope its parents commit."""
    assert list(play("DUAL", "S inbox=1", scope=scope).committed) == ["inbox"]


@pytest.mark.clause("CP-443")
def test_a_parent_that_staged_nothing_has_nothing_to_withhold(play):
    """Its missing report is no matter of its sibling."""
    played = play("DUAL", "S inbox=1; C bodies→inbox [m1 ¦ m1]")
    assert (played.committed, played.withheld) == ({"inbox": "1"}, {})


@pytest.mark.clause("CP-444")
@pytest.mark.parametrize(
    ("reports", "reason"),
    [
        ("C photos→albums [p1 ¦ p1]; C faces→albums [f1 ¦ ∅]", "unaccounted"),
        ("C photos→albums [p1 ¦ ∅]; C faces→albums [f1 ¦ f1]", "unaccounted"),
        ("C photos→albums [p1 ¦ p1]", "no_report"),
        ("C faces→albums [p1 ¦ p1]", "no_report"),
        ("C photos→albums [p1 ¦ p1]; C faces→albums [f1 ¦ f1]", None),
    ],
)
def test_every_detail_stream_of_a_parent_has_to_be_whole(play, reports, reason):
    """One incomplete or missing report of two is enough to withhold."""
    played = play("TWINS", f"S albums=1; {reports}")
    assert played.withheld == ({"albums": reason} if reason else {})


@pytest.mark.clause("CP-018", "CP-414", "CP-445")
def test_a_success_commits_all_that_coverage_does_not_withhold(play):
    """A self-mapped stream needs nothing, a parent its report; a stream without STATE is in neither list."""
    played = play("SOLO", "S albums=1; C photos→albums [p1 ¦ ∅]; S notes=1")
    assert (played.verdict.status, played.committed, played.withheld) == (
        "succeeded", {"notes": "1"}, {"albums": "unaccounted"},
    )  # fmt: skip
    assert play("FLAT", "S alpha=1; S beta=1").committed == {"alpha": "1", "beta": "1"}


@pytest.mark.clause("CP-446", "CP-447")
@pytest.mark.parametrize("staged", [0, 4, 9, 10])
def test_a_certified_run_stays_failed_however_much_it_commits(play, staged):
    """Nine of ten streams may move on; the tenth keeps its cursor and stays due."""
    names = [f"s{number}" for number in range(10)]
    script = "; ".join([*(f"S {name}=1" for name in names[:staged]), "F s9"])
    played = play(play.declared(" ".join(names)), script, "scf")
    assert (played.verdict.status, played.verdict.cause) == ("failed", "stream_collection_failed")
    assert list(played.committed) == names[: min(staged, 9)]
    assert list(played.withheld) == names[9:staged]


@pytest.mark.clause("CP-812")
def test_a_failed_stream_in_a_run_that_succeeded_keeps_its_cursor(play):
    """The run is a succeeded one; only the checkpoint of the stream that said it failed is held back."""
    played = play("FLAT", "S alpha=1; S beta=1; F beta")
    assert (played.verdict.cause, played.committed, played.withheld) == (
        "succeeded", {"alpha": "1"}, {"beta": "stream_failed"},
    )  # fmt: skip


@pytest.mark.clause("CP-404")
@pytest.mark.parametrize("terminal", ["ok", "scf", "failed", "cancelled", "–"])
@pytest.mark.parametrize("grant", [None, "G1"])
def test_a_single_use_commits_nothing_however_it_ends(play, terminal, grant):
    """Its checkpoints are withheld for that reason and no other."""
    authority = Authority(grant, single_use=True)
    played = play("FLAT", "S alpha=1; F beta", terminal, authority=authority)
    assert (played.committed, played.withheld) == ({}, {"alpha": "single_use"})


@pytest.mark.clause("CP-206", "CP-484", "CP-902")
@pytest.mark.parametrize(("terminal", "cause"), [("failed", "connector_failed"), ("cancelled", "connector_cancelled")])
def test_an_ordinary_failure_or_cancellation_commits_nothing(play, terminal, cause):
    """Every staged checkpoint is withheld with the cause of the run."""
    played = play("FLAT", "S alpha=1; S beta=1; F gamma", terminal)
    assert (played.committed, played.withheld) == ({}, {"alpha": cause, "beta": cause})


@pytest.mark.clause("CP-484")
def test_a_cancelled_done_with_the_certifying_code_commits_nothing(play):
    """Certification-like skips and code do not turn a cancellation into a failure."""
    error = '{"message":"x","retryable":false,"code":"stream_collection_failed"}'
    done = f'{{"type":"DONE","status":"cancelled","records_emitted":0,"error":{error}}}'
    played = play("FLAT", f"S alpha=1; F beta; {done}", "–")
    assert (played.verdict.status, played.committed) == ("cancelled", {})


def test_only_the_first_keys_of_a_shortfall_are_named(play):
    """A hundred thousand missing keys do not end up in one sentence."""
    keys = " ".join(f"k{number}" for number in range(1_200))
    (one,) = play("SOLO", f"S albums=1; C photos→albums [{keys} ¦ ∅]").decision.withheld
    assert one.message == "1,200 keys of photos are unaccounted for."
    assert one.keys == tuple(f"k{number}" for number in range(20))


# A host that went away.


def abandon(play, manifest: str, *staged: str, gapped: str = "", **how):
    """Decide for a run whose host went away, by the declaration alone."""
    conditions = {"controller_died": True, "authority": PROACTIVE, "cancelled": False, **how}
    graph = CheckpointGraph(play.declared(manifest).streams)
    return decide_abandoned(graph, staged, frozenset(gapped.split()), **conditions)


@pytest.mark.clause("CP-460")
def test_an_abandoned_run_commits_stream_by_stream(play):
    """Each checkpoint is decided for itself, in the order it was staged, and every other one stays due."""
    decision = abandon(play, "COMBO", *reversed(COMBO), gapped="beta")
    assert decision.committed == ("threads", "alpha")
    assert held(decision) == {"albums": "detail_parent", "beta": "pending_gap"}


@pytest.mark.clause("CP-461", "CP-462")
def test_the_exception_is_for_a_controller_that_died(play):
    """Once the connector had ended or reported its end, nothing of its run is recovered."""
    decision = abandon(play, "COMBO", *COMBO, controller_died=False)
    assert (decision.committed, set(held(decision).values())) == ((), {"connector_ended"})


@pytest.mark.clause("CP-463", "CP-465")
@pytest.mark.parametrize(("manifest", "parents"), [("SOLO", "albums"), ("DUAL", "inbox archive"), ("TWINS", "albums")])
def test_a_detail_parent_never_qualifies(play, manifest, parents):
    """The manifest decides: no report, scope or member of a message is even asked."""
    decision = abandon(play, manifest, *parents.split())
    assert (decision.committed, set(held(decision).values())) == ((), {"detail_parent"})


@pytest.mark.clause("CP-464")
def test_a_parent_of_a_state_stream_child_may_qualify(play):
    """Covering a stream by one's own cursor is no detail coverage."""
    assert abandon(play, "RIDER", "threads", "notes").committed == ("threads", "notes")


@pytest.mark.clause("CP-466")
def test_a_pending_gap_holds_back_what_covers_it(play):
    """A gap of the stream itself counts, and one of a child that its cursor covers."""
    assert held(abandon(play, "FLAT", "alpha", "beta", gapped="beta")) == {"beta": "pending_gap"}
    decision = abandon(play, "RIDER", "threads", "notes", gapped="stamps")
    assert (decision.committed, held(decision)) == (("notes",), {"threads": "pending_gap"})


@pytest.mark.clause("CP-404", "CP-470")
@pytest.mark.parametrize(
    ("how", "reason"),
    [({"authority": Authority(single_use=True)}, "single_use"), ({"cancelled": True}, "cancelled")],
)
def test_the_exception_overrides_neither_single_use_nor_cancellation(play, how, reason):
    """Both were decided before the host went away."""
    decision = abandon(play, "FLAT", "alpha", "beta", **how)
    assert (decision.committed, held(decision)) == ((), {"alpha": reason, "beta": reason})


@pytest.mark.parametrize("gapped", ["", "alpha", "beta stamps", "ghost"])
def test_every_staged_checkpoint_of_an_abandoned_run_is_accounted_for(play, gapped):
    """Committed and withheld together are what was staged, once each."""
    decision = abandon(play, "COMBO", *COMBO, gapped=gapped)
    assert sorted([*decision.committed, *held(decision)]) == sorted(COMBO)
