"""Signing in by the hooks of an integration whose process the owner keeps: the port `Authenticator`, from afar."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

from headwater import limits
from headwater.adapters.crossing import of_challenge, of_credential, of_secrets, to_step
from headwater.aside import aside
from headwater.connect.envelope import Credential, Envelope
from headwater.connect.ports import Challenge, Probed
from headwater.link.owner import Place, ask
from headwater.manifest.auth import Method
from headwater.secret import Secret


class ByOwner:
    """Asks the owner to run the hooks of one instance. `begin` has an owner running; it is called before each step."""

    def __init__(self, place: Place, instance_id: str, begin: Callable[[], None]) -> None:
        self._place, self._instance_id, self._begin = place, instance_id, begin

    async def start(
        self, method: Method, fields: Mapping[str, Secret], redirect_uri: str | None = None
    ) -> Challenge | Envelope:
        """See `Authenticator.start`."""
        return await self._step("start", method, fields=of_secrets(fields))  # type: ignore[no-any-return]

    async def complete(
        self, method: Method, fields: Mapping[str, Secret], challenge: Challenge, answer: Mapping[str, Secret]
    ) -> Challenge | Envelope | None:
        """See `Authenticator.complete`."""
        members = {"fields": of_secrets(fields), "challenge": of_challenge(challenge), "answer": of_secrets(answer)}
        return await self._step("complete", method, **members)  # type: ignore[no-any-return]

    async def refresh(self, method: Method, credential: Credential) -> Envelope:
        """See `Authenticator.refresh`."""
        return await self._step("refresh", method, credential=of_credential(credential))  # type: ignore[no-any-return]

    async def probe(self, method: Method, credential: Credential) -> Probed:
        """See `Authenticator.probe`."""
        return await self._step("probe", method, credential=of_credential(credential))  # type: ignore[no-any-return]

    async def disconnect(self, method: Method, credential: Credential) -> bool:
        """See `Authenticator.disconnect`."""
        return bool(await self._step("disconnect", method, credential=of_credential(credential)))

    async def configure(self, method: Method, credential: Credential, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """See `Hooked.configure`."""
        told = {"credential": of_credential(credential), "values": dict(values)}
        return await self._step("configure", method, **told)  # type: ignore[no-any-return]

    async def webhook(self, method: Method, headers: Mapping[str, str], body: bytes) -> Mapping[str, Any] | None:
        """See `Hooked.webhook`."""
        told = {"headers": dict(headers), "body": b64encode(body).decode()}
        return await self._step("webhook", method, **told)  # type: ignore[no-any-return]

    async def _step(self, step: str, method: Method, **members: Any) -> Any:
        asked = {"instance_id": self._instance_id, "step": step, "method": method.key, **members}

        def put() -> dict[str, Any]:
            self._begin()
            return ask(self._place, "sign_in", limits.OWNER_ANSWER_SECONDS, **asked)

        return to_step(await aside(put))
