"""The application: every route, behind the guard."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from headwater.connect.failures import AuthFailure
from headwater.errors import HeadwaterError
from headwater.host import Host
from headwater.server.accounts import AccountRoutes
from headwater.server.answers import Refusal, refused
from headwater.server.guard import WEBHOOKS, Guard
from headwater.server.hooking import WebhookRoutes
from headwater.server.ordering import ordering
from headwater.server.signing import SignInRoutes
from headwater.server.state import PREFIX, StateRoutes
from headwater.syncing import Syncs

Answer = Callable[[Request], Awaitable[Response]]


class Way(NamedTuple):
    """One route: what is asked by which method, and who answers."""

    method: str
    path: str
    answer: Answer


def ways(host: Host, syncs: Syncs) -> list[Way]:
    """Return every route there is."""
    accounts, signing, webhooks = AccountRoutes(host, syncs), SignInRoutes(host), WebhookRoutes(host, syncs)
    state = StateRoutes(host).answer
    connection = "/v1/connections/{id}"
    return [
        Way("GET", f"{PREFIX}{{connector_id:path}}", state),
        Way("PUT", f"{PREFIX}{{connector_id:path}}", state),
        Way("GET", "/v1/integrations", accounts.integrations),
        Way("GET", "/v1/integrations/{key}", accounts.integration),
        Way("POST", "/v1/integrations/{key}/auth/{method}/start", signing.start),
        Way("POST", "/v1/integrations/{key}/auth/{method}/complete", signing.complete),
        Way("GET", "/v1/instances", accounts.instances),
        Way("GET", "/v1/connections", accounts.connections),
        Way("GET", connection, accounts.connection),
        Way("GET", f"{connection}/resources", accounts.resources),
        Way("POST", f"{connection}/refresh", accounts.refresh),
        Way("POST", f"{connection}/configure", accounts.configure),
        Way("POST", f"{connection}/disconnect", accounts.disconnect),
        Way("POST", f"{connection}/reconnect/{{method}}/start", signing.restart),
        Way("POST", f"{connection}/reconnect/{{method}}/complete", signing.recomplete),
        Way("GET", f"{connection}/webhook", webhooks.show),
        Way("POST", f"{connection}/webhook", webhooks.make),
        Way("POST", f"{WEBHOOKS}{{endpoint}}", webhooks.receive),
        Way("GET", "/v1/syncs", accounts.syncs),
        Way("GET", "/v1/syncs/{id}", accounts.sync),
        Way("POST", "/v1/quotes", ordering),
        Way("POST", "/v1/fulfillments", ordering),
        Way("GET", "/v1/fulfillments/{id}", ordering),
        Way("POST", "/v1/fulfillments/{id}/reconcile", ordering),
    ]


def application(host: Host, token: str) -> ASGIApp:
    """Return the ASGI application of a host, for whoever has the token. Its end ends the runs that it started."""
    syncs = Syncs(host)

    @asynccontextmanager
    async def living(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await syncs.stop()

    raised = (Refusal, HeadwaterError, AuthFailure, HTTPException, Exception)
    app = Starlette(
        routes=_routes(ways(host, syncs)), exception_handlers=dict.fromkeys(raised, refused), lifespan=living
    )
    app.router.redirect_slashes = False
    return Guard(app, token, host.note_request)


def _routes(all_: list[Way]) -> list[Route]:
    """Return a route for each path, with all its methods: what a path does not know is told with what it knows."""
    paths: dict[str, dict[str, Answer]] = {}
    for way in all_:
        paths.setdefault(way.path, {})[way.method] = way.answer
    return [Route(path, _by_method(path, answers), methods=list(answers)) for path, answers in paths.items()]


def _by_method(path: str, answers: dict[str, Answer]) -> Answer:
    async def answer(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        request.state.route = f"{method} {path}"
        return await answers[method](request)

    return answer
