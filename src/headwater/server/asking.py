"""What a request asks: its query and its body, read exactly and within their bounds."""

import asyncio
from collections.abc import Collection
from typing import TypeVar
from urllib.parse import parse_qsl

import jiter
import msgspec
from starlette.requests import ClientDisconnect, Request

from headwater import limits
from headwater.server.answers import Refusal

Document = TypeVar("Document", bound=msgspec.Struct)


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request that has nothing to say."""


def query_of(request: Request, known: Collection[str] = ()) -> dict[str, str]:
    """Return the query. One that is not known is refused: a parameter that is misspelt must not mean another thing."""
    text = request.scope["query_string"].decode("latin-1")
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text), errors="strict", max_num_fields=8)
    except ValueError as error:
        raise Refusal(400, "invalid_request", "The query cannot be read.") from error
    for name, _ in pairs:
        if name not in known:
            message = f"There is a parameter that is not known. Known are: {', '.join(sorted(known)) or 'none'}."
            raise Refusal(400, "invalid_request", message, name)
    if len(dict(pairs)) < len(pairs):
        raise Refusal(400, "invalid_request", "A parameter stands twice.")
    return dict(pairs)


async def body_of(request: Request, at_most: int = limits.SERVER_BODY_BYTES) -> bytes:
    """Read a body up to its bounds in bytes and in time."""
    body = bytearray()
    try:
        async with asyncio.timeout(limits.SERVER_ASK_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > at_most:
                    raise Refusal(413, "body_too_large", "The body is too large.")
    except TimeoutError as error:
        raise Refusal(408, "request_timeout", "The body did not come in time.") from error
    except ClientDisconnect as error:
        raise Refusal(400, "invalid_request", "The body did not come to its end.") from error
    return bytes(body)


async def document_of(request: Request, kind: type[Document]) -> Document:
    """Read a body as a JSON object with the members of a kind, and no others; no body at all is an empty object."""
    body = await body_of(request, limits.DOCUMENT_BYTES) or b"{}"
    try:
        jiter.from_json(body, catch_duplicate_keys=True, cache_mode="keys")
        return msgspec.json.decode(body, type=kind)
    except (ValueError, RecursionError):
        message = "The body must be one JSON object with the members of this route, and no others."
        raise Refusal(400, "invalid_request", message) from None  # the cause could hold what was entered
