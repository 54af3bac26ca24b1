"""What a webhook has to bring before anything is done for it: an id, a young timestamp, a signature (INT-454).

The form is that of Standard Webhooks: `webhook-id`, `webhook-timestamp` and `webhook-signature`, the last one over
`ID.TIMESTAMP.BODY` with the bytes of the body as they came.
"""

from collections.abc import Mapping
from typing import NamedTuple

from headwater import limits
from headwater.connect.model import Identity
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.auth import Field, Method

ENTRY = Method("webhook", "Webhooks", "token", (Field("secret", "Signing secret", "token", required=True),))
"""How the secret of a provider is entered: as the credential of a way to sign in is."""


class Delivery(NamedTuple):
    """One webhook as its headers tell. `until_ms` is when its timestamp is not believed any more."""

    name: str
    timestamp: str
    signatures: tuple[str, ...]
    until_ms: int

    def content(self, body: bytes) -> bytes:
        """Return what is signed."""
        return f"{self.name}.{self.timestamp}.".encode() + body


def delivery_of(headers: Mapping[str, str], now_ms: int) -> Delivery:
    """Read the headers, by their lower-case names. Raise where one is missing, or the time is not now."""
    name, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    signatures = tuple(headers.get("webhook-signature", "").split(" "))
    is_number = timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= limits.WEBHOOK_TIMESTAMP_CHARACTERS
    if not name.isascii() or not 1 <= len(name) <= limits.WEBHOOK_ID_CHARACTERS or not is_number:
        raise unsigned()
    if len(signatures) > limits.WEBHOOK_SIGNATURES or abs(int(timestamp) * 1000 - now_ms) > _WINDOW_MS:
        raise unsigned()
    return Delivery(name, timestamp, signatures, int(timestamp) * 1000 + _WINDOW_MS)


_WINDOW_MS = limits.WEBHOOK_WINDOW_SECONDS * 1000


def unsigned() -> HeadwaterError:
    """Refuse a webhook, whatever of its signature, its time or its headers does not fit."""
    message = "The webhook is not signed for this endpoint, or not now."
    code, safe = "webhook_signature_invalid", "Nothing was done for it."
    return refuse("forbidden", message, next_action="none", safe=safe, integration_code=code)


def no_endpoint() -> HeadwaterError:
    """Answer an endpoint that is nowhere, not used any more, or another owner's, in one way."""
    return refuse("not_found", "There is no such endpoint.", next_action="none")


def is_for(identity: Identity, account: str | None) -> bool:
    """Whether a webhook is about a connection's account; one that names none is (INT-475)."""
    return account is None or account == identity.subject
