"""Signing in by declaration alone: what a manifest says of a provider is enough for the host to do it itself."""

from collections.abc import Mapping

from headwater.connect.envelope import Credential, Envelope
from headwater.connect.failures import AuthFailure
from headwater.connect.ports import Challenge, Probed
from headwater.manifest.auth import Method
from headwater.outbound.client import Client
from headwater.outbound.oauth import Grants
from headwater.outbound.probing import in_header, probe
from headwater.secret import Secret


class Declared:
    """Fills `Authenticator` for the declared schemes. `endpoint` is the instance's: paths are below it.

    `client_id` is the host's at the provider, for a method that declares none.
    """

    def __init__(self, client: Client, endpoint: str, instance_id: str, client_id: str | None = None) -> None:
        self._client = client
        self._endpoint = endpoint
        self._instance_id = instance_id
        self._grants = Grants(client, endpoint, client_id)

    async def start(
        self, method: Method, fields: Mapping[str, Secret], redirect_uri: str | None = None
    ) -> Challenge | Envelope:
        """See `Authenticator.start`. What was entered for a static scheme is the credential; the probe judges it."""
        if method.scheme == "oauth2_client_credentials":
            return await self._grants.client_credentials(method, fields)
        if method.scheme == "oauth2_grant":
            if redirect_uri is not None:
                return self._grants.browser(method, fields, redirect_uri)
            return await self._grants.device(method, fields)
        secret = next(fields[field.name] for field in method.fields if field.is_secret)
        if method.scheme == "token":
            in_header(secret)
        return Envelope(secret)

    async def complete(
        self, method: Method, fields: Mapping[str, Secret], challenge: Challenge, answer: Mapping[str, Secret]
    ) -> Challenge | Envelope | None:
        """See `Authenticator.complete`."""
        if challenge.kind == "redirect":
            return await self._grants.redirected(method, fields, challenge, answer)
        if challenge.kind == "device":
            return await self._grants.polled(method, fields, challenge)
        raise AuthFailure("auth_state_invalid")

    async def refresh(self, method: Method, credential: Credential) -> Envelope:
        """See `Authenticator.refresh`. A static credential is good, or another one is needed."""
        if method.scheme == "oauth2_client_credentials":
            return await self._grants.client_credentials(method, credential.fields)
        if method.scheme == "oauth2_grant":
            return await self._grants.refreshed(method, credential)
        raise AuthFailure("credential_invalid")

    async def probe(self, method: Method, credential: Credential) -> Probed:
        """See `Authenticator.probe`."""
        return await probe(self._client, self._endpoint, method, credential, self._instance_id)

    async def disconnect(self, method: Method, credential: Credential) -> bool:
        """See `Authenticator.disconnect`."""
        return await self._grants.revoked(method, credential) if method.oauth is not None else False
