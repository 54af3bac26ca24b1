"""Writes that are requests: the looks of a guard, and the one request that changes something."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater import clock
from headwater.errors import HeadwaterError
from headwater.manifest.definition import DefinedOperation, Definition
from headwater.manifest.guard import Look
from headwater.operate.answering import admitted, body_of, lost
from headwater.operate.description import Described
from headwater.operate.planning import planned
from headwater.operate.ports import Journal, NoReply, Provider, Reply
from headwater.operate.reading import timed_out
from headwater.operate.requests import catalog_result
from headwater.operate.writes.guarding import GONE, holds, input_of, mismatch
from headwater.operate.writes.model import Cause, Outcome
from headwater.operate.writes.outcome import forbidden_or, of_no_reply, of_refusal, unknown


@dataclass(frozen=True)
class WriteRequests:
    """Fills `Changer` by the requests of a definition. Each look is a read of its own in the journal."""

    definition: Definition
    provider: Provider
    journal: Journal
    connection: str

    async def ready(self, until: float) -> None:
        """See `Changer.ready`: a request needs nothing else."""

    async def preflight(self, described: Described, given: Mapping[str, Any], until: float) -> None:
        """See `Changer.preflight`."""
        for look in self._operation(described).guard.before:
            try:
                reply = await self._looked(look, described, given, until)
            except NoReply as error:
                failure = lost(error)
                failure.stage = "dispatch" if error.sent else failure.stage
                raise failure from None
            if not _is_good(reply):
                raise forbidden_or(reply)
            if not holds(look, body_of(self.definition.operations[look.operation], reply), given):
                raise mismatch(look)

    async def commit(self, described: Described, given: Mapping[str, Any], until: float) -> Outcome:
        """See `Changer.commit`."""
        operation = self._operation(described)
        try:
            request = planned(operation, self.definition.headers, given)
            reply = await self.provider.send(request, until - clock.monotonic())
        except NoReply as error:
            return of_no_reply(error)
        if not _is_good(reply):
            return of_refusal(operation, reply)
        after = operation.guard.after
        if after is not None and not await self._shows(after, described, given, until):
            return unknown("upstream_protocol", "observation")
        try:
            body = body_of(operation, reply)
            return Outcome("applied", admitted(described, catalog_result(described, reply, body)))
        except HeadwaterError as error:
            return Outcome("applied", failure=error, cause=Cause("upstream_protocol", "response"))

    def _operation(self, described: Described) -> DefinedOperation:
        return self.definition.operations[described.operation.id]

    async def _shows(self, look: Look, described: Described, given: Mapping[str, Any], until: float) -> bool:
        """Whether what was changed can be seen; not where it cannot be looked at."""
        try:
            reply = await self._looked(look, described, given, until)
            if look.absent or not _is_good(reply):
                return look.absent and reply.status in GONE
            return holds(look, body_of(self.definition.operations[look.operation], reply), given)
        except (NoReply, HeadwaterError):
            return False

    async def _looked(self, look: Look, described: Described, given: Mapping[str, Any], until: float) -> Reply:
        """Read once, without asking again where the service says to come back."""
        read = self.definition.operations[look.operation]
        request = planned(read, self.definition.headers, input_of(look, given))
        seconds = until - clock.monotonic()
        if seconds <= 0:
            raise timed_out()
        request_id = self.journal.dispatched(self.connection, read.id, described.revision, "read")
        outcome = "outcome_unknown"
        try:
            reply = await self.provider.send(request, seconds)
            outcome = "succeeded" if _is_good(reply) else "service_failure"
            return reply
        finally:
            self.journal.answered(request_id, outcome)


def _is_good(reply: Reply) -> bool:
    return 200 <= reply.status < 300
