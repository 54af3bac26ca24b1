"""Asking a provider with the credential of a connection: fills the port `Provider` of the verb operate."""

from collections.abc import Iterator, Mapping
from typing import Final

from headwater import limits
from headwater.connect.envelope import Credential
from headwater.connect.failures import FailureCode
from headwater.manifest.auth import Method
from headwater.operate.planning import Request
from headwater.operate.ports import Lost, NoReply, Reply
from headwater.operate.service_reason import admitted, reason_in, strings_of
from headwater.outbound.client import Bounds, Client, Unanswered
from headwater.outbound.probing import below, sent

_LOST: Final[Mapping[FailureCode, Lost]] = {"provider_unavailable": "unavailable", "provider_timeout": "timeout"}


class Asking:
    """Sends requests below the endpoint of one instance. Raise `AuthFailure` for a credential that cannot be sent."""

    def __init__(self, client: Client, endpoint: str, method: Method, credential: Credential) -> None:
        self._client, self._endpoint = client, endpoint
        self._headers = sent(method, credential)
        self._secrets = [*map(str.encode, self._headers.values()), *_entered(credential)]

    async def send(self, request: Request, seconds: float) -> Reply:
        """See `Provider.send`."""
        bounds = Bounds(max(seconds, 0.0), limits.RESULT_BYTES)
        headers, url = {**request.headers, **self._headers}, below(self._endpoint, request.target)
        try:
            answer = await self._client.send(request.method, url, headers, request.body, bounds)
        except Unanswered as error:
            lost: Lost = "too_large" if error.too_large else _LOST.get(error.code, "protocol")
            raise NoReply(lost, sent=error.sent) from None
        found = reason_in(answer.body) if answer.status >= 400 else None
        reason = None if found is None else admitted(found, self._secrets)
        return Reply(answer.status, answer.body, answer.media_type, answer.retry_after, reason)


def _entered(credential: Credential) -> Iterator[bytes]:
    """Yield what is secret in a credential; of what is JSON itself, as a service's key may be, each text in it."""
    renewal = credential.envelope.refresh_token
    for secret in (credential.envelope.access_token, *([renewal] if renewal else []), *credential.fields.values()):
        yield from strings_of(secret.reveal())
