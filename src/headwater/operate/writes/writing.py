"""One write, from the journal to what came of it: at most one request, and every step durable before the next.

journal.dispatched   the audit's anchor: without it nothing is sent
changer.preflight    what the guard has to see
ledger.prepare       the attempt, its key and the spent proof, in one transaction
ledger.dispatch      the last look at the connection; from here on it may have been sent
changer.commit       once
ledger.settle        what is known of it
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from headwater import clock
from headwater.errors import HeadwaterError, refuse
from headwater.operate.description import Described
from headwater.operate.documents import decoded
from headwater.operate.ports import Journal
from headwater.operate.reading import timed_out
from headwater.operate.writes.model import (
    Admitted,
    Attempt,
    AttemptState,
    Cause,
    CauseStage,
    Classification,
    Mutation,
    Outcome,
)
from headwater.operate.writes.outcome import again, as_write, interrupted, kept, unknown
from headwater.operate.writes.ports import Changer, Ledger

Shown = dict[str, Any]

_encode: Final = msgspec.json.Encoder(decimal_format="number").encode
_STATES: Final[Mapping[Classification, AttemptState]] = {
    "not_attempted": "failed",
    "refused": "failed",
    "applied": "completed",
    "unknown": "indeterminate",
}


@dataclass(frozen=True)
class Writing:
    """Writes with one connection of one instance, as it was `admitted`. `until` is the deadline.

    `check` raises where what the write was admitted by is not so any more; it is called as late as can be.
    """

    ledger: Ledger
    journal: Journal
    changer: Changer
    admitted: Admitted
    until: float
    check: Callable[[], None]

    async def write(self, described: Described, given: Mapping[str, Any], attempt: Attempt) -> Shown:
        """Do what was approved, and return `{request_id, result, mutation, source_audit}`.

        Raise what came of it otherwise, with the same beside it. `attempt` is new, and its proof was checked.
        """
        phase: CauseStage = "audit"
        mutation = Mutation("not_attempted")
        audit: Shown = {"instance": attempt.instance_id, "audit_status": "unavailable"}
        try:
            attempt = replace(attempt, request_id=self._anchored(described, attempt))
            audit |= {"audit_ref": attempt.request_id, "audit_status": "complete"}
            phase = "preflight"
            await self.changer.ready(self.until)
            await self.changer.preflight(described, given, self.until)
            phase = "attempt_store"
            self.ledger.prepare(attempt)
            phase, mutation = "dispatch", Mutation("not_attempted", attempt)
            self._gate(attempt)
        except asyncio.CancelledError:
            error = refuse("interrupted", "Interrupted before anything was sent.")
            raise self._unsent(error, replace(mutation, cause=Cause("interrupted", phase)), audit) from None
        except HeadwaterError as error:
            raise self._unsent(error, replace(mutation, cause=Cause(error.code, phase)), audit) from None
        return await self._committed(described, given, attempt, audit)

    def _anchored(self, described: Described, attempt: Attempt) -> str:
        operation = described.operation
        return self.journal.dispatched(attempt.connection, operation.id, described.revision, operation.effect)

    def _gate(self, attempt: Attempt) -> None:
        """Let an attempt pass that is still what was admitted, and in time; any other is aborted."""
        try:
            self.check()
            if self.until <= clock.monotonic():
                raise timed_out()
            self.ledger.dispatch(attempt, self.admitted)
        except HeadwaterError:
            self.ledger.settle(replace(attempt, state="aborted"))
            raise

    async def _committed(self, described: Described, given: Mapping[str, Any], attempt: Attempt, audit: Shown) -> Shown:
        """Send it, and keep what came of it. From here on nothing is told of it but what is known."""
        outcome = unknown("internal", "dispatch")
        try:
            outcome = await self.changer.commit(described, given, self.until)
        except asyncio.CancelledError:
            outcome = interrupted()
        except HeadwaterError as error:  # it says that it raises none
            outcome = unknown(error.code, "dispatch")
        finally:
            mutation = Mutation(outcome.classification, attempt, cause=outcome.cause)
            failure = None if outcome.failure is None else as_write(outcome.failure, mutation)
            failure = self._settled(attempt, outcome, failure)
            self._audit(audit, failure)
        told = {"request_id": attempt.request_id, "source_audit": audit}
        if failure is not None:
            failure.data |= told
            raise failure
        return {**told, "result": outcome.result, "mutation": mutation.shown()}

    def _settled(self, attempt: Attempt, outcome: Outcome, failure: HeadwaterError | None) -> HeadwaterError | None:
        """Keep what came of an attempt, and return its failure.

        Where it cannot be kept, whoever asks later is told that it is unknown. A failure is told now as it is; what was
        done is told to be done and not kept.
        """
        after = replace(
            attempt,
            state=_STATES[outcome.classification],
            classification=outcome.classification,
            cause=outcome.cause,
            failure=None if failure is None else kept(failure),
            result=_encode(outcome.result) if failure is None else None,
        )
        try:
            self.ledger.settle(after)
        except HeadwaterError as error:
            if failure is None:
                mutation = Mutation(outcome.classification, attempt, cause=Cause(error.code, "attempt_store"))
                message = "The service did it, and that could not be kept here."
                return as_write(refuse("outcome_unknown", message, stage="dispatch"), mutation)
        return failure

    def _unsent(self, error: HeadwaterError, mutation: Mutation, audit: Shown) -> HeadwaterError:
        """Return the failure of what was not sent."""
        failure = as_write(error, mutation)
        if "audit_ref" in audit:
            self._audit(audit, failure)
            failure.data["request_id"] = audit["audit_ref"]
        failure.data["source_audit"] = audit
        return failure

    def _audit(self, audit: Shown, failure: HeadwaterError | None) -> None:
        try:
            self.journal.answered(audit["audit_ref"], "succeeded" if failure is None else failure.code, at_once=True)
        except HeadwaterError:
            audit["audit_status"] = "incomplete"


def replayed(attempt: Attempt) -> Shown:
    """Return what was told of a write that was asked before with the same key, or raise it (CLI-723)."""
    mutation = Mutation(attempt.classification, attempt, replayed=True, cause=attempt.cause)
    if attempt.result is not None:
        return {"result": decoded(attempt.result), "mutation": mutation.shown()}
    if attempt.failure is None:
        message = "It was asked before, and it is not known what came of it."
        raise as_write(refuse("outcome_unknown", message, stage="dispatch"), mutation)
    raise again(attempt.failure, mutation)
