"""Signing in by an integration's hooks: fills the port that the declared schemes fill without code."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from headwater import clock, limits
from headwater.adapters.hosting import Adapter, Call, Count
from headwater.adapters.sending import below
from headwater.connect.envelope import Account, Credential, Envelope
from headwater.connect.failures import AuthFailure
from headwater.connect.foreign import received_account, received_challenge, received_envelope
from headwater.connect.ports import Challenge, Probed
from headwater.manifest.auth import Method
from headwater.outbound.client import Client
from headwater.secret import Secret

Host = Callable[[], AbstractAsyncContextManager[Adapter]]
"""Has the process of an integration, running, for as long as it is asked something."""


@dataclass(frozen=True)
class Acting:
    """For whom a hook works, and with which application. `settings` is the operator's, and protected (INT-470)."""

    owner: str
    acting_user: str
    team: str
    provider: str
    endpoint: str = ""
    settings: Mapping[str, Any] | None = None


class Hooked:
    """Fills `Authenticator` by the hooks of one integration, for one instance; `host` has its process for a while."""

    def __init__(self, host: Host, client: Client, acting: Acting, count: Count) -> None:
        self._host, self._acting, self._count = host, acting, count
        self._send = below(acting.endpoint, client)

    async def start(
        self, method: Method, fields: Mapping[str, Secret], redirect_uri: str | None = None
    ) -> Challenge | Envelope:
        """See `Authenticator.start`."""
        entered = {name: value.text() for name, value in fields.items()}
        async with self._host() as adapter:
            told = await self._call(adapter, "start_auth", {"method": method.key, "fields": entered}, None)
            return await self._went_on(adapter, told)

    async def complete(
        self, method: Method, fields: Mapping[str, Secret], challenge: Challenge, answer: Mapping[str, Secret]
    ) -> Challenge | Envelope | None:
        """See `Authenticator.complete`."""
        given = {name: value.text() for name, value in answer.items()}
        asked = {"method": method.key, "state": dict(challenge.upstream), "answer": given}
        async with self._host() as adapter:
            told = await self._call(adapter, "complete_auth", asked, None)
            return None if told == {"kind": "value", "value": None} else await self._went_on(adapter, told)

    async def refresh(self, method: Method, credential: Credential) -> Envelope:
        """See `Authenticator.refresh`."""
        written = _written(credential.envelope)
        async with self._host() as adapter:
            if "refresh_credential" not in adapter.hooks:
                raise AuthFailure("credential_invalid")
            told = await self._call(adapter, "refresh_credential", {"envelope": written}, credential.envelope)
            return received_envelope(_of_kind(told, "envelope"))

    async def probe(self, method: Method, credential: Credential) -> Probed:
        """See `Authenticator.probe`."""
        envelope = credential.envelope
        async with self._host() as adapter:
            return Probed(await self._account(adapter, envelope), envelope.scopes)

    async def disconnect(self, method: Method, credential: Credential) -> bool:
        """See `Authenticator.disconnect`."""
        async with self._host() as adapter:
            if "disconnect" not in adapter.hooks:
                return False
            await self._call(adapter, "disconnect", {}, credential.envelope)
            return True

    async def page(self, hook: str, cursor: str | None, envelope: Envelope) -> Mapping[str, Any]:
        """Return one page of a list, by its members."""
        async with self._host() as adapter:
            page = _of_kind(await self._call(adapter, hook, {"cursor": cursor}, envelope), "page")
        fits = isinstance(page, dict) and isinstance(page.get("items"), list) and isinstance(page.get("complete"), bool)
        if not fits or not isinstance(page.get("next"), str | None):
            raise AuthFailure("provider_protocol_error")
        return page  # type: ignore[no-any-return]

    async def configure(self, credential: Credential, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Check settings, then apply them; return those that hold now."""
        async with self._host() as adapter:
            if "configure" not in adapter.hooks:
                raise AuthFailure("provider_protocol_error")
            told = await self._call(adapter, "configure", {"values": dict(values)}, credential.envelope)
            held = _of_kind(told, "value")
        if not isinstance(held, dict):
            raise AuthFailure("provider_protocol_error")
        return held

    async def webhook(self, headers: Mapping[str, str], body: str) -> Mapping[str, Any] | None:
        """Have a webhook whose signature fits looked at, without a credential; None where the integration refuses it.

        `body` is base64. Of what the integration reads there, only the account is taken.
        """
        async with self._host() as adapter:
            told = await self._call(adapter, "verify_webhook", {"headers": dict(headers), "body": body}, None)
            if _of_kind(told, "value") is not True:
                return None
            hint = _of_kind(await self._call(adapter, "map_webhook", {"body": body}, None), "value")
        if not isinstance(hint, dict) or not isinstance(hint.get("account"), str | None):
            raise AuthFailure("provider_protocol_error")
        return {"account": hint.get("account")}

    async def operate(self, operation: str, given: str, envelope: Envelope, until: float) -> Any:
        """Have the code do an operation by a monotonic deadline, given JSON text; return what it gave.

        Raise `TimeoutError` where its turn did not come.
        """
        async with self._host() as adapter:
            told = await self._asked(adapter, {"operation": operation, "given": given}, envelope, until)
        if not isinstance(told, dict) or "value" not in told:
            raise AuthFailure("provider_protocol_error")
        return told["value"]

    async def _went_on(self, adapter: Adapter, told: Any) -> Challenge | Envelope:
        """Return the challenge, or the envelope with the account that it belongs to."""
        if isinstance(told, dict) and told.get("kind") == "challenge":
            return received_challenge(told.get("value"))
        envelope = received_envelope(_of_kind(told, "envelope"))
        return replace(envelope, account=await self._account(adapter, envelope))

    async def _account(self, adapter: Adapter, envelope: Envelope) -> Account:
        return received_account(_of_kind(await self._call(adapter, "get_account", {}, envelope), "account"))

    async def _call(self, adapter: Adapter, hook: str, arguments: Mapping[str, Any], envelope: Envelope | None) -> Any:
        if hook not in adapter.hooks:
            raise AuthFailure("provider_protocol_error")
        return await self._asked(adapter, {"hook": hook, "arguments": arguments}, envelope)

    async def _asked(
        self, adapter: Adapter, asked: Mapping[str, Any], envelope: Envelope | None, until: float | None = None
    ) -> Any:
        acting = self._acting
        seconds = limits.HOOK_SECONDS if until is None else until - clock.monotonic()
        context = {
            "owner": acting.owner,
            "acting_user": acting.acting_user,
            "team": acting.team,
            "provider": {
                "name": acting.provider,
                "endpoint": acting.endpoint,
                "settings": dict(acting.settings or {}),
            },
            "credential": None if envelope is None else _written(envelope),
            "deadline": clock.text(clock.now() + timedelta(seconds=seconds)),
        }
        return await adapter.call(Call(asked, context, self._send, self._count, until))


def _written(envelope: Envelope) -> dict[str, Any]:
    """Return an envelope as a hook reads it."""
    account = envelope.account
    renewal, expires_at = envelope.refresh_token, envelope.expires_at
    return {
        "access_token": envelope.access_token.text(),
        "token_type": envelope.token_type,
        "expires_at": None if expires_at is None else clock.text(expires_at),
        "refresh_token": None if renewal is None else renewal.text(),
        "scopes": None if envelope.scopes is None else list(envelope.scopes),
        "account": None if account is None else {"id": account.id, "kind": account.kind, "display": account.display},
        "metadata": dict(envelope.metadata),
    }


def _of_kind(told: Any, kind: str) -> Any:
    """Return what a hook gave where it is of the type that it has to be."""
    if not isinstance(told, dict) or told.get("kind") != kind:
        raise AuthFailure("provider_protocol_error")
    return told.get("value")
