"""A whole sign-in with a person at hand: whoever is asked, asked; whatever has to be waited for, awaited."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import parse_qsl, urlsplit

from headwater import clock, limits
from headwater.connect.auth_state import Subject
from headwater.connect.envelope import Credential
from headwater.connect.failures import AuthFailure
from headwater.connect.flows import Pending, SignIn
from headwater.connect.ports import Challenge
from headwater.errors import refuse
from headwater.manifest.auth import Method
from headwater.secret import Secret


class Person(Protocol):
    """Who signs in, and sees what the provider wants of them."""

    def show(self, challenge: Challenge) -> None:
        """Show where to consent, and what to type there."""
        ...

    def answer(self, challenge: Challenge) -> Mapping[str, Secret]:
        """Return the fields of a challenge, entered unseen. Raise `protected_entry_unavailable`, `interrupted`."""
        ...


class Redirects(Protocol):
    """Where a browser comes back to."""

    @property
    def redirect_uri(self) -> str:
        """The exact address."""
        ...

    async def parameters(self, state: Secret) -> Mapping[str, Secret]:
        """Return what it brought back with this state; whatever else comes is nothing to this sign-in."""
        ...


@dataclass(frozen=True)
class Consenting:
    """Signs a person in. With `device` no browser of this machine is needed."""

    sign_in: SignIn
    subject: Subject
    person: Person
    listening: Callable[[], AbstractAsyncContextManager[Redirects]]
    device: bool = False
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def through(self, method: Method, fields: Mapping[str, Secret]) -> Credential:
        """Return the credential. Raise `AuthFailure`; `auth_state_expired` where consent takes longer than it may."""
        try:
            async with asyncio.timeout(limits.CONSENT_SECONDS), AsyncExitStack() as stack:
                redirects = await stack.enter_async_context(self.listening()) if self._browses(method) else None
                uri = None if redirects is None else redirects.redirect_uri
                got = await self.sign_in.start(self.subject, method, fields, redirect_uri=uri)
                while not isinstance(got, Credential):
                    got = await self._answered(method, got, redirects)
                return got
        except TimeoutError:
            raise AuthFailure("auth_state_expired") from None

    def _browses(self, method: Method) -> bool:
        if method.flow != "oauth" or self.device:
            return False
        return method.oauth is None or method.oauth.authorize_url is not None

    async def _answered(self, method: Method, pending: Pending, redirects: Redirects | None) -> Pending | Credential:
        challenge = pending.challenge
        if challenge.kind == "device":
            return await self._polled(method, pending)
        if challenge.kind == "redirect":
            state = _state_of(challenge)
            if redirects is None or state is None:
                raise AuthFailure("provider_protocol_error")
            self.person.show(challenge)
            return _there(await self._complete(method, pending, await redirects.parameters(state)))
        try:
            return _there(await self._complete(method, pending, self.person.answer(challenge)))
        except AuthFailure as failure:
            if failure.code != "challenge_failed":
                raise
            return pending

    async def _polled(self, method: Method, pending: Pending) -> Pending | Credential:
        """Ask until the device's owner has consented, as often as the provider allows and no longer than it says."""
        challenge = pending.challenge
        if challenge.interval_seconds > limits.CONSENT_SECONDS:
            message = "The provider wants to be asked less often than a sign-in takes."
            raise refuse("unsupported", message, safe="Nothing was stored.")
        self.person.show(challenge)
        while challenge.expires_at is None or clock.now() < challenge.expires_at:
            await self.pause(challenge.interval_seconds)
            got = await self._complete(method, pending, {})
            if isinstance(got, Pending) and got.challenge.kind == "device":
                challenge = got.challenge
            elif got is not None:
                return got
        raise AuthFailure("auth_state_expired")

    async def _complete(
        self, method: Method, pending: Pending, answer: Mapping[str, Secret]
    ) -> Pending | Credential | None:
        return await self.sign_in.complete(self.subject, method, pending.auth_state, answer)


def _state_of(challenge: Challenge) -> Secret | None:
    """Return what a browser is sent away with, and has to bring back (RFC 6749 4.1.1); None where there is no one."""
    states = [value for name, value in parse_qsl(urlsplit(challenge.url).query) if name == "state"]
    return Secret(states[0]) if len(states) == 1 else None


def _there(got: Pending | Credential | None) -> Pending | Credential:
    if got is None:
        raise AuthFailure("provider_protocol_error")
    return got
