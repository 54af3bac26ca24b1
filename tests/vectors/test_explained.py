"""What a person is told of a run: never more than it proved."""

import json
import subprocess
import sys

import pytest

from headwater.collect.plan import Authority

PAGE = {
    "boundary": "sent_at",
    "slice_start": "2026-01-01",
    "slice_end": "2026-02-01",
    "considered": 10,
    "covered": 10,
    "remaining": True,
    "owner": "runtime",
}


@pytest.fixture
def tell(stage, tmp_path):
    """Play scripts and type commands over what they left; `tell.human` gives words, `tell` the result."""

    def typing(*words, output="json"):
        where = ["--config", str(tmp_path / "config.toml"), "--state-dir", str(tmp_path / "state"), "--output", output]
        done = subprocess.run([sys.executable, "-m", "headwater", *where, *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout if output == "human" else json.loads(done.stdout)["result"]

    typing.human = lambda *words: typing(*words, output="human")
    return typing


@pytest.mark.clause("CP-416")
@pytest.mark.parametrize(
    ("script", "terminal", "status"),
    [
        ("S threads=t1", "ok", "committed"),
        ("S threads=t1; F threads", "scf", "withheld"),
        ("S threads=t1; F stamps", "scf", "withheld"),
        ("S threads=t1", "failed", "withheld"),
        ("S notes=n1", "ok", "not_sent"),
    ],
)
def test_a_stream_that_rides_on_a_cursor_stands_as_that_cursor_does(stage, tell, script, terminal, status):
    """It has no fate of its own; nothing that the run says can give it one."""
    stage("RIDER").play(script, terminal)
    checkpoints = tell("runs", "show")["checkpoints"]
    assert checkpoints["covered"] == [{"stream": "stamps", "by": "threads", "status": status}]
    assert "stamps" not in [*checkpoints["committed"], *(held["stream"] for held in checkpoints["withheld"])]
    assert f"stamps rides on the cursor of threads: {status.replace('_', ' ')}." in tell.human("runs", "explain")


@pytest.mark.clause("CP-136")
def test_a_continuation_proves_its_own_slice_and_nothing_more(stage, tell):
    """The slice is named with its counts; nowhere is the stream called complete."""
    skip = json.dumps({"type": "SKIP_RESULT", "stream": "alpha", "reason": "page_limit", "continuation": PAGE})
    stage("FLAT").play(f"R alpha 1; S alpha=a1; {skip}")
    (kept,) = tell("runs", "show")["facts"]["skips"]
    assert kept["continuation"] == PAGE
    words = tell.human("runs", "explain")
    assert (
        "alpha from 2026-01-01 to 2026-02-01: 10 of 10 covered. What lies outside is not claimed; more remains."
        in words
    )
    assert "complete" not in words + tell.human("streams", "list") + tell.human("runs", "show")


@pytest.mark.clause("CP-631", "CP-632")
@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ("10=6+2+1+1", "8 of 10 covered, 1 gapped, 1 unaccounted: not complete."),
        ("3=2+0+1+0", "2 of 3 covered, 1 gapped, 0 unaccounted: not complete."),
        ("3=2+0+0+1", "2 of 3 covered, 0 gapped, 1 unaccounted: not complete."),
        ("3=1+2+0+0", "3 of 3 covered."),
        ("0=0+0+0+0", "0 of 0 covered."),
    ],
)
def test_evidence_is_never_told_as_more_than_its_numbers(stage, tell, counts, said):
    """What was emitted or unchanged is covered, and nothing else is."""
    stage("RIDER").play(f"E stamps {counts}; S threads=t1")
    assert f"stamps by its own count: {said}" in tell.human("runs", "explain")


@pytest.mark.clause("CP-630")
@pytest.mark.parametrize("evidence", ["", "E stamps 3=3+0+0+0; "])
def test_the_evidence_of_a_later_run_does_not_change_which_run_a_stream_rests_on(stage, tell, evidence):
    """A cancelled run with evidence leaves everything resting on the run that committed."""
    real = stage("RIDER")
    good = real.play("R threads 1; S threads=t1").run_id
    real.play(f"{evidence}R threads 1; S threads=t2", cancel=True)
    (cursor,) = tell("state", "show", "c/adhoc")["cursors"]
    assert (cursor["run_id"], cursor["cursor"]) == (good, {"at": "t1"})
    streams = {row["stream"]: row["checkpoint_at"] for row in tell("streams", "list")["streams"]}
    assert (streams["threads"] == cursor["committed_at"], streams["stamps"]) == (True, None)


@pytest.mark.clause("CP-216")
def test_a_grants_run_that_is_ended_because_it_was_revoked_stores_and_commits_no_more(stage):
    """What its host hears of the revocation, it does at once: the connector is gone before the run is."""
    real = stage("FLAT")
    outcome = real.play("R alpha 1; S alpha=a1", cancel=True, authority=Authority("G1"))
    assert (outcome.verdict.status, outcome.decision.committed) == ("cancelled", ())
    assert real.cursors("grant:G1") == {}
    assert real.ask("SELECT cancel_requested FROM runs") == [(1,)]


@pytest.mark.clause("CP-467", "CP-907")
def test_after_a_restart_no_cursor_is_later_than_what_is_durable(stage):
    """The host dies between two STATEs: the first is behind durable records, the second was never written down."""
    real = stage("FLAT")
    host = real.play_until("R alpha 1; S alpha=a1", "SELECT 1 FROM staged WHERE stream = 'alpha'")
    host.kill()
    host.communicate()
    assert real.ask("SELECT key FROM records") == [("1",)]
    real.play("R beta 1")
    assert real.cursors() == {"alpha": "a1"}
    assert real.start["state"] == {"alpha": {"at": "a1"}}


@pytest.mark.clause("CP-467")
@pytest.mark.parametrize(
    ("manifest", "script", "waits_for"),
    [
        ("SOLO", "R albums 1; C photos→albums [p1 ¦ p1]; S albums=a1", "albums"),
        ("DUAL", "C bodies→inbox [m1 ¦ ∅]; S inbox=i1", "inbox"),
        ("FLAT", "G beta→beta b1; S beta=b1", "beta"),
    ],
)
def test_after_a_restart_a_stream_whose_coverage_is_not_settled_stays_where_it_was(stage, manifest, script, waits_for):
    """A report that came is no proof before the connector's own end; a gap that is open is none at all."""
    real = stage(manifest)
    host = real.play_until(script, f"SELECT 1 FROM staged WHERE stream = '{waits_for}'")
    host.kill()
    host.communicate()
    real.play("")
    assert real.cursors() == {}
