"""What became of a write, by what was answered to it, and how that is told: one table, and one rule for each member.

not_attempted   nothing was sent, or its preflight forbade it      stage admission; dispatch where the service said so
refused         the service says that it did not do it             stage dispatch
applied         it was done, and what was to show that does        no failure, unless its result cannot be told
unknown         everything else: it is never sent again            outcome_unknown, stage dispatch
"""

from collections.abc import Mapping
from typing import Any, Final

from headwater.codes import NextAction, Stage
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.definition import DefinedOperation
from headwater.operate.answering import refused
from headwater.operate.ports import Lost, NoReply, Reply
from headwater.operate.writes.model import Cause, CauseStage, Classification, Mutation, Outcome, Told

# CLI-732; 405 and 415 say that the service does not let this be done there (CLI-715).
REFUSED: Final = frozenset({400, 401, 403, 404, 405, 409, 410, 412, 415, 422})
_FORBIDDEN: Final = (403, 405, 415)

_SAFE: Final[Mapping[Classification, str]] = {
    "not_attempted": "Nothing was changed there.",
    "refused": "The service did not do it.",
    "applied": "It was done at the service; it is not sent again.",
    "unknown": "It may have been done: look there first. It is not sent again.",
}
_LOST: Final[Mapping[Lost, str]] = {
    "unavailable": "unavailable",
    "timeout": "timeout",
    "protocol": "upstream_protocol",
    "too_large": "capacity",
}


def of_refusal(operation: DefinedOperation, reply: Reply) -> Outcome:
    """Return what an answer other than 2xx to the request of a write means."""
    if reply.status == operation.conflict_status:
        message = "It was changed at the service since it was read."
        failure = refuse("service_failure", message, service_code="conflict")
        return Outcome("refused", failure=failure, cause=Cause("conflict", "response"))
    if reply.status not in REFUSED:
        return unknown(_service_code(reply), "response")
    return Outcome("refused", failure=forbidden_or(reply), cause=Cause(_service_code(reply), "response"))


def forbidden_or(reply: Reply) -> HeadwaterError:
    """Return what a refusal of a write, or of a look before one, means (CLI-715)."""
    if reply.status in _FORBIDDEN:
        return refuse("forbidden", "The service does not permit this to the account.", stage="dispatch")
    return refused(reply)


def of_no_reply(error: NoReply) -> Outcome:
    """Return what it means that no whole answer came: only what surely never left was not attempted."""
    code = _LOST[error.lost]
    if error.sent:
        return unknown(code, "response")
    failure = refuse("timeout" if code == "timeout" else "unavailable", "The service was not reached.")
    return Outcome("not_attempted", failure=failure, cause=Cause(code, "dispatch"))


def unknown(code: str, stage: CauseStage) -> Outcome:
    """Return that it is not known whether a write was done (CLI-722)."""
    failure = refuse("outcome_unknown", "It is not known whether the service did it.", stage="dispatch")
    return Outcome("unknown", failure=failure, cause=Cause(code, stage))


def interrupted() -> Outcome:
    """Return that somebody stopped a write while it was being sent."""
    message = "Interrupted, and it is not known whether the service did it."
    failure = refuse("interrupted", message, stage="dispatch")
    return Outcome("unknown", failure=failure, cause=Cause("interrupted", "dispatch"))


def as_write(error: HeadwaterError, mutation: Mutation) -> HeadwaterError:
    """Turn a failure into that of a write: with its mutation record, and what may be done next (CLI-712 to CLI-726).

    What a service said of why, and when to come back, is no part of it.
    """
    answered = error.stage == "dispatch"
    error.stage = _stage(mutation.classification, answered=answered)
    error.next_action = _next(error, mutation, answered=answered)
    error.safe, error.command = _SAFE[mutation.classification], ""
    for name in ("service_reason", "retry_after_seconds", "field", "acquisition"):
        error.data.pop(name, None)
    error.data["mutation"] = mutation.shown()
    return error


def kept(error: HeadwaterError) -> Told:
    """Return what is kept of a failure, to be told again with the same key: who stopped it once does not stop that."""
    if error.code == "interrupted":
        return Told("outcome_unknown", error.message, error.stage, error.next_action)
    return Told(error.code, error.message, error.stage, error.next_action, error.data.get("service_code"))


def again(told: Told, mutation: Mutation) -> HeadwaterError:
    """Return a failure that was kept, with its stage and next action of then; without them it was the host's."""
    extra: dict[str, Any] = {} if told.service_code is None else {"service_code": told.service_code}
    failure = refuse(told.code, told.message or None, safe=_SAFE[mutation.classification], **extra)
    failure.stage = _known_stage(told.stage)
    failure.next_action = _known_action(told.next_action)
    failure.data["mutation"] = mutation.shown()
    return failure


def _stage(classification: Classification, *, answered: bool) -> Stage:
    return "dispatch" if answered or classification != "not_attempted" else "admission"


def _next(error: HeadwaterError, mutation: Mutation, *, answered: bool) -> NextAction:
    service = error.data.get("service_code")
    if answered and error.code == "forbidden":
        return "request_permission"
    if answered and service == "not_found":
        return "none"
    is_late = error.code in ("timeout", "capacity")
    if answered and is_late and mutation.classification == "not_attempted":
        return "retry_explicitly"
    return "retry_status"


def _known_stage(stage: str | None) -> Stage:
    return "dispatch" if stage == "dispatch" else "admission"


def _known_action(action: str | None) -> NextAction:
    known: tuple[NextAction, ...] = ("request_permission", "none", "retry_explicitly")
    return next((one for one in known if one == action), "retry_status")


def _service_code(reply: Reply) -> str:
    """Return the name of an answer's meaning."""
    failure = forbidden_or(reply)
    return str(failure.data.get("service_code", failure.code))
