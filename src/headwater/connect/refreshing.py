"""Renewing a credential before it expires: by one party at a time, durable before it is used (INT-260 to INT-266).

The exchange of one generation is noted before anything is sent. What custody keeps of the answer is noted before it is
published, so that whoever comes next publishes it, and asks the provider nothing. An exchange whose answer is lost is
not repeated where the provider may have used up what was sent with it.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from headwater import clock
from headwater.connect.envelope import Credential, Envelope, sealed
from headwater.connect.failures import AuthFailure
from headwater.connect.lifetime import can_refresh, has_expired, is_due, is_repeatable
from headwater.connect.model import Acquisition, Check, Connection, Found, Target
from headwater.connect.ports import Authenticator, Custody, Note, Registry
from headwater.connect.reading import Held, Material
from headwater.errors import refuse
from headwater.manifest.auth import Method

T = TypeVar("T")

Outcome = Literal[
    "reauthorization_required", "insufficient_scope", "revoked", "invalid_or_revoked", "unreached", "uncertain"
]
"""Why a credential was not renewed. After `unreached` the old one is as it was, and it may be tried again."""


class NotRefreshed(Exception):
    """A credential that is due was not renewed. `failure` is the provider's, where there was one."""

    def __init__(self, outcome: Outcome, failure: AuthFailure | None = None) -> None:
        super().__init__(outcome)
        self.outcome: Outcome = outcome
        self.failure = failure


class Exchange(NamedTuple):
    """Where the exchange of one generation stands: `sent`, perhaps; in custody as `version`; or nobody knows."""

    state: Literal["sent", "stored", "uncertain"]
    version: str | None = None


class Exchanges(Protocol):
    """The exchanges that are not over, by connection and generation, for all processes of the owner."""

    def find(self, connection: str, generation: int) -> Exchange | None:
        """Return how one stands, None where nothing was sent."""
        ...

    def put(self, connection: str, generation: int, exchange: Exchange) -> None:
        """Note durably how one stands now."""
        ...

    def forget(self, connection: str, generation: int) -> None:
        """Forget the exchanges up to a generation: they are over, or never began."""
        ...


