"""Getting a credential: a new connection, or another credential for one that is there.

In this order, and nothing is usable before its last step: admitted, the place of the credentials tried, noted, entered,
consumed, exchanged, the account asked for, put in custody, published (CLI-380).
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from msgspec.structs import replace

from headwater import clock, limits
from headwater.connect import admission
from headwater.connect.changes import binding_of
from headwater.connect.envelope import Credential
from headwater.connect.evidence import evidence_of, identity_of, scopes_suffice
from headwater.connect.failures import AuthFailure
from headwater.connect.model import Acquisition, AcquisitionFailure, Connection, Target
from headwater.connect.ports import Authenticator, Custody, Entry, Note, Probed, Registry, Turns
from headwater.connect.refusals import (
    another_account,
    another_than_source,
    below_scopes,
    reason_of,
    refusal_of,
    source_changed,
)
from headwater.connect.retention import erase_old
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.auth import Method

Entering = Callable[[Method], Entry]
"""Chooses how a credential is entered, or refuses where there is no safe way."""


@dataclass(frozen=True)
class Acquired:
    """A connection that was made or renewed, and the acquisition that did it."""

    connection: Connection
    acquisition: str


@dataclass(frozen=True)
class Acquiring:
    """Connects and reconnects one instance; each time may take so many seconds.

    `source` is the connection of another instance whose credential is copied: the provider has to answer the same
    account, and the connection to be what it was when the copy is published (CLI-1087).
    """

    registry: Registry
    custody: Custody
    authenticator: Authenticator
    turns: Turns
    target: Target
    source: Connection | None = None
    seconds: int = limits.ACQUISITION_SECONDS

    def connectable(self, profile: str | None) -> Method:
        """Return how a connection would be made, or refuse to make one."""
        self._admit()
        return admission.method_for(self.target, profile)

    def renewable(self, reference: str | None, expected_revision: str) -> tuple[Connection, Method]:
        """Return a connection whose credential may be replaced, and how, or refuse that."""
        connection = admission.selected(self.registry, self.target, reference)
        admission.admit_change(connection, self.target, expected_revision)
        admission.admit_use(connection, self.target, clock.millis())
        return connection, admission.method_for(self.target, connection.profile)

    async def connect(self, profile: str | None, entering: Entering) -> Acquired:
        """Make the instance's connection. What it holds already is told before a source is chosen (CLI-347)."""
        target = self.target
        self._admit()
        with self.turns.connecting(target.instance_id) as alone:
            self._admit()
            if not alone:
                raise admission.in_flight(self.registry.open_connect(target.owner, target.instance_id, clock.millis()))
            method = admission.method_for(target, profile)
            return await self._acquire(method, entering(method), clock.identifier("connection"), None)

    def _admit(self) -> None:
        held = self.registry.held(self.target.owner, self.target.instance_id)
        admission.admit_connect(held, self.target, clock.millis())

    async def reconnect(self, reference: str | None, expected_revision: str, entering: Entering) -> Acquired:
        """Replace the credential of a connection by another one of the same account."""
        connection, method = self.renewable(reference, expected_revision)
        return await self._acquire(method, entering(method), connection.reference, connection)

    async def _acquire(self, method: Method, entry: Entry, reference: str, before: Connection | None) -> Acquired:
        await self.custody.probe()
        acquisition = Acquisition(
            clock.identifier("acquisition"),
            self.target.owner,
            self.target.owner,
            self.target.owner,
            self.target.instance_id,
            reference,
            self.target.configuration_revision,
            0 if before is None else before.generation,
            clock.millis() + self.seconds * 1000,
        )
        self.registry.begin(acquisition)
        try:
            async with asyncio.timeout(self.seconds):
                done = await self._complete(acquisition, method, entry, before)
        except AuthFailure as failure:
            self._end(acquisition, reason_of(failure))
            raise refusal_of(failure, "acquisition", acquisition=acquisition.reference) from None
        except TimeoutError:
            self._end(acquisition, "expired")
            raise _too_late(acquisition) from None
        except BaseException as error:
            is_late = isinstance(error, HeadwaterError) and error.code == "timeout"
            self._end(acquisition, "expired" if is_late else "rejected")
            raise
        await erase_old(self.registry, self.custody, self.target.owner)  # no deadline cuts what is published
        return done

    def _end(self, acquisition: Acquisition, reason: AcquisitionFailure) -> None:
        """End an acquisition that is still open. What ended it is told, also where the database cannot be written."""
        with suppress(HeadwaterError):
            self.registry.fail(acquisition, reason, clock.millis())

    async def _complete(
        self, acquisition: Acquisition, method: Method, entry: Entry, before: Connection | None
    ) -> Acquired:
        fields = await entry.fields(method, acquisition.connection)
        if not self.registry.consume(acquisition, clock.millis()):
            raise TimeoutError
        credential = await entry.sign_in(method, fields)
        async with self.turns.publishing(self.target.instance_id):
            probed = await self.authenticator.probe(method, credential)
            self._check(acquisition, method, credential, probed, before)
            version = await entry.keep(acquisition.connection, credential, self._noting(acquisition))
            connection = self._publish(acquisition, method, credential, probed, version)
        return Acquired(connection, acquisition.reference)

    def _noting(self, acquisition: Acquisition) -> Note:
        return lambda version: self.registry.note_candidate(acquisition, version, clock.millis())

    def _check(
        self,
        acquisition: Acquisition,
        method: Method,
        credential: Credential,
        probed: Probed,
        before: Connection | None,
    ) -> None:
        """Refuse a credential of too few scopes or of another account before it is kept (INT-197, INT-245)."""
        if not scopes_suffice(method, credential, probed):
            raise below_scopes()
        found = identity_of(probed)
        if before is not None and not before.identity.is_same(found):
            raise another_account()
        if self.source is not None and not self.source.identity.is_same(found):
            raise another_than_source(acquisition.reference)

    def _publish(
        self, acquisition: Acquisition, method: Method, credential: Credential, probed: Probed, version: str
    ) -> Connection:
        """Publish what was acquired, over what stands there now (CLI-333, CLI-340)."""
        before = self.registry.find(acquisition.owner, acquisition.connection)
        if acquisition.renews and (before is None or before.generation != acquisition.generation):
            raise _overtaken(before)
        now = clock.millis()
        after = Connection(
            acquisition.connection,
            acquisition.owner,
            acquisition.instance_id,
            self.target.connector,
            self.target.instance,
            method.key,
            binding_of(self.target, method),
            identity_of(probed),
            version,
            evidence_of(self.target, method, credential, probed, now),
        )
        if before is not None:
            fence, generation = before.fence + 1, before.generation + 1
            after = replace(after, revision=before.revision, fence=fence, generation=generation)
        if not self.registry.publish(before, after, now, acquisition, source=self.source):
            raise self._prevented(acquisition)
        return after

    def _prevented(self, acquisition: Acquisition) -> HeadwaterError:
        """Return why what was acquired was not published."""
        source = self.source
        if source is not None:
            now = self.registry.find(source.owner, source.reference)
            if now is None or now.fence != source.fence:
                return source_changed(now, acquisition.reference)
        return _overtaken(self.registry.find(acquisition.owner, acquisition.connection))


def _too_late(acquisition: Acquisition) -> HeadwaterError:
    message = "The credential was not entered and accepted in time."
    return refuse("timeout", message, stage="dispatch", safe="Nothing was stored.", acquisition=acquisition.reference)


def _overtaken(now: Connection | None) -> HeadwaterError:
    if now is not None and now.lifecycle == "revoked":
        return refuse("revoked", "The connection was revoked meanwhile.", safe="Nothing was published.")
    message = "Something else changed the instance's connection meanwhile."
    return refuse("lifecycle_conflict", message, stage="publication", safe="Nothing was published.")
