"""What a person and a program are told where a provider, an acquisition or a connection does not do what was asked."""

from typing import Any, Final, Literal, NamedTuple

from headwater.codes import NextAction, Stage
from headwater.connect.failures import AuthFailure, FailureCode
from headwater.connect.model import AcquisitionFailure, Connection
from headwater.errors import HeadwaterError, refuse
from headwater.integration_codes import INTEGRATION_CODES

UNCOPIED: Final = "Nothing was connected; the connection it is of is as it was."

During = Literal["acquisition", "validation", "read"]


class _Row(NamedTuple):
    """What is said of a failure here; its code is the integration contract's table's, and so is the next action."""

    stage: Stage
    message: str
    next_action: NextAction | None = None


_UNSURE: Final = "The provider may have acted, and its answer was lost."
_RESTART: Final = "The sign-in is over; start it again."

# What a failed sign-in or probe becomes (CLI-910, CLI-913, CLI-922 to 926). Where a next action stands
# here, a sign-in may just be tried again.
_ROWS: Final[dict[FailureCode, _Row]] = {
    "invalid_fields": _Row("protected_entry", "What was entered does not fit.", "select_protected_source"),
    "auth_state_invalid": _Row("admission", _RESTART),
    "auth_state_expired": _Row("admission", _RESTART),
    "auth_state_used": _Row("admission", _RESTART),
    "auth_throttled": _Row("admission", "There were too many attempts."),
    "challenge_failed": _Row("dispatch", "The provider did not accept the answer.", "retry_explicitly"),
    "credential_invalid": _Row("dispatch", "The provider did not accept the credential.", "retry_explicitly"),
    "insufficient_scope": _Row("admission", "The provider does not let this credential tell whose it is."),
    "account_mismatch": _Row("admission", "That is another account than the connection's."),
    "provider_rate_limited": _Row("dispatch", "The provider asks to come back later."),
    "provider_unavailable": _Row("admission", "The provider cannot be reached, or cannot answer now."),
    "provider_timeout": _Row("dispatch", "The provider did not answer in time."),
    "provider_protocol_error": _Row("dispatch", "The provider's answer is not what was expected.", "retry_explicitly"),
    "exchange_unknown": _Row("dispatch", _UNSURE),
}
_UNKNOWN: Final = "outcome_unknown"

_CAUSES: Final[dict[FailureCode, str]] = {
    "provider_unavailable": "unavailable",
    "provider_timeout": "timeout",
    "provider_rate_limited": "rate_limited",
}


def refusal_of(
    failure: AuthFailure,
    during: During,
    *,
    acquisition: str | None = None,
    attempts: int | None = None,
    next_action: NextAction | None = None,
) -> HeadwaterError:
    """Say what a provider's failure means here.

    A stored credential that is refused on a read needs another one; one that is refused while it is entered or
    validated may be tried again (CLI-921, CLI-922). `attempts` are told of a validation that was repeated (CLI-485).
    """
    row = _ROWS[failure.code]
    code = _UNKNOWN if failure.code == "exchange_unknown" else failure.code
    shared = INTEGRATION_CODES[code]
    if failure.code == "credential_invalid" and during == "read":
        next_action = shared.next_action
    told: dict[str, Any] = {"integration_code": code, "retryable": shared.passes, "retry_after": failure.retry_after}
    told["service_code"] = shared.service_code
    if acquisition is not None and shared.code not in ("invalid_input", "lifecycle_conflict"):
        told["acquisition"] = acquisition
    if attempts is not None and failure.code in _CAUSES:
        told |= {"cause": _CAUSES[failure.code], "attempts": attempts}
    return refuse(
        shared.code,
        _message(failure, row),
        stage=row.stage,
        next_action=next_action or row.next_action or shared.next_action,
        safe=_SAFE[during],
        **{name: value for name, value in told.items() if value is not None},
    )


_SAFE: Final[dict[During, str]] = {
    "acquisition": "Nothing was stored; what was connected before is as it was.",
    "validation": "The stored credential is as it was.",
    "read": "Nothing was read with it.",
}


def _message(failure: AuthFailure, row: _Row) -> str:
    """Add the declared sentences of fields that do not fit, which hold no value, and how long to wait."""
    wait = [] if failure.retry_after is None else [f"Try again in {failure.retry_after} seconds."]
    return " ".join([row.message, *(failure.fields[name] for name in sorted(failure.fields)), *wait])


def reason_of(failure: AuthFailure) -> AcquisitionFailure:
    """Return the public reason of an acquisition that a provider's failure ended (CLI-322)."""
    if failure.code == "exchange_unknown":
        return "exchange_unknown"
    return "expired" if failure.code == "auth_state_expired" else "rejected"


def below_scopes(next_action: NextAction | None = None) -> HeadwaterError:
    """Refuse a credential that may do less than its method needs (CLI-377, INT-245)."""
    message = "The provider granted less than is needed."
    safe = "Nothing was stored; what was connected before is as it was."
    return refuse("not_granted", message, next_action=next_action or "retry_explicitly", safe=safe)


def another_account() -> HeadwaterError:
    """Refuse a renewal that the provider answers as somebody else (CLI-311)."""
    return refuse("identity_mismatch", safe="The connection keeps its own credential.")


def another_than_source(acquisition: str) -> HeadwaterError:
    """Refuse a copied credential that the provider answers as somebody else than the connection it is of."""
    message = "The provider answers the copied credential as another account."
    return refuse("identity_mismatch", message, next_action="create_connection", safe=UNCOPIED, acquisition=acquisition)


def source_changed(now: Connection | None, acquisition: str | None = None) -> HeadwaterError:
    """Refuse to go on with a connection whose credential was to be copied: it is not what it was (CLI-1087)."""
    told: dict[str, Any] = {} if acquisition is None else {"acquisition": acquisition}
    if now is None or now.lifecycle == "revoked":
        return refuse("revoked", "The connection whose credential was chosen was revoked.", safe=UNCOPIED, **told)
    message = "The connection whose credential was chosen has changed."
    return refuse("lifecycle_conflict", message, stage="publication", safe=UNCOPIED, **told)


def needs_reconnect() -> HeadwaterError:
    """Refuse a connection whose credential is known not to be good any more (CLI-460)."""
    message = "The credential is not good any more: it expired, was refused, or is gone. Reconnect with another one."
    return refuse("not_granted", message, next_action="repair_connection", safe="Nothing was asked or sent.")


def anew(refusal: HeadwaterError) -> HeadwaterError:
    """Tell of a refusal under another configuration: the connection has to be made anew there (CLI-476)."""
    refusal.next_action = "create_connection"
    return refusal
