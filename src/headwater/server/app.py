"""The application: every route, behind the guard."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp

from headwater.errors import HeadwaterError
from headwater.host import Host
from headwater.server.answers import Refusal, refused
from headwater.server.guard import Guard
from headwater.server.state import PREFIX, StateRoutes


def application(host: Host, token: str) -> ASGIApp:
    """Return the ASGI application of a host, for whoever has the token."""
    route = Route(f"{PREFIX}{{connector_id:path}}", StateRoutes(host).answer, methods=["GET", "PUT"])
    raised = (Refusal, HeadwaterError, HTTPException, Exception)
    app = Starlette(routes=[route], exception_handlers=dict.fromkeys(raised, refused))
    app.router.redirect_slashes = False
    return Guard(app, token)
