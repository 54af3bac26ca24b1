"""What is told where a credential was not renewed: to somebody who reads with it, and to somebody who asks for it."""

from typing import Any, Final

from headwater.connect.refreshing import NotRefreshed, Outcome
from headwater.connect.refusals import another_account, below_scopes, needs_reconnect, refusal_of
from headwater.errors import HeadwaterError, refuse

_SAFE: Final = "What was collected is as it was."


def of_read(error: NotRefreshed) -> HeadwaterError:
    """Return the refusal of a read (CLI-456)."""
    if error.outcome == "reauthorization_required":
        return needs_reconnect()
    if error.failure is not None and error.failure.code == "account_mismatch":
        return another_account()
    if error.outcome == "insufficient_scope":
        return below_scopes("repair_connection")
    if error.outcome == "revoked":
        return _revoked()
    if error.outcome == "unreached" and error.failure is not None:
        return refusal_of(error.failure, "read")
    return _unauthorized(error.outcome)


def of_token(error: NotRefreshed) -> HeadwaterError:
    """Return the refusal of `connections token`, by the table of its own (CLI-872 to 876)."""
    if error.outcome == "insufficient_scope":
        return refuse("not_granted", stage="dispatch", next_action="repair_connection", safe=_SAFE)
    if error.outcome == "revoked":
        return _revoked()
    if error.outcome in ("invalid_or_revoked", "uncertain"):
        return _unauthorized(error.outcome)
    failure = error.failure
    if failure is not None and failure.code == "provider_rate_limited":
        told: dict[str, Any] = {} if failure.retry_after is None else {"retry_after_seconds": failure.retry_after}
        message = "The provider asks to come back later."
        return refuse("unavailable", message, stage="dispatch", safe=_SAFE, service_code="rate_limited", **told)
    if failure is not None:
        message = "The provider cannot be reached, or cannot answer now."
        return refuse("unavailable", message, stage="dispatch", next_action="retry_status", safe=_SAFE)
    message = "The token has expired, and no other took its place."
    return refuse("unavailable", message, next_action="retry_status", safe=_SAFE)


def _revoked() -> HeadwaterError:
    return refuse("revoked", "The provider answered that the credential was revoked.", stage="dispatch", safe=_SAFE)


def _unauthorized(outcome: Outcome) -> HeadwaterError:
    words = {
        "uncertain": "The provider's answer to a renewal was lost, and the old token may be used up; reconnect.",
        "invalid_or_revoked": "The provider no longer renews the credential; reconnect.",
    }
    return refuse(
        "service_failure", words[outcome], next_action="repair_connection", safe=_SAFE, service_code="unauthorized"
    )
