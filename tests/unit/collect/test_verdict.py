"""The verdict: one status and one cause for everything that was seen of a run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.collect.verdict import STREAM_FAILED, Exit, Sight, Stop, judge
from headwater.wire.messages import Done, DoneError

CERTIFIED = Done("failed", 0, DoneError("x", False, code=STREAM_FAILED))


def see(status: str | None, code: int | None = 0, **seen) -> tuple[str, str, bool]:
    """Judge a run that ended with a DONE of a status, or none, and an exit status."""
    done = None if status is None else CERTIFIED if status == "scf" else Done(status, 0)
    claimed = None if done is None else 0
    verdict = judge(Sight(**{"exit": Exit(code), "done": done, "records_claimed": claimed, **seen}))
    assert verdict.message.endswith(".")
    return verdict.status, verdict.cause, verdict.may_commit


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        pytest.param("succeeded", 0, ("succeeded", "succeeded", True), marks=pytest.mark.clause("CP-204")),
        pytest.param("failed", 1, ("failed", "connector_failed", False), marks=pytest.mark.clause("CP-204", "CP-902")),
        pytest.param("cancelled", 1, ("cancelled", "connector_cancelled", False),
                     marks=pytest.mark.clause("CP-206", "CP-902")),
        pytest.param("succeeded", 2, ("failed", "exit_disagrees", False), marks=pytest.mark.clause("CP-210")),
        pytest.param("failed", 0, ("failed", "exit_disagrees", False), marks=pytest.mark.clause("CP-204")),
        pytest.param("cancelled", 0, ("failed", "exit_disagrees", False), marks=pytest.mark.clause("CP-206")),
        pytest.param("succeeded", None, ("failed", "exit_disagrees", False), marks=pytest.mark.clause("CP-210")),
        pytest.param("scf", 1, ("failed", "connector_failed", False), marks=pytest.mark.clause("CP-801")),
        pytest.param(None, 0, ("failed", "no_done", False), marks=pytest.mark.clause("CP-209")),
        pytest.param(None, 1, ("failed", "no_done", False), marks=pytest.mark.clause("CP-209")),
    ],
)  # fmt: skip
def test_done_and_exit_agree_or_the_run_failed(status, code, expected):
    """A status counts only beside the exit that belongs to it."""
    assert see(status, code) == expected


@pytest.mark.clause("CP-210")
def test_a_signal_is_no_success():
    """A child that was killed after it said succeeded did not succeed, and the sentence names the signal."""
    verdict = judge(Sight(Exit(signal=9), Done("succeeded", 0), records_claimed=0))
    assert (verdict.status, verdict.may_commit) == ("failed", False)
    assert "killed by signal 9" in verdict.message


@pytest.mark.clause("CP-105", "CP-209")
def test_a_line_that_was_cut_off_is_no_done():
    """Half of a succeeded DONE and exit 0 are a failed run, with a cause of its own."""
    assert see(None, 0, truncated=True) == ("failed", "truncated", False)


@pytest.mark.clause("CP-220", "CP-808")
@pytest.mark.parametrize("status", ["succeeded", "failed", "cancelled", "scf"])
@pytest.mark.parametrize(("claimed", "seen"), [(2, 3), (4, 3), (0, 1), (1, 0)])
def test_a_wrong_count_fails_every_ending(status, claimed, seen):
    """What a DONE says is not believed where its count is wrong."""
    code = 0 if status == "succeeded" else 1
    outcome = see(status, code, records_claimed=claimed, records_seen=seen, certifying=True)
    assert outcome == ("failed", "wrong_count", False)


@pytest.mark.clause("CP-800", "CP-446")
def test_a_certified_failure_may_commit_and_stays_failed():
    """The code and a skip for each failed stream together are enough."""
    assert see("scf", 1, certifying=True) == ("failed", STREAM_FAILED, True)


@pytest.mark.clause("CP-802", "CP-809", "CP-812")
@pytest.mark.parametrize(
    ("done", "code"),
    [
        (Done("failed", 0), 1),
        (Done("failed", 0, DoneError("x", False)), 1),
        (Done("failed", 0, DoneError(STREAM_FAILED, False)), 1),
        (Done("failed", 0, DoneError("x", False, code="auth_failed")), 1),
        (Done("failed", 0, DoneError("x", False, code="stream_collect_failed")), 1),
        (CERTIFIED, 0),
        (Done("cancelled", 0, CERTIFIED.error), 1),
    ],
)
def test_skips_alone_certify_nothing(done, code):
    """Without the very code, a failed status and its exit, the skips change nothing."""
    assert judge(Sight(Exit(code), done, records_claimed=0, certifying=True)).may_commit is False


@pytest.mark.clause("CP-812")
def test_certification_is_for_failed_runs():
    """A run that succeeded is a succeeded run whatever it skipped."""
    assert see("succeeded", 0, certifying=True) == ("succeeded", "succeeded", True)


@pytest.mark.clause("CP-484")
def test_a_run_the_connector_cancelled_is_not_certified():
    """Code and skips beside a cancelled DONE commit nothing."""
    done = Done("cancelled", 0, CERTIFIED.error)
    verdict = judge(Sight(Exit(1), done, records_claimed=0, certifying=True))
    assert (verdict.status, verdict.may_commit) == ("cancelled", False)


@pytest.mark.clause("CP-207", "CP-213")
@pytest.mark.parametrize("status", ["succeeded", "failed", "cancelled", "scf", None])
def test_the_hosts_reason_goes_before_what_the_connector_said(status):
    """A violation, a limit or a failed store is the cause whatever DONE and exit say."""
    outcome = see(status, 0, stop=Stop("idle", "It was silent."), certifying=True)
    assert outcome == ("failed", "idle", False)


@pytest.mark.clause("CP-217", "CP-480", "CP-481", "CP-482")
@given(
    status=st.sampled_from(["succeeded", "failed", "cancelled", "scf", None]),
    code=st.sampled_from([None, 0, 1]),
    stop=st.sampled_from([None, Stop("idle", "It was silent.")]),
    seen=st.integers(0, 2),
    certifying=st.booleans(),
    truncated=st.booleans(),
)
def test_a_cancellation_goes_before_everything(status, code, stop, seen, certifying, truncated):
    """Once it is recorded, nothing else is looked at."""
    outcome = see(
        status, code, cancelled=True, stop=stop, records_seen=seen, certifying=certifying, truncated=truncated
    )
    assert outcome == ("cancelled", "cancelled", False)
