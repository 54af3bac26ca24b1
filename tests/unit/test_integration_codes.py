"""The integration contract's codes: closed, each with one failure, one next action and one status."""

from typing import get_args

import pytest

from headwater.codes import CODES
from headwater.connect.failures import AuthFailure, FailureCode
from headwater.integration_codes import INTEGRATION_CODES

# The note of INT-283, to the letter.
STATUSES = {
    None: {"invalid_manifest"},
    202: {"outcome_unknown"},
    400: {"auth_state_invalid"},
    401: {"challenge_failed", "credential_invalid", "webhook_signature_invalid"},
    403: {"integration_disabled", "insufficient_scope"},
    404: {"unknown_integration"},
    409: {
        "capability_not_supported",
        "action_unavailable",
        "auth_state_used",
        "account_mismatch",
        "sync_in_progress",
        "quote_expired",
        "price_changed",
        "sold_out",
        "reconciliation_required",
        "idempotency_conflict",
    },
    410: {"auth_state_expired"},
    422: {"invalid_fields"},
    429: {"auth_throttled", "provider_rate_limited"},
    502: {"provider_protocol_error"},
    503: {"provider_unavailable"},
    504: {"provider_timeout"},
}
RETRYABLE = {
    "auth_throttled",
    "provider_rate_limited",
    "sync_in_progress",
    "provider_unavailable",
    "provider_timeout",
}


@pytest.mark.clause("INT-283")
def test_the_codes_and_their_statuses_are_those_of_the_contract() -> None:
    """None is missing, none was added, and each has the status that suits it."""
    found: dict[int | None, set[str]] = {}
    for code, row in INTEGRATION_CODES.items():
        found.setdefault(row.status, set()).add(code)
    assert found == STATUSES


@pytest.mark.clause("INT-281")
def test_what_may_be_repeated_is_what_the_contract_says() -> None:
    """A write whose answer was lost is not among it, nor a state that was used up; nor does a failure say so."""
    assert {code for code, row in INTEGRATION_CODES.items() if row.passes} == RETRYABLE
    transient = {code for code in get_args(FailureCode) if AuthFailure(code).is_transient}
    assert transient == {code for code in RETRYABLE if code.startswith("provider_")}


@pytest.mark.clause("INT-287")
@pytest.mark.parametrize("code", sorted(INTEGRATION_CODES))
def test_each_code_becomes_one_failure_with_one_next_action(code: str) -> None:
    """It is a code of the table, which may tell the service's code where there is one."""
    row = INTEGRATION_CODES[code]
    ours = CODES[row.code]
    assert row.service_code is None or "service_code" in ours.members.split()
    assert row.code != "service_failure" or row.service_code is not None


@pytest.mark.clause("INT-287")
@pytest.mark.parametrize(
    ("code", "action"),
    [
        ("credential_invalid", "repair_connection"),
        ("challenge_failed", "select_protected_source"),
        ("provider_rate_limited", "retry_explicitly"),
        ("provider_protocol_error", "upgrade"),
        ("insufficient_scope", "request_permission"),
        ("outcome_unknown", "retry_status"),
    ],
)
def test_three_contracts_have_one_vocabulary(code: str, action: str) -> None:
    """What a person does next is the same word for a recovery hint, a failure and an integration."""
    assert INTEGRATION_CODES[code].next_action == action


@pytest.mark.clause("INT-283")
def test_what_signing_in_raises_is_of_the_same_list() -> None:
    """But for an exchange whose answer was lost, which is no answer of an integration."""
    said = set(get_args(FailureCode))
    assert said - INTEGRATION_CODES.keys() == {"exchange_unknown"}
