"""What a connector asks of the owner: the error of a DONE, its code, and the recovery hint beside it."""

import json
from typing import Any

import pytest
from msgspec import UNSET

from headwater.wire.decode import NotAMessage, decode
from headwater.wire.messages import RecoveryDetail

ERROR = {"message": "it broke", "retryable": True}


def skipped(hint: Any) -> dict[str, Any]:
    """Return a SKIP_RESULT with this hint."""
    return {"type": "SKIP_RESULT", "recovery_hint": hint}


def failed(**error: Any) -> dict[str, Any]:
    """Return a failed DONE whose error has these further members."""
    return {"type": "DONE", "status": "failed", "records_emitted": 3, "error": {**ERROR, **error}}


def read(message: dict[str, Any]) -> Any:
    """Decode a message that must be good."""
    return decode(json.dumps(message).encode())[0]


def is_refused(message: dict[str, Any]) -> bool:
    """Say whether a message is a protocol violation by its shape alone."""
    try:
        read(message)
    except NotAMessage:
        return True
    return False


ACTIONS = [
    "retry_by_runtime",
    "retry_on_connector_upgrade",
    "refresh_credentials",
    "manual_action_required",
    "update_selector",
    "upstream_unblock",
    "not_retriable",
    "unknown",
]


@pytest.mark.clause("CP-822", "CP-824", "CP-826", "CP-827", "CP-828", "CP-829")
@pytest.mark.parametrize(
    "hint",
    [
        *("retry", "", "Retry_By_Runtime", "unknown "),
        *({}, {"retryable": True}),
        *({"action": "reboot"}, {"action": None}, {"action": ["unknown"]}, {"action": ""}),
        *({"action": "unknown", "retryable": "no"}, {"action": "unknown", "retryable": 0}),
        {"action": "unknown", "retryable": None},
        *(5, True, [], None, ["unknown"]),
        {"action": "unknown", "note": "x"},
    ],
)
def test_a_hint_outside_its_shape_refuses_the_message(hint: Any) -> None:
    """Neither the hint alone is dropped, nor an action guessed, in either message that carries one."""
    assert is_refused(skipped(hint))
    assert is_refused(failed(recovery_hint=hint))


@pytest.mark.clause("CP-822", "CP-823")
@pytest.mark.parametrize("action", ACTIONS)
def test_each_action_is_a_hint(action: str) -> None:
    """As a bare text or as an object, with and without `retryable`."""
    for hint in (action, {"action": action}, {"action": action, "retryable": False}):
        meant = hint if isinstance(hint, str) else RecoveryDetail(action, hint.get("retryable", UNSET))
        assert read(skipped(hint)).recovery_hint == meant
        assert read(failed(recovery_hint=hint)).error.recovery_hint == meant


@pytest.mark.clause("CP-152")
@pytest.mark.parametrize(
    "error",
    [None, "it broke", [], {}, {"message": "x"}, {"retryable": True}, {**ERROR, "retryable": "yes"},
     {**ERROR, "retryable": 1}, {**ERROR, "message": None}],
)  # fmt: skip
def test_an_error_needs_its_message_and_flag(error: Any) -> None:
    """Half an error is none."""
    assert is_refused({**failed(), "error": error})


@pytest.mark.clause("CP-152", "CP-832")
def test_a_failure_may_be_told_without_an_error_or_with_a_bare_one() -> None:
    """Both forms of the first revision are read, and no hint is made up."""
    assert read({"type": "DONE", "status": "failed", "records_emitted": 3}).error is UNSET
    error = read(failed()).error
    assert (error.message, error.retryable, error.code, error.recovery_hint) == ("it broke", True, UNSET, UNSET)


@pytest.mark.clause("CP-820")
@pytest.mark.parametrize(
    "code", ["", "a" * 65, "A", "1a", "_a", "a-b", "\u00e1", "a\u00e1", "a b", "a\n", 5, None, True]
)
def test_a_code_outside_its_alphabet_is_refused(code: Any) -> None:
    """It is an identity, not a sentence."""
    assert is_refused(failed(code=code))


@pytest.mark.clause("CP-820", "CP-835")
@pytest.mark.parametrize("code", ["a", "a" * 64, "a_1", "stream_collection_failed", "refresh_credentials"])
def test_a_code_is_read_apart_from_the_hint(code: str) -> None:
    """A good code does not excuse a bad hint, nor the reverse; each may come alone."""
    error = read(failed(code=code)).error
    assert (error.code, error.recovery_hint) == (code, UNSET)
    assert is_refused(failed(code=code, recovery_hint="reboot"))
    assert is_refused(failed(code="A", recovery_hint="unknown"))
    both = read(failed(code=code, recovery_hint="unknown")).error
    assert (both.code, both.recovery_hint) == (code, "unknown")
