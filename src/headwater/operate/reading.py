"""One read: planned, noted, sent, and its answer made the operation's result."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headwater import clock, limits
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.schemas import compile_schema
from headwater.operate.answering import admitted, body_of, lost
from headwater.operate.description import Described, Description
from headwater.operate.documents import depth_of
from headwater.operate.planning import Request, planned, unfit
from headwater.operate.ports import Journal, NoReply, Provider, Reply

RATE_LIMITED = 429


@dataclass(frozen=True)
class Reading:
    """Reads with one connection of one instance. `until` is the deadline, by the monotonic clock.

    `check` raises where what the read was admitted by is not so any more; it is called as late as can be.
    """

    description: Description
    provider: Provider
    journal: Journal
    connection: str
    until: float
    check: Callable[[], None]
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def read(self, described: Described, given: Mapping[str, Any]) -> dict[str, Any]:
        """Ask once, and return `{request_id, result}`. Raise what the answer means, or that none came.

        The request is in the journal before it leaves, and so is what came of it.
        """
        request = request_of(self.description, described, given)
        self.check()
        if self._left() <= 0:
            raise timed_out()
        operation = described.operation
        request_id = self.journal.dispatched(self.connection, operation.id, described.revision, operation.effect)
        outcome = "outcome_unknown"
        try:
            result = self._result(described, await self._asked(request))
            outcome = "succeeded"
        except HeadwaterError as error:
            outcome = error.code
            error.data["request_id"] = request_id
            raise
        finally:
            self.journal.answered(request_id, outcome)
        return {"request_id": request_id, "result": result}

    async def _asked(self, request: Request) -> Reply:
        """Send a request, and once more where the provider asked to wait and there is the time (CLI-1124, CLI-1125)."""
        began = clock.monotonic()
        try:
            reply = await self.provider.send(request, self._left())
        except NoReply as error:
            raise lost(error) from None
        took = clock.monotonic() - began
        wait = reply.retry_after if reply.status == RATE_LIMITED else None
        if wait is None or wait + took + limits.RESEND_MARGIN_SECONDS >= self._left():
            return reply
        await self.pause(wait)
        try:
            return await self.provider.send(request, self._left() - limits.RESEND_MARGIN_SECONDS)
        except NoReply:
            return reply

    def _result(self, described: Described, reply: Reply) -> Mapping[str, Any]:
        body = body_of(described, reply)
        provenance = {
            "instance": self.description.instance_id,
            "resource": described.operation.id,
            "observed_at_unix_ms": clock.millis(),
            "source_revision": described.revision,
        }
        return admitted(described, {"status": reply.status, "body": body, "provenance": provenance})

    def _left(self) -> float:
        return self.until - clock.monotonic()


def request_of(description: Description, described: Described, given: Any) -> Request:
    """Return the request for an input, or raise `invalid_input` where the operation does not take it (CLI-570)."""
    too_deep = depth_of(given, limits.INPUT_LEVELS + 1) > limits.INPUT_LEVELS
    if too_deep or not compile_schema(described.input_schema).is_valid(given):
        raise unfit()
    return planned(described.operation, description.definition.headers, given)


def timed_out() -> HeadwaterError:
    """Say that the time was over before anything was sent."""
    return refuse("timeout", "The time was over before the service was asked.", safe="Nothing was sent.")
