"""What the answer to a read means: a result as the operation declares it, or one of the closed failures.

A provider answers by a status, an integration's code by a code of the integration contract. One table has both.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from headwater.codes import NextAction, Stage
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.definition import DefinedOperation
from headwater.manifest.schemas import compile_schema
from headwater.operate.description import Described
from headwater.operate.documents import Undecodable, decoded
from headwater.operate.ports import NoReply, Reply


class _Meaning(NamedTuple):
    """A code of the contract, the provider's own one beside it, and what to do next."""

    code: str
    service_code: str | None
    next_action: NextAction
    message: str


_SERVICE: Final = "service_failure"
_REFUSED: Final = _Meaning(_SERVICE, "invalid_input", "none", "The service does not accept what it was asked.")
_ABSENT: Final = _Meaning(_SERVICE, "not_found", "none", "The service has no such thing.")
_STRANGE: Final = _Meaning(
    _SERVICE, "upstream_protocol", "retry_explicitly", "The service's answer is not what the operation declares."
)
_UNAUTHORIZED: Final = _Meaning(
    _SERVICE, "unauthorized", "repair_connection", "The service does not accept the credential."
)
_FORBIDDEN: Final = _Meaning(
    "forbidden", None, "request_permission", "The service does not permit this to the account."
)
_LIMITED: Final = _Meaning(_SERVICE, "rate_limited", "retry_explicitly", "The service asks to come back later.")
_LATE: Final = _Meaning("timeout", None, "retry_explicitly", "The service did not answer in time.")
_DOWN: Final = _Meaning(_SERVICE, "unavailable", "retry_explicitly", "The service cannot answer now.")

# CLI-919 to CLI-921, CLI-929, CLI-935. A redirect is not followed, and means nothing here.
# What an integration says as a code means what the status does that it would say it for.
_MEANINGS: Final[Mapping[int | str, _Meaning]] = {
    **dict.fromkeys((400, 409, 412, 422, "invalid_fields"), _REFUSED),
    **dict.fromkeys((404, 410), _ABSENT),
    **dict.fromkeys((401, "credential_invalid", "challenge_failed"), _UNAUTHORIZED),
    **dict.fromkeys((403, "insufficient_scope"), _FORBIDDEN),
    **dict.fromkeys((429, "provider_rate_limited"), _LIMITED),
    "provider_unavailable": _DOWN,
    "provider_timeout": _LATE,
    "provider_protocol_error": _STRANGE,
    "exchange_unknown": _Meaning("outcome_unknown", None, "retry_status", "The service's answer is lost."),
}

_LOST: Final[Mapping[str, _Meaning]] = {
    "unavailable": _Meaning("unavailable", None, "retry_explicitly", "The service cannot be reached."),
    "timeout": _LATE,
    "protocol": _STRANGE,
    "too_large": _Meaning("capacity", None, "retry_explicitly", "The answer is too large: ask for less."),
}
_UNASKED: Final = _Meaning(
    "unavailable",
    None,
    "check_configuration",
    "The request is not sent: the service's address leads into a private network, or is none at all.",
)
SAFE: Final = "It was a read: nothing was changed there."


def body_of(operation: DefinedOperation, reply: Reply) -> Any:
    """Return the body of a good answer, or raise what another one means. A body that is not as declared is refused."""
    if not 200 <= reply.status < 300:
        raise refused(reply)
    if operation.response == "text":
        return _text(reply)
    if not reply.body:
        return None
    try:
        return decoded(reply.body)
    except Undecodable:
        raise _told(_STRANGE) from None


def admitted(described: Described, result: Any) -> Any:
    """Return a result that is of its operation's schema, or raise that it is not (CLI-583)."""
    if not compile_schema(described.output_schema).is_valid(result):
        raise _told(_STRANGE)
    return result


def refused(reply: Reply) -> HeadwaterError:
    """Return what an answer other than a good one means."""
    meaning = _MEANINGS.get(reply.status, _DOWN if 500 <= reply.status < 600 else _STRANGE)
    return _told(meaning, retry_after_seconds=_wait(meaning, reply.retry_after), service_reason=reply.reason)


def failed(code: str, retry_after: int | None = None) -> HeadwaterError:
    """Return what it means that an integration's code did not do a read, by the code that it says."""
    meaning = _MEANINGS.get(code, _STRANGE)
    return _told(meaning, retry_after_seconds=_wait(meaning, retry_after))


def strange() -> HeadwaterError:
    """Say that what was answered is not what was declared."""
    return _told(_STRANGE)


def lost(error: NoReply) -> HeadwaterError:
    """Return what it means that no answer came: where nothing was sent, the provider was never asked (CLI-926)."""
    if error.lost == "protocol" and not error.sent:
        return _told(_UNASKED, "admission")
    ours = error.lost == "too_large" or not error.sent
    return _told(_LOST[error.lost], "admission" if ours else "dispatch")


def _text(reply: Reply) -> str:
    try:
        return reply.body.decode()
    except UnicodeDecodeError:
        raise _told(_STRANGE) from None


def _wait(meaning: _Meaning, retry_after: int | None) -> int | None:
    return retry_after if meaning.service_code == "rate_limited" else None


def _told(meaning: _Meaning, stage: Stage = "dispatch", **told: Any) -> HeadwaterError:
    told = {name: value for name, value in told.items() if value is not None}
    if meaning.service_code is not None:
        told["service_code"] = meaning.service_code
    return refuse(meaning.code, meaning.message, stage=stage, next_action=meaning.next_action, safe=SAFE, **told)