@dataclass(frozen=True)
class Refreshing:
    """Renews the credential of one instance's connection. The caller holds the turn of the instance."""

    registry: Registry
    custody: Custody
    authenticator: Authenticator
    exchanges: Exchanges
    material: Material
    target: Target

    async def refreshed(
        self, connection: Connection, method: Method, held: Held, *, at_once: bool = False
    ) -> tuple[Connection, Held]:
        """Return a connection and its credential, renewed where it is due. Raise `NotRefreshed`.

        What is left of the old one serves where the provider cannot renew it now, unless it has to be `at_once`.
        """
        if not is_due(held.credential, clock.now()):
            return connection, held
        if not can_refresh(self.target, method, held.credential):
            return self._as_it_is(connection, held)
        exchange = self.exchanges.find(connection.reference, connection.generation)
        if exchange is not None and exchange.version is not None:
            return await self._published(connection, method, exchange.version)
        if exchange is not None and not is_repeatable(method):
            raise self._ended(connection, "uncertain", "uncertain")
        return await _to_its_end(self._renewed(connection, method, held, at_once))

    async def _renewed(
        self, connection: Connection, method: Method, held: Held, at_once: bool
    ) -> tuple[Connection, Held]:
        try:
            return await self._exchanged(connection, method, held)
        except AuthFailure as failure:
            if _passes(method, failure):
                self.exchanges.forget(connection.reference, connection.generation)
                if at_once or has_expired(held.credential, clock.now()):
                    raise NotRefreshed("unreached", failure) from None
                return connection, held
            return await self._failed(connection, method, failure)

    def _as_it_is(self, connection: Connection, held: Held) -> tuple[Connection, Held]:
        if has_expired(held.credential, clock.now()):
            raise NotRefreshed("reauthorization_required")
        return connection, held

    async def _exchanged(self, connection: Connection, method: Method, held: Held) -> tuple[Connection, Held]:
        await self.custody.probe()
        self.exchanges.put(connection.reference, connection.generation, Exchange("sent"))
        envelope = await self.authenticator.refresh(method, held.credential)
        self._check(connection, method, envelope)
        credential = Credential(envelope, held.credential.fields)
        version = await self.custody.write_new(connection.reference, sealed(credential), self._noting(connection))
        self.exchanges.put(connection.reference, connection.generation, Exchange("stored", version))
        return await self._published(connection, method, version)

    def _noting(self, connection: Connection) -> Note:
        return lambda version: self.registry.note_candidate(_renewal(connection), version, clock.millis())

    def _check(self, connection: Connection, method: Method, envelope: Envelope) -> None:
        """Refuse what is another account's, or may do less than is needed; the old credential is kept (INT-266)."""
        account, needed = envelope.account, () if method.oauth is None else method.oauth.minimum_scopes
        whose = connection.identity
        if account is not None and (account.kind, account.id) != (whose.kind, whose.subject):
            raise AuthFailure("account_mismatch")
        if envelope.scopes is not None and not set(needed) <= set(envelope.scopes):
            raise AuthFailure("insufficient_scope")

    async def _published(self, connection: Connection, method: Method, version: str) -> tuple[Connection, Held]:
        """Link a connection to a version that is in custody; nothing uses it before."""
        held = await self.material.read(method, replace(connection, version=version))
        envelope = held.credential.envelope
        evidence = replace(connection.evidence, scopes=envelope.scopes or connection.evidence.scopes)
        after = replace(connection, version=version, generation=connection.generation + 1, evidence=evidence)
        if not self.registry.publish(connection, after, clock.millis()):
            now = self.registry.find(connection.owner, connection.reference)
            if now is None or now.lifecycle == "revoked":
                raise refuse("revoked", "The connection was revoked meanwhile.")
            raise refuse("lifecycle_conflict", "The connection changed meanwhile.", stage="publication")
        self.exchanges.forget(connection.reference, connection.generation)
        return replace(after, fence=connection.fence + 1), held

    async def _failed(self, connection: Connection, method: Method, failure: AuthFailure) -> tuple[Connection, Held]:
        if failure.code == "credential_invalid":
            self.exchanges.forget(connection.reference, connection.generation)
            return await self._reread(connection, method, failure)
        self.exchanges.put(connection.reference, connection.generation, Exchange("uncertain"))
        if failure.code in ("insufficient_scope", "account_mismatch"):
            raise NotRefreshed("insufficient_scope", failure)
        raise self._ended(connection, "uncertain", "uncertain", failure)

    async def _reread(self, connection: Connection, method: Method, failure: AuthFailure) -> tuple[Connection, Held]:
        """Look once for a newer version before a refresh token is taken for dead (INT-264)."""
        now = self.registry.find(connection.owner, connection.reference)
        if now is not None and now.lifecycle == "live" and now.generation > connection.generation:
            return now, await self.material.read(method, now)
        raise self._ended(connection, "revoked" if failure.revoked else "invalid_or_revoked", "invalid", failure)

    def _ended(
        self, connection: Connection, outcome: Outcome, found: Found, failure: AuthFailure | None = None
    ) -> NotRefreshed:
        """Cut a connection off that nothing but a reconnect makes good again."""
        check: Check = "credential_valid"
        evidence = replace(connection.evidence, checks={**connection.evidence.checks, check: found})
        self.registry.publish(connection, replace(connection, lifecycle="stale", evidence=evidence), clock.millis())
        return NotRefreshed(outcome, failure)


async def _to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Await work that a deadline or an interruption of the caller does not break off: what was sent is also kept."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        task.exception()  # whatever it is, the caller is told that it was too late
        raise


def _passes(method: Method, failure: AuthFailure) -> bool:
    """Whether nothing was used up, so that asking again later may help. A hook out of time may have sent something."""
    if is_repeatable(method):
        return failure.is_transient or failure.code == "exchange_unknown"
    return failure.is_transient and not (failure.code == "provider_timeout" and method.scheme == "hooks")


def _renewal(connection: Connection) -> Acquisition:
    """Return what a version in custody is noted for, so that it is erased in time if it is not published."""
    owner, instance = connection.owner, connection.instance_id
    revision, generation = connection.binding.configuration_revision, connection.generation
    return Acquisition("", owner, owner, owner, instance, connection.reference, revision, generation, 0)
