"""The HTTP client of a hook: the host sends each request, to hosts that the manifest names and to no others.

The hook's own process has no network. TLS is checked, sizes and times are bounded, no redirect is followed, and
nothing is sent twice (INT-493).
"""

import json as json_text
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from headwater.sdk.refusals import Refused

Exchange = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Sends a request to the host, and returns what the host says of it."""


@dataclass(frozen=True)
class Answer:
    """What a provider answered. `retry_after` is how long it wants to be left alone, in whole seconds."""

    status: int
    body: bytes = field(repr=False)
    retry_after: int | None = None

    def json(self) -> Any:
        """Return the body's JSON value, or raise `Refused` where it is none."""
        try:
            return json_text.loads(self.body)
        except (ValueError, RecursionError):
            pass
        raise Refused("provider_protocol_error")

    def accepted(self) -> "Answer":
        """Return this answer where it is a 2xx, or raise the `Refused` that its status stands for."""
        if 200 <= self.status < 300:
            return self
        if self.status == 429:
            raise Refused("provider_rate_limited", retry_after=self.retry_after)
        if self.status in (401, 403):
            raise Refused("credential_invalid" if self.status == 401 else "insufficient_scope")
        raise Refused("provider_unavailable" if self.status >= 500 else "provider_protocol_error")


class Http:
    """Requests of one call of a hook."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        form: Mapping[str, str] | None = None,
        content: bytes = b"",
    ) -> Answer:
        """Send one request and wait for the answer. A `url` that begins with / is below the instance's endpoint.

        The body is a value as JSON, a form, or `content` as it is. Raise `Refused` where no answer came;
        `exchange_unknown` where the provider may have acted all the same.
        """
        sent = dict(headers or {})
        body = content
        if json is not None:
            body = json_text.dumps(json).encode()
            sent.setdefault("content-type", "application/json")
        elif form is not None:
            body = urlencode(form).encode()
            sent.setdefault("content-type", "application/x-www-form-urlencoded")
        asked = {"method": method, "url": url, "headers": sent, "body": b64encode(body).decode()}
        told = self._exchange(asked)
        if "failure" in told:
            raise Refused(told["failure"], retry_after=told.get("retry_after"))
        return Answer(told["status"], b64decode(told["body"]), told.get("retry_after"))
