"""Connecting for real: the verb joined to configuration, catalog, custody, provider and store.

What only talking to a provider or to custody needs is imported when that begins: looking costs none of it.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headwater import clock, limits
from headwater.connect import looking
from headwater.connect.admission import admit_endpoint, method_for, selected
from headwater.connect.advice import advised
from headwater.errors import refuse
from headwater.joining.targets import Targets
from headwater.settings import Settings
from headwater.store.sqlite.connections import looked_at, opened
from headwater.store.sqlite.owner_records import OwnerRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headwater.configuration.model import Configuration
    from headwater.configuration.selecting import Selection
    from headwater.connect.acquiring import Acquired, Acquiring, Entering
    from headwater.connect.entries import Means
    from headwater.connect.issuing import Issued
    from headwater.connect.model import Connection, Target
    from headwater.connect.ports import Authenticator, Custody
    from headwater.connect.reading import Material
    from headwater.connect.refreshing import Refreshing
    from headwater.connect.using import Used, Using
    from headwater.connect.validating import Validating
    from headwater.secret import Secret
    from headwater.store.sqlite.connections import ConnectionRegistry
    from headwater.store.turns import ConnectionTurns

Shown = dict[str, Any]


class Connecting:
    """The accounts of one Headwater."""

    def __init__(self, settings: Settings, passphrase: Callable[[str], Secret] | None = None) -> None:
        self._settings = settings
        self._passphrase = passphrase
        self._targets = Targets(settings)

    # Looking: neither a provider nor custody is asked.

    def list_(self, selection: Selection, limit: int, cursor: str | None) -> Shown:
        """Return a page of an instance's connections, revoked ones too."""
        from headwater.connect.paging import after, place

        _, target = self._targets.held(selection)
        with looked_at(self._settings.database_path) as registry:
            epoch, now = registry.epoch(target.owner, target.instance_id), clock.millis()
            behind = "" if cursor is None else after(cursor, target, epoch, limit, now)
            found = registry.page(target.owner, target.instance_id, behind, limit + 1)
        page = looking.page_of(found[:limit], target, now)
        if len(found) > limit:
            page["next_cursor"] = place(found[limit - 1].reference, target, epoch, limit, now)
        return page

    def describe(self, selection: Selection, reference: str | None) -> Shown:
        """Return what is known of a connection."""
        _, target = self._targets.held(selection)
        with looked_at(self._settings.database_path) as registry:
            connection = selected(registry, target, reference)
        return {"connection": looking.description_of(connection, target, clock.millis())}

    def acquisition(self, selection: Selection, reference: str) -> Shown:
        """Return what became of an acquisition; nothing is repeated by looking (CLI-323)."""
        _, target = self._targets.held(selection)
        with looked_at(self._settings.database_path) as registry:
            found = registry.acquisition(target.owner, reference)
        if found is None or found.instance_id != target.instance_id:
            raise refuse("not_found", "There is no such acquisition at this instance.")
        return {"acquisition": looking.observation_of(found, clock.millis())}

    # Changing.

    async def connect(
        self, selection: Selection, *, means: Means, profile: str | None = None, endpoint: str | None = None
    ) -> Shown:
        """Connect an account to an instance."""
        with opened(self._settings.database_path) as registry:
            configuration, target = self._placed(registry, selection, profile, endpoint)
            with advised(registry, target):
                self._admit(configuration, target)
                acquiring, entering = self._acquiring(registry, configuration, target, means)
                done = await acquiring.connect(profile, entering)
        return self.connected(target, done)

    async def reconnect(
        self, selection: Selection, reference: str | None, expected_revision: str, *, means: Means
    ) -> Shown:
        """Replace the credential of a connection by another one of the same account."""
        configuration, target = self._targets.configured(selection)
        with opened(self._settings.database_path) as registry, advised(registry, target):
            acquiring, entering = self._acquiring(registry, configuration, target, means)
            done = await acquiring.reconnect(reference, expected_revision, entering)
        self._used(target)
        return _told(target, done)

    async def revalidate(self, selection: Selection, reference: str | None, expected_revision: str) -> Shown:
        """Ask the provider about a stored credential at once, and follow a changed configuration."""
        configuration, target = self._targets.configured(selection)
        with opened(self._settings.database_path) as registry, advised(registry, target):
            validating = self._validating(registry, configuration, target)
            connection = await validating.revalidate(reference, expected_revision)
        self._used(target)
        return {**looking.selectors(target), "connection": connection.reference}

    def revoke(self, selection: Selection, reference: str | None, expected_revision: str) -> Shown:
        """Revoke a connection on this machine, for good. No owner has to run, and nobody is asked (CLI-330 to 335)."""
        from headwater.connect.revoking import of_revocable, revoke

        configuration, target = self._targets.held(selection)
        with opened(self._settings.database_path) as registry, advised(registry, target):
            ids = {entry.instance_id for entry in configuration.entries}
            connection = of_revocable(registry, target, reference, ids)
            gone = revoke(registry, target, connection, expected_revision)
        told = {"connection": gone.reference, "revision": gone.revision}
        return {**looking.selectors(target), **told, "local_state": "revoked", "provider_outcome": "not_requested"}

    def connected(self, target: Target, done: Acquired) -> Shown:
        """Return what is told of a connection that was made: what its instance has collected is active again."""
        self._used(target).connected(target.instance_id)
        return _told(target, done)

    # For the owner, and for the common service.

    def material(self, registry: ConnectionRegistry, configuration: Configuration, target: Target) -> Material:
        """Return what reads the credentials of an instance from custody."""
        from headwater.connect.reading import Material
        from headwater.joining.reaching import custody_of

        custody, mounted = custody_of(self._settings, configuration, self._passphrase)
        return Material(registry, custody, mounted, target)

    def target(self, selection: Selection) -> Target:
        """Return the instance that is meant, or raise why there is none."""
        return self._targets.configured(selection)[1]

    def addressed(self, reference: str) -> Selection:
        """Return the instance of one of the owner's connections; any other reference is `not_found` (INT-473)."""
        with looked_at(self._settings.database_path) as registry:
            return self._targets.of(registry.find(os.geteuid(), reference))[0]

    def acted_on(self, reference: str, *, may_be_gone: bool = False) -> Selection:
        """Return the instance of a connection that something is done with.

        Raise `revoked` where the instance holds another connection by now, or none, unless this one `may_be_gone`.
        """
        with looked_at(self._settings.database_path) as registry:
            selection, target = self._targets.of(registry.find(os.geteuid(), reference))
            holds = [connection.reference for connection in registry.held(target.owner, target.instance_id)]
        if reference in holds or (may_be_gone and not holds):
            return selection
        raise refuse("revoked", next_action="none" if holds else None, safe="Nothing was changed.")

    def live(self, selection: Selection, reference: str | None) -> tuple[Target, Connection]:
        """Return a connection that is not revoked, with its instance."""
        _, target = self._targets.configured(selection)
        with looked_at(self._settings.database_path) as registry:
            connection = selected(registry, target, reference)
        if connection.lifecycle == "revoked":
            raise refuse("revoked", safe="Nothing was changed.")
        return target, connection

    def disconnecting(
        self, registry: ConnectionRegistry, selection: Selection
    ) -> tuple[Custody, Authenticator, Material, Target]:
        """Return what disconnecting an instance needs."""
        from headwater.joining.reaching import authenticator_of

        configuration, target = self._targets.configured(selection)
        material = self.material(registry, configuration, target)
        return material.custody, authenticator_of(self._settings, target), material, target

    # The door.

    async def may_answer(self, name: str, *, asked: bool) -> bool:
        """Whether an instance's connection answers for its credential; raise where it has one that cannot be used.

        One that was revoked answers nothing: a person may, where one is `asked`, and else it is told that it was.
        """
        if await self.credential_for(name) is not None:
            return True
        if not asked and self._was_connected(name):
            command = f"headwater connections connect {name} --credential-prompt"
            message = "The instance's connection was revoked."
            raise refuse("revoked", message, safe="Nothing was started.", command=command)
        return False

    def is_connected(self, name: str) -> bool:
        """Whether an instance has a connection that looks usable; nobody is asked.

        Raise the refusal of one whose credential has to be replaced first.
        """
        from headwater.connect.refusals import needs_reconnect
        from headwater.connect.state import needs_another_credential

        found = self._targets.known(name)
        if found is None or not self._settings.database_path.exists():
            return False
        target = found[1]
        with looked_at(self._settings.database_path) as registry, advised(registry, target):
            held = registry.held(target.owner, target.instance_id)
            if any(needs_another_credential(connection, clock.millis()) for connection in held):
                raise needs_reconnect()
        return bool(held)

    async def credential_for(self, name: str) -> Used | None:
        """Return the credential of an instance, for a read; None where it is not connected, or is not configured.

        Raise the refusal of a connection that cannot be used as it is: nothing takes its place.
        """
        found = self._targets.known(name)
        if found is None or not self._settings.database_path.exists():
            return None
        configuration, target = found
        with looked_at(self._settings.database_path) as registry:
            if not registry.held(target.owner, target.instance_id):
                return None
        with opened(self._settings.database_path) as registry, advised(registry, target):
            connection = selected(registry, target, None)
            return await self.using(registry, configuration, target).use(connection, limits.VALIDATION_SECONDS)

    def using(self, registry: ConnectionRegistry, configuration: Configuration, target: Target) -> Using:
        """Return what hands out the credentials of an instance for reads."""
        from headwater.connect.using import Using

        return Using(self._validating(registry, configuration, target))

    async def access_token(self, selection: Selection, reference: str | None) -> Issued:
        """Return the access token of a connection that was made by consent, renewed where it is due (CLI-871)."""
        from headwater.connect.issuing import Issuing

        configuration, target = self._targets.configured(selection)
        with opened(self._settings.database_path) as registry:
            connection = selected(registry, target, reference)
            return await Issuing(self._refreshing(registry, configuration, target), self._turns).issue(connection)

    def _was_connected(self, name: str) -> bool:
        found = self._targets.known(name)
        if found is None:
            return False
        with looked_at(self._settings.database_path) as registry:
            return bool(registry.page(found[1].owner, found[1].instance_id, "", 1))

    def mark_refused(self, used: Used) -> None:
        """Note that a provider no longer accepts a credential that was handed out; a newer one is not meant."""
        from headwater.connect.using import refused

        with opened(self._settings.database_path) as registry:
            refused(registry, used.connection)

    # Joining.

    def _used(self, target: Target) -> OwnerRecords:
        """Note that an instance which was stopped is used again, by name (CLI-814)."""
        records = OwnerRecords(self._settings.database_path, target.owner)
        if records.is_suppressed(target.instance_id):
            records.suppress(target.instance_id, suppressed=False)
        return records

    def _placed(
        self, registry: ConnectionRegistry, selection: Selection, profile: str | None, endpoint: str | None
    ) -> tuple[Configuration, Target]:
        def admit(target: Target) -> None:
            admit_endpoint(registry, target)
            if not registry.held(target.owner, target.instance_id):
                method_for(target, profile)  # an endpoint stays for good: it is not written by a command that is wrong

        if endpoint is None:
            return self._targets.configured(selection)
        return self._targets.placed(selection, endpoint, admit)

    def _admit(self, configuration: Configuration, target: Target) -> None:
        """Refuse an integration that the operator has not enabled, or that is not in order (INT-106).

        A definition that a person named was read for it, and is no integration of this machine. Neither is one of a
        release that an instance opted in to, where no connector of this machine has its name.
        """
        from headwater.joining.reaching import integrations_of

        entry = configuration.find(target.connector, target.instance)
        if not target.methods or (entry is not None and entry.definition is not None):
            return
        integrations = integrations_of(self._settings)
        if self._targets.release_of(target.name) is None or target.connector in integrations.all:
            integrations.usable(target.connector)

    @contextmanager
    def acquiring(self, selection: Selection) -> Iterator[Acquiring]:
        """Open what connects and reconnects an instance. Raise `custody_read_only` where its credential is mounted."""
        from headwater.connect.acquiring import Acquiring
        from headwater.joining.reaching import authenticator_of, custody_of

        configuration, target = self._targets.configured(selection)
        self._admit(configuration, target)
        custody, mounted = custody_of(self._settings, configuration, self._passphrase)
        if mounted is not None:
            raise refuse("custody_read_only", safe="Nothing was sent.")
        with opened(self._settings.database_path) as registry:
            yield Acquiring(registry, custody, authenticator_of(self._settings, target), self._turns, target)

    def _acquiring(
        self, registry: ConnectionRegistry, configuration: Configuration, target: Target, means: Means
    ) -> tuple[Acquiring, Entering]:
        from headwater.connect.acquiring import Acquiring
        from headwater.joining.reaching import authenticator_of, custody_of, entering_by

        custody, mounted = custody_of(self._settings, configuration, self._passphrase)
        authenticator = authenticator_of(self._settings, target)
        entering = entering_by(self._settings, target, authenticator, (custody, mounted), means)
        return Acquiring(registry, custody, authenticator, self._turns, target), entering

    def _validating(self, registry: ConnectionRegistry, configuration: Configuration, target: Target) -> Validating:
        from headwater.connect.validating import Validating

        refreshing = self._refreshing(registry, configuration, target)
        parts = (registry, refreshing.authenticator, self._turns, target, refreshing.material)
        return Validating(*parts, refreshing=refreshing)

    def _refreshing(self, registry: ConnectionRegistry, configuration: Configuration, target: Target) -> Refreshing:
        from headwater.connect.refreshing import Refreshing
        from headwater.joining.reaching import authenticator_of
        from headwater.store.sqlite.signing_in import SignInStore

        exchanges, material = SignInStore(self._settings.database_path), self.material(registry, configuration, target)
        authenticator = authenticator_of(self._settings, target)
        return Refreshing(registry, material.custody, authenticator, exchanges, material, target)

    @cached_property
    def _turns(self) -> ConnectionTurns:
        from headwater.store.turns import ConnectionTurns

        return ConnectionTurns(self._settings.locks_dir / "connections")


def _told(target: Target, done: Acquired) -> Shown:
    told = {"connection": done.connection.reference, "acquisition": done.acquisition}
    return {**looking.selectors(target), **told}
