"""Operations that are requests: each is planned by its definition and sent to the provider."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headwater import clock, limits
from headwater.errors import HeadwaterError
from headwater.manifest.definition import Definition
from headwater.operate.answering import body_of, lost
from headwater.operate.description import Described
from headwater.operate.planning import Request, planned
from headwater.operate.ports import NoReply, Provider, Reply

RATE_LIMITED = 429


@dataclass(frozen=True)
class Requests:
    """Fills `Asker` by the requests of a definition."""

    definition: Definition
    provider: Provider
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def ready(self, until: float) -> None:
        """See `Asker.ready`: a request needs nothing else."""

    async def ask(self, described: Described, given: Mapping[str, Any], until: float, check: Callable[[], None]) -> Any:
        """See `Asker.ask`. What is answered is a catalog result."""
        operation = self.definition.operations[described.operation.id]
        reply = await self._asked(planned(operation, self.definition.headers, given), until, check)
        return catalog_result(described, reply, body_of(operation, reply))

    async def _asked(self, request: Request, until: float, check: Callable[[], None]) -> Reply:
        """Send a request, and once more where the provider asked to wait and there is the time (CLI-1124, CLI-1125).

        By what no longer holds after the wait nothing is sent again (CLI-589): the first answer stands.
        """
        began = clock.monotonic()
        try:
            reply = await self.provider.send(request, until - began)
        except NoReply as error:
            raise lost(error) from None
        now = clock.monotonic()
        wait = reply.retry_after if reply.status == RATE_LIMITED else None
        if wait is None or wait + (now - began) + limits.RESEND_MARGIN_SECONDS >= until - now:
            return reply
        await self.pause(wait)
        try:
            check()
            return await self.provider.send(request, until - clock.monotonic() - limits.RESEND_MARGIN_SECONDS)
        except (NoReply, HeadwaterError):
            return reply


def catalog_result(described: Described, reply: Reply, body: Any) -> dict[str, Any]:
    """Return a good answer as a result, with where it is from (CLI-610)."""
    provenance = {
        "instance": described.instance_id,
        "resource": described.operation.id,
        "observed_at_unix_ms": clock.millis(),
        "source_revision": described.revision,
    }
    return {"status": reply.status, "body": body, "provenance": provenance}
