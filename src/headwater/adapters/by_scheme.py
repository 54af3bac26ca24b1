"""Signing in by whoever a method names: the host by its declaration, or the integration's own code."""

from collections.abc import Mapping

from headwater.connect.envelope import Credential, Envelope
from headwater.connect.ports import Authenticator, Challenge, Probed
from headwater.manifest.auth import Method
from headwater.secret import Secret


class ByScheme:
    """Fills `Authenticator` by two others."""

    def __init__(self, declared: Authenticator, hooks: Authenticator) -> None:
        self._declared, self._hooks = declared, hooks

    def _of(self, method: Method) -> Authenticator:
        return self._hooks if method.scheme == "hooks" else self._declared

    async def start(
        self, method: Method, fields: Mapping[str, Secret], redirect_uri: str | None = None
    ) -> Challenge | Envelope:
        """See `Authenticator.start`."""
        return await self._of(method).start(method, fields, redirect_uri)

    async def complete(
        self, method: Method, fields: Mapping[str, Secret], challenge: Challenge, answer: Mapping[str, Secret]
    ) -> Challenge | Envelope | None:
        """See `Authenticator.complete`."""
        return await self._of(method).complete(method, fields, challenge, answer)

    async def refresh(self, method: Method, credential: Credential) -> Envelope:
        """See `Authenticator.refresh`."""
        return await self._of(method).refresh(method, credential)

    async def probe(self, method: Method, credential: Credential) -> Probed:
        """See `Authenticator.probe`."""
        return await self._of(method).probe(method, credential)

    async def disconnect(self, method: Method, credential: Credential) -> bool:
        """See `Authenticator.disconnect`."""
        return await self._of(method).disconnect(method, credential)
