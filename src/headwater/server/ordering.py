"""The routes of quotes and fulfillments, for which nothing is built yet: each says so, and nothing else."""

from starlette.requests import Request
from starlette.responses import Response

from headwater.errors import refuse
from headwater.server.asking import body_of


async def ordering(request: Request) -> Response:
    """Refuse, whatever is asked: no integration's orders are placed or looked at here."""
    await body_of(request)
    raise refuse(
        "unsupported", "Quotes and fulfillments are not supported by this Headwater.", safe="Nothing was sent."
    )
