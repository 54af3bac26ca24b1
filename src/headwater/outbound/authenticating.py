"""Signing in by declaration alone: what a manifest says of a provider is enough for the host to do it itself."""

from collections.abc import Mapping
from dataclasses import replace

from headwater.connect.envelope import Credential, Envelope
from headwater.connect.failures import AuthFailure
from headwater.connect.fields import kept
from headwater.connect.ports import Challenge, Probed
from headwater.manifest.auth import Method
from headwater.outbound.client import Client
from headwater.outbound.probing import in_header, probe
from headwater.secret import Secret


class Declared:
    """Fills `Authenticator` for the declared schemes. `endpoint` is the instance's: paths are below it."""

    def __init__(self, client: Client, endpoint: str, instance_id: str) -> None:
        self._client = client
        self._endpoint = endpoint
        self._instance_id = instance_id

    async def start(
        self, method: Method, fields: Mapping[str, Secret], redirect_uri: str | None = None
    ) -> Challenge | Envelope:
        """See `Authenticator.start`. A static credential is probed at once: it is good, or refused (INT-191)."""
        secret = next(fields[field.name] for field in method.fields if field.is_secret)
        if method.scheme == "token":
            in_header(secret)
        envelope = Envelope(secret)
        probed = await self.probe(method, Credential(envelope, kept(method, fields)))
        return replace(envelope, account=probed.account)

    async def complete(
        self, method: Method, fields: Mapping[str, Secret], challenge: Challenge, answer: Mapping[str, Secret]
    ) -> Challenge | Envelope | None:
        """See `Authenticator.complete`. A static credential asks for nothing."""
        raise AuthFailure("auth_state_invalid")

    async def refresh(self, method: Method, credential: Credential) -> Envelope:
        """See `Authenticator.refresh`. A static credential cannot be: it is good, or a new one is needed."""
        raise AuthFailure("credential_invalid")

    async def probe(self, method: Method, credential: Credential) -> Probed:
        """See `Authenticator.probe`."""
        return await probe(self._client, self._endpoint, method, credential, self._instance_id)

    async def disconnect(self, method: Method, credential: Credential) -> bool:
        """See `Authenticator.disconnect`."""
        return False
