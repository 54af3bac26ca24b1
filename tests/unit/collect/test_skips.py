"""Skips, certification and hints: what a connector may say it could not do, and what that is worth."""

import json

import pytest

from headwater import limits
from headwater.collect.session import Skip

FAILED = "stream_collection_failed"
ACTIONS = [
    "retry_by_runtime", "retry_on_connector_upgrade", "refresh_credentials", "manual_action_required",
    "update_selector", "upstream_unblock", "not_retriable", "unknown",
]  # fmt: skip
BAD_HINTS = [
    "retry", "", "Retry_By_Runtime", {}, {"retryable": True}, {"action": "reboot"}, {"action": None},
    {"action": ["unknown"]}, {"action": "unknown", "retryable": "no"}, {"action": "unknown", "retryable": 0},
    5, True, [],
]  # fmt: skip
CONTINUATION = {
    "boundary": "inbox", "slice_start": "a", "slice_end": "m", "considered": 10, "covered": 10, "remaining": True,
    "owner": "runtime",
}  # fmt: skip


def skip(**members) -> str:
    """Write a SKIP_RESULT; ... leaves a member out."""
    return json.dumps({"type": "SKIP_RESULT", **{name: value for name, value in members.items() if value is not ...}})


def failed(**error) -> str:
    """Write a failed DONE with members of its error."""
    error = {"message": "It failed.", "retryable": False, **error}
    return json.dumps({"type": "DONE", "status": "failed", "records_emitted": 0, "error": error})


# The shape and the effect of a skip.


@pytest.mark.clause("CP-130", "CP-132")
def test_a_skip_needs_no_member(play):
    """Its type alone is a message, and the run goes on to commit what came around it."""
    played = play("FLAT", f"S alpha=a1; {skip()}; R alpha 1; S beta=b1")
    assert (played.verdict.status, len(played.committed)) == ("succeeded", 2)
    assert played.session.facts.skips == (Skip(None, None, None, None),)


@pytest.mark.clause("CP-130")
@pytest.mark.parametrize(
    "wrong", [{"stream": 3}, {"reason": []}, {"message": {}}, {"stream": None}, {"recovery_hint": None}]
)
def test_a_skip_of_another_shape_is_refused(play, wrong):
    """A member of the wrong type makes the message none, and no skip is recorded without it."""
    line = skip(**{"reason": "rate_limited", **wrong})
    assert play.refused("FLAT", line) == "invalid_message"
    assert play("FLAT", line).session.facts.skips == ()


@pytest.mark.clause("CP-132", "CP-904")
def test_an_old_skip_withholds_no_checkpoint(play):
    """A skip without hint and continuation is kept as it was said, for its own stream too."""
    line = skip(stream="alpha", reason="rate_limited", message="Later.")
    played = play("FLAT", f"{line}; S alpha=a1; S beta=b1")
    assert (played.verdict.status, len(played.committed)) == ("succeeded", 2)
    assert played.session.facts.skips == (Skip("alpha", "rate_limited", "Later.", None),)


@pytest.mark.clause("CP-901", "CP-902")
@pytest.mark.parametrize(("terminal", "committed"), [("ok", {"alpha": "2"}), ("failed", {}), ("cancelled", {})])
def test_a_first_revision_transcript_runs_to_its_old_result(play, terminal, committed):
    """The six messages of the first revision commit on success and on nothing else."""
    progress = json.dumps({"type": "PROGRESS", "message": "Half.", "count": 1, "total": 2})
    script = f"R alpha 1; S alpha=1; {progress}; {skip(stream='beta', reason='rate_limited')}; R alpha 2; S alpha=2"
    played = play("FLAT", script, terminal)
    assert (played.committed, played.session.records_seen) == (committed, 2)


def test_long_texts_and_many_skips_are_bounded(play):
    """What is kept of a run does not grow with what a broken connector says; what counts is still heard."""
    line = skip(stream="alpha", reason="x" * 9_000, message="y" * 9_000)
    played = play("FLAT", "; ".join([*[line] * (limits.SKIPS_PER_RUN + 1), "S alpha=1; S beta=1; F beta"]), "scf")
    assert len(played.session.facts.skips) == limits.SKIPS_PER_RUN
    assert len(played.session.facts.skips[0].reason) == len(played.session.facts.skips[0].message) == 2_000
    assert played.committed == {"alpha": "1"}


