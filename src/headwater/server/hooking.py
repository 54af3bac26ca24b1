"""The routes of webhooks: where those of a connection come in, and the one that they come in by."""

import asyncio
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headwater import limits
from headwater.configuration.selecting import Selection
from headwater.errors import refuse
from headwater.host import Host
from headwater.secret import Secret
from headwater.server.answers import json_answer
from headwater.server.asking import body_of, document_of, query_of
from headwater.syncing import Syncs

_OURS: Final = frozenset({"authorization", "cookie"})
"""Headers that an integration never sees: they would be the owner's, sent here by mistake."""


class _Make(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a wish for webhooks, with the provider's secret where the provider makes it."""

    secret: str | None = None


class WebhookRoutes:
    """Makes endpoints, and takes what comes in there: a few at once, since each takes custody and a process."""

    def __init__(self, host: Host, syncs: Syncs) -> None:
        self._host = host
        self._syncs = syncs
        self._verifying = 0

    async def show(self, request: Request) -> Response:
        """Show where the webhooks of a connection come in."""
        query_of(request)
        reference = request.path_params["id"]
        return json_answer(await asyncio.to_thread(self._host.webhooks.show, await self._of(reference), reference))

    async def make(self, request: Request) -> Response:
        """Make the endpoint of a connection."""
        asked = await document_of(request, _Make)
        reference = request.path_params["id"]
        secret = None if asked.secret is None else Secret(asked.secret)
        return json_answer(await self._host.webhooks.make(await self._of(reference), reference, secret), 201)

    async def receive(self, request: Request) -> Response:
        """Take a webhook; whoever sent it learns whether it was signed, and no more."""
        body = await body_of(request, limits.WEBHOOK_BYTES)
        headers = {name: text for name, text in request.headers.items() if name not in _OURS}
        if self._verifying >= limits.WEBHOOKS_AT_ONCE:
            raise refuse("capacity", safe="Nothing was done for it.")
        self._verifying += 1
        try:
            name = await self._host.webhooks.receive(request.path_params["endpoint"], headers, body)
        finally:
            self._verifying -= 1
        if name is not None:
            self._syncs.hint(name)
        return json_answer({}, 202)

    async def _of(self, reference: str) -> Selection:
        return await asyncio.to_thread(self._host.connecting.addressed, reference)
