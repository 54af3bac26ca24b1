"""Who is let in: the owner, by a token, over a loopback name. Nothing is looked up for anybody else.

Webhooks alone come in without a token and under any name: each brings a signature of its own (INT-454).
A browser sends no token by itself, and there are no cookies: whoever brings the token proves that no page made it come.
A page of another site is refused even with it (INT-425).
"""

import re
from collections.abc import Callable
from hmac import compare_digest
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headwater import clock, limits
from headwater.server.answers import Refusal

Note = Callable[[str, str, str, int], None]
"""Keeps a line of a request: its id, its route, how it was answered, and in how many milliseconds."""

WEBHOOKS: Final = "/v1/webhooks/"
_LOOPBACK = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
_OURS = frozenset({"same-origin", "none"})


class Guard:
    """Stands before an application, gives each request an id and each response its headers, and notes both."""

    def __init__(self, app: ASGIApp, token: str, note: Note) -> None:
        self._app = app
        self._token = token.encode()
        self._note = note

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id, began = clock.identifier("req"), clock.monotonic()
        told = scope.setdefault("state", {})
        told["request_id"] = request_id

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Request-Id"] = request_id
                headers["Cache-Control"] = "no-store"
                headers["X-Content-Type-Options"] = "nosniff"
                answered = f"{message['status']} {told.get('code', '-')}"
                self._note(request_id, told.get("route", "- -"), answered, int((clock.monotonic() - began) * 1000))
            await send(message)

        try:
            self._admit(scope)
        except Refusal as refusal:
            told["code"] = refusal.code
            await refusal.answer(request_id)(scope, receive, marked)
        else:
            await self._app(scope, receive, marked)

    def _admit(self, scope: Scope) -> None:
        """Raise where a request may not come in."""
        headers = Headers(scope=scope)
        head = sum(len(name) + len(value) for name, value in headers.raw)
        if head + len(scope["raw_path"]) + len(scope["query_string"]) > limits.SERVER_HEAD_BYTES:
            raise Refusal(431, "head_too_large", "The head of the request is too large.")
        if scope["path"].startswith(WEBHOOKS):
            return
        # A page on the web can make a browser come here under a name of its own (DNS rebinding).
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not _LOOPBACK.fullmatch(hosts[0]):
            raise Refusal(403, "host_not_allowed", "The server answers to a loopback name only.")
        own = f"http://{hosts[0]}".lower()
        sites = headers.getlist("sec-fetch-site")
        if any(origin.lower() != own for origin in headers.getlist("origin")) or not _OURS.issuperset(sites):
            raise Refusal(403, "origin_not_allowed", "A page of another site may ask nothing here.")
        self._authenticate(headers.getlist("authorization"))

    def _authenticate(self, given: list[str]) -> None:
        """Raise unless one header brings the owner's token; how much of it fits takes no time to tell."""
        challenge = 'Bearer realm="headwater"'
        if given:
            scheme, _, token = given[0].partition(" ")
            fits = compare_digest(token.strip().encode("latin-1"), self._token)
            if fits and scheme.lower() == "bearer" and len(given) == 1:
                return
            challenge += ', error="invalid_token"'
        message = "The owner's token is needed, as `Authorization: Bearer`."
        raise Refusal(401, "authentication_error", message, headers={"WWW-Authenticate": challenge})