@pytest.mark.clause("CP-133")
@pytest.mark.parametrize(
    "wrong", [*({name: ...} for name in CONTINUATION), {"remaining": False}, {"owner": "connector"}]
)
def test_a_continuation_has_all_of_its_seven_members(play, wrong):
    """A fact that lacks one, or that does not continue, is refused and never recorded."""
    merged = {name: value for name, value in {**CONTINUATION, **wrong}.items() if value is not ...}
    assert play.refused("SOLO", skip(stream="albums", continuation=merged)) == "invalid_message"
    (kept,) = play("SOLO", skip(stream="albums", continuation=CONTINUATION)).session.facts.skips
    assert kept.continuation == CONTINUATION


@pytest.mark.clause("CP-135")
def test_a_retryable_skip_is_no_continuation(play):
    """Full coverage beside it does not turn it into one."""
    line = skip(stream="photos", reason="rate_limited", recovery_hint="retry_by_runtime")
    played = play("SOLO", f"S albums=a1; C photos→albums [p1 ¦ p1]; {line}")
    (kept,) = played.session.facts.skips
    assert (kept.hint, kept.continuation) == ("retry_by_runtime", None)


# Certification.


@pytest.mark.parametrize(
    ("skips", "terminal"),
    [
        pytest.param("", "scf", marks=pytest.mark.clause("CP-801")),
        pytest.param("F beta", "failed", marks=pytest.mark.clause("CP-802")),
        pytest.param("F beta", "failed[auth_failed]", marks=pytest.mark.clause("CP-802")),
        pytest.param("F beta", "failed[stream_collect_failed]", marks=pytest.mark.clause("CP-802")),
        pytest.param("F –", "scf", marks=pytest.mark.clause("CP-804")),
        pytest.param(skip(stream="", reason=FAILED), "scf", marks=pytest.mark.clause("CP-804")),
        pytest.param("F beta; F –", "scf", marks=pytest.mark.clause("CP-804")),
        pytest.param("F –; F beta", "scf", marks=pytest.mark.clause("CP-804")),
        pytest.param("F gamma", "scf", marks=pytest.mark.clause("CP-805")),
        pytest.param("F ghost; F beta", "scf", marks=pytest.mark.clause("CP-805")),
        pytest.param(skip(stream="beta", reason="rate_limited"), "scf", marks=pytest.mark.clause("CP-806")),
        pytest.param(skip(stream="beta"), "scf", marks=pytest.mark.clause("CP-806")),
        pytest.param(skip(stream="beta", message=FAILED), "scf", marks=pytest.mark.clause("CP-806")),
    ],
)
def test_a_failure_that_is_not_certified_commits_nothing(play, skips, terminal):
    """Code and skips have to be the very ones, and no failure may be left unnamed."""
    played = play("FLAT", f"S alpha=a1; {skips}", terminal, scope="alpha beta")
    assert (played.verdict.status, played.verdict.cause) == ("failed", "connector_failed")
    assert (played.committed, played.withheld) == ({}, {"alpha": "connector_failed"})


@pytest.mark.clause("CP-800")
@pytest.mark.parametrize("extra", ["", skip(), skip(reason="rate_limited"), skip(stream="gamma", reason="x"), "F beta"])
def test_other_skips_beside_do_not_void_a_certification(play, extra):
    """Only a failed stream has to be named; an ordinary skip may name any stream or none."""
    assert play("FLAT", f"S alpha=a1; {extra}; F beta", "scf", scope="alpha beta").committed == {"alpha": "a1"}


