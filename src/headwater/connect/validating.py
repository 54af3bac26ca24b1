"""Asking a provider again about a credential that is in custody, and what its answer does to the connection.

One at a time at an instance, from the probe to what is published of it (CLI-451, CLI-489).
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from headwater import clock, limits
from headwater.connect.admission import admit_change, admit_use, selected
from headwater.connect.changes import Standing, binding_of, standing_of
from headwater.connect.evidence import evidence_of, identity_of, scopes_suffice
from headwater.connect.failures import AuthFailure
from headwater.connect.lifetime import is_due
from headwater.connect.model import Check, Connection, Found, Target
from headwater.connect.ports import Authenticator, Probed, Registry, Turns
from headwater.connect.reading import Held, Material
from headwater.connect.refresh_refusals import of_read
from headwater.connect.refreshing import NotRefreshed, Refreshing
from headwater.connect.refusals import During, anew, another_account, below_scopes, needs_reconnect, refusal_of
from headwater.connect.retries import pause_after
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.auth import Method

_UPGRADES: Final = frozenset({"followable", "refused"})


@dataclass(frozen=True)
class Validating:
    """Checks the connections of one instance. `refreshing` is None where credentials are only read."""

    registry: Registry
    authenticator: Authenticator
    turns: Turns
    target: Target
    material: Material
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    refreshing: Refreshing | None = None

    async def revalidate(self, reference: str | None, expected_revision: str) -> Connection:
        """Check a connection at once, and bring it along to the configuration of now (CLI-481 to 487).

        A mounted item that holds other bytes than before is pinned anew.
        """
        connection = selected(self.registry, self.target, reference)
        admit_change(connection, self.target, expected_revision)
        admit_use(connection, self.target, clock.millis(), also=("followable", "refused"))
        if connection.lifecycle == "stale":
            raise needs_reconnect()
        try:
            async with asyncio.timeout(limits.VALIDATION_SECONDS), self.turns.publishing(self.target.instance_id):
                return await self._check(self.again(connection), "validation")
        except TimeoutError:
            raise refuse("timeout", "The check was not over in time.", safe="The connection is as it was.") from None

    async def recheck(self, connection: Connection) -> Connection:
        """Check a connection once, before something is read with it; another process may have done so meanwhile."""
        async with self.turns.publishing(self.target.instance_id):
            now = self.again(connection)
            if now.evidence.collected_at_ms > connection.evidence.collected_at_ms:
                return now
            return await self._check(now, "read")

    async def current(self, method: Method, connection: Connection) -> tuple[Connection, Held]:
        """Return a connection with its credential; one that is due is renewed first, when it is our turn."""
        held = await self.material.read(method, connection)
        if not is_due(held.credential, clock.now()):
            return connection, held
        async with self.turns.publishing(self.target.instance_id):
            return await self._renewed(self.again(connection), method, "read")

    async def _renewed(self, connection: Connection, method: Method, during: During) -> tuple[Connection, Held]:
        held = await self.material.read(method, connection, repin=during == "validation")
        if self.refreshing is None:
            return connection, held
        try:
            return await self.refreshing.refreshed(connection, method, held)
        except NotRefreshed as error:
            raise of_read(error) from None

    def again(self, connection: Connection) -> Connection:
        """Return a connection as it is now that it is our turn."""
        now = self.registry.find(connection.owner, connection.reference)
        if now is None or now.lifecycle == "revoked":
            raise refuse("revoked")
        if now.lifecycle == "stale":
            raise needs_reconnect()
        return now

    async def _check(self, connection: Connection, during: During) -> Connection:
        standing = standing_of(connection, self.target, clock.millis())
        method = self.target.method(connection.profile)
        assert method is not None, "a method that is not declared is admitted nowhere"
        connection, held = await self._renewed(connection, method, during)
        probed = await self._probed(method, connection, standing, held, during)
        if not connection.identity.is_same(identity_of(probed)):
            raise self._cut_off(connection, standing, "identity_check", "invalid", another_account())
        if not scopes_suffice(method, held.credential, probed):
            raise self._cut_off(connection, standing, "scope_check", "insufficient", below_scopes("repair_connection"))
        return self._publish(connection, standing, method, held, probed)

    async def _probed(
        self, method: Method, connection: Connection, standing: Standing, held: Held, during: During
    ) -> Probed:
        until = clock.monotonic() + limits.VALIDATION_SECONDS
        attempt = 0
        while True:
            began, attempt = clock.monotonic(), attempt + 1
            try:
                return await self.authenticator.probe(method, held.credential)
            except AuthFailure as failure:
                now = clock.monotonic()
                transient = failure.is_transient and during == "validation"
                pause = pause_after(attempt, transient=transient, last_seconds=now - began, left_seconds=until - now)
                if pause is None:
                    raise self._failed(connection, standing, failure, during, attempt) from None
            await self.pause(pause)

    def _failed(
        self, connection: Connection, standing: Standing, failure: AuthFailure, during: During, attempts: int
    ) -> HeadwaterError:
        refusal = refusal_of(failure, during, attempts=attempts if during == "validation" else None)
        if failure.code != "credential_invalid":
            return refusal
        return self._cut_off(connection, standing, "credential_valid", "invalid", refusal)

    def _cut_off(
        self, connection: Connection, standing: Standing, check: Check, found: Found, refusal: HeadwaterError
    ) -> HeadwaterError:
        """Note what a definite refusal means for a connection, and return what is answered (CLI-456, 466, 476).

        One that was tried under another configuration stays good for its own, and the refusal is remembered. Another
        account behind another executable says nothing of the credential.
        """
        if standing in _UPGRADES:
            refused = self.target.configuration_revision
            self._write(connection, replace(connection, refused_configuration_revision=refused))
            return anew(refusal)
        if (standing, check) != ("other_executable", "identity_check"):
            evidence = replace(connection.evidence, checks={**connection.evidence.checks, check: found})
            self._write(connection, replace(connection, lifecycle="stale", evidence=evidence))
        return refusal

    def _publish(
        self, connection: Connection, standing: Standing, method: Method, held: Held, probed: Probed
    ) -> Connection:
        """Publish new evidence under the same credential; only a change that was followed moves the revision."""
        now = clock.millis()
        after = replace(
            connection,
            binding=binding_of(self.target, method),
            identity=identity_of(probed),
            version=held.version,
            evidence=evidence_of(self.target, method, held.credential, probed, now),
            revision=connection.revision + (standing in _UPGRADES),
            generation=connection.generation + (held.version != connection.version),
            refused_configuration_revision=None,
        )
        return self._write(connection, after)

    def _write(self, before: Connection, after: Connection) -> Connection:
        if not self.registry.publish(before, after, clock.millis()):
            now = self.registry.find(before.owner, before.reference)
            if now is not None and now.lifecycle == "revoked":
                raise refuse("revoked", "The connection was revoked meanwhile.")
            raise refuse("revision_conflict", "The connection changed meanwhile.", safe="Nothing was published.")
        return replace(after, fence=before.fence + 1)
