"""What a hook asks to be sent, sent: below the endpoint of its instance, or to the hosts of its manifest (INT-493)."""

from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from headwater.outbound.client import Answer, Client, Unanswered

Send = Callable[[str, str, Mapping[str, str], bytes], Awaitable[Answer]]
"""Sends a method, an address, headers and a body to a provider; raises `Unanswered`."""


def below(endpoint: str, client: Client) -> Send:
    """Return what sends by a client. An address that begins with / is below the endpoint."""

    async def send(verb: str, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        address = endpoint.rstrip("/") + url if url.startswith("/") else url
        if urlsplit(address).scheme not in ("https", "http"):
            raise Unanswered("provider_protocol_error", sent=False)
        return await client.send(verb, address, headers, body)

    return send


async def sent(send: Send, asked: object) -> Mapping[str, Any]:
    """Send what a hook asks to be sent, and tell what came of it."""
    try:
        verb, url, headers, body = _request(asked)
        answer = await send(verb, url, headers, body)
    except (KeyError, TypeError, ValueError, AttributeError):
        return {"failure": "provider_protocol_error"}
    except Unanswered as error:
        lost = error.sent and _asked_to_write(asked)
        return {"failure": "exchange_unknown" if lost else error.code}
    return {"status": answer.status, "body": b64encode(answer.body).decode(), "retry_after": answer.retry_after}


def _asked_to_write(asked: Any) -> bool:
    """Whether a request may change something at the provider."""
    return asked["method"] not in ("GET", "HEAD")


def _request(asked: Any) -> tuple[str, str, dict[str, str], bytes]:
    headers = {str(name): str(value) for name, value in asked["headers"].items()}
    return str(asked["method"]), str(asked["url"]), headers, b64decode(asked["body"])