@pytest.mark.clause("CP-807", "CP-808", "CP-809")
@pytest.mark.parametrize(
    ("line", "how"), [('{"type":"NOVEL"}', {}), ("S ghost=1", {}), ("R alpha 1", {"off": 1}), ("", {"exit_code": 0})]
)
def test_a_violation_a_wrong_count_and_a_wrong_exit_void_a_certification(play, line, how):
    """A run that broke a rule is not believed about its streams either."""
    played = play("FLAT", f"S alpha=a1; F beta; {line}", "scf", **how)
    assert (played.verdict.status, played.committed) == ("failed", {})
    assert played.verdict.cause != FAILED


# error.code.


@pytest.mark.clause("CP-820")
@pytest.mark.parametrize("code", ["a", "a_1", "a" * 64, "z9_"])
def test_a_code_is_a_short_lower_case_name(play, code):
    """It is kept as it was said."""
    played = play("FLAT", failed(code=code), "–")
    assert (played.verdict.cause, played.session.facts.error["code"]) == ("connector_failed", code)


@pytest.mark.clause("CP-820")
@pytest.mark.parametrize("code", ["", "a" * 65, "A", "1a", "_a", "a-b", "á", "a\n", "a b", 5, None])
def test_another_code_refuses_the_done(play, code):
    """A code that is none voids the certification with the rest."""
    played = play("FLAT", f"S alpha=a1; F beta; {failed(code=code)}", "–")
    assert (played.verdict.cause, played.committed) == ("invalid_message", {})


# Hints.


@pytest.mark.clause("CP-822", "CP-823", "CP-830")
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("form", ["text", "object", "retryable"])
def test_a_hint_names_one_of_eight_actions(play, action, form):
    """On a skip and on DONE, as text or as an object, the action is what is kept, whatever the words around it say."""
    hint = {"text": action, "object": {"action": action}, "retryable": {"action": action, "retryable": False}}[form]
    done = failed(code="auth_failed", message="bad password", retryable=True, recovery_hint=hint)
    played = play("FLAT", f"{skip(message='bad password', recovery_hint=hint)}; {done}", "–")
    assert played.verdict.cause == "connector_failed"
    assert (played.session.facts.skips[0].hint, played.session.facts.error["hint"]) == (action, action)


@pytest.mark.clause("CP-822", "CP-824", "CP-826", "CP-827", "CP-828", "CP-829")
@pytest.mark.parametrize("hint", BAD_HINTS)
def test_a_bad_hint_refuses_the_whole_message(play, hint):
    """The field is not dropped and no action is guessed: no skip is recorded, and a certified DONE commits nothing."""
    assert play.refused("FLAT", skip(reason="rate_limited", recovery_hint=hint)) == "invalid_message"
    played = play("FLAT", f"S alpha=a1; F beta; {failed(code=FAILED, recovery_hint=hint)}", "–")
    assert (played.verdict.status, played.verdict.cause, played.committed) == ("failed", "invalid_message", {})
    assert (len(played.session.facts.skips), played.session.facts.error) == (1, None)


@pytest.mark.clause("CP-821", "CP-832", "CP-834")
@pytest.mark.parametrize("code", ["refresh_credentials", "zzz_1", "auth_failed"])
@pytest.mark.parametrize("message", ["please refresh_credentials", "401 unauthorized at Example", "neutral"])
def test_without_a_hint_no_action_is_read_into_words(play, code, message):
    """Neither a code nor a text becomes a requested action, for any provider."""
    played = play("FLAT", f"{skip(reason=code, message=message)}; {failed(code=code, message=message)}", "–")
    assert (played.session.facts.skips[0].hint, "hint" in played.session.facts.error) == (None, False)


@pytest.mark.clause("CP-835")
def test_code_and_hint_are_independent(play):
    """Each is accepted alone and kept in its own place; neither excuses the other."""
    for error in ({"code": "a"}, {"recovery_hint": "unknown"}, {"code": "a", "recovery_hint": "unknown"}):
        facts = play("FLAT", failed(**error), "–").session.facts
        expected = {"code": error.get("code"), "hint": error.get("recovery_hint")}
        assert {name: facts.error.get(name) for name in ("code", "hint")} == expected
    for error in ({"code": "a", "recovery_hint": "no"}, {"code": "A", "recovery_hint": "unknown"}):
        assert play("FLAT", failed(**error), "–").verdict.cause == "invalid_message"
