"""Webhooks for real: an endpoint for each connection that wants one, and what a provider sends there.

A webhook is a hint. Once it is verified, the instance that it is for is collected as it would be at any other time;
what it says beyond whose it is changes nothing (INT-455).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headwater import clock, limits
from headwater.connect import looking
from headwater.errors import HeadwaterError, refuse
from headwater.joining.configured import configuration_of
from headwater.joining.connecting import Connecting
from headwater.joining.reaching import custody_of, hooks_of, integrations_of
from headwater.settings import Settings
from headwater.store.sqlite.webhooks import Endpoint, WebhookRecords

if TYPE_CHECKING:
    from headwater.configuration.selecting import Selection
    from headwater.connect.model import Connection, Target
    from headwater.connect.ports import Custody
    from headwater.manifest.auth import Method
    from headwater.secret import Secret

Shown = dict[str, Any]


class Webhooks:
    """The webhooks of one Headwater."""

    def __init__(self, settings: Settings, connecting: Connecting) -> None:
        self._settings = settings
        self._connecting = connecting

    def show(self, selection: Selection, reference: str | None = None) -> Shown:
        """Return where the webhooks of a connection come in, and how many did."""
        target, connection = self._connecting.live(selection, reference)
        for one in self._records.of(target.instance_id):
            if one.connection == connection.reference:
                return _shown(target, one)
        raise refuse("not_found", "The connection takes no webhooks.", next_action="none")

    async def make(self, selection: Selection, reference: str | None = None, secret: Secret | None = None) -> Shown:
        """Make the endpoint of a connection, in place of the one before.

        `secret` is the provider's; without it one is made, and told this once.
        """
        from headwater.vault.webhook_signatures import new_secret

        target, connection = self._connecting.live(selection, reference)
        if not self._declares(target):
            raise refuse("unsupported", "This integration takes no webhooks.", safe="Nothing was changed.")
        kept = new_secret() if secret is None else secret
        if not limits.WEBHOOK_SECRET_BYTES <= len(kept) <= limits.WEBHOOK_SECRET_MAX_BYTES:
            raise refuse("invalid_input", "The secret of a webhook has 16 to 512 bytes.", safe="Nothing was changed.")
        custody = self._custody()
        if custody.read_only:
            raise refuse("custody_read_only", safe="Nothing was changed.")
        await self.forget(target)
        await custody.probe()
        made = await self._add(custody, target, connection, kept)
        return {**_shown(target, made), **({"secret": kept.text()} if secret is None else {})}

    async def forget(self, target: Target) -> None:
        """Erase the endpoints of an instance with their secrets."""
        for one in self._records.of(target.instance_id):
            await self._custody().delete(one.endpoint, one.version)
            self._records.forget(one.endpoint)

    async def receive(self, endpoint: str, headers: Mapping[str, str], body: bytes) -> str | None:
        """Verify a webhook and return the instance to collect; None where it came before, or is of another account.

        Raise `not_found` where there is no such endpoint, `webhook_signature_invalid` before anything was done for it.
        """
        from headwater.connect.webhooks import delivery_of, is_for, no_endpoint, unsigned
        from headwater.vault.webhook_signatures import is_signed

        one, records, now = self._records.find(endpoint), self._records, clock.millis()
        if one is None:
            raise no_endpoint()
        target, connection, method = self._addressed(one)
        delivery = delivery_of(headers, now)
        secret = await self._custody().read(endpoint, one.version)
        if not is_signed(secret, delivery.content(body), delivery.signatures):
            raise unsigned()
        if not records.claim(endpoint, delivery.name, now, delivery.until_ms):
            records.count(endpoint, "repeated")
            return None
        try:
            told = await hooks_of(self._settings, target).webhook(method, headers, body)
            if told is None:
                raise unsigned()
        except BaseException:
            records.release(endpoint, delivery.name)  # the provider sends it again
            raise
        fits = is_for(connection.identity, told["account"])
        records.count(endpoint, "accepted" if fits else "dropped")
        return target.name if fits else None

    def _addressed(self, one: Endpoint) -> tuple[Target, Connection, Method]:
        """Return whose webhooks come in at an endpoint, as long as that connection is there and takes them."""
        from headwater.connect.webhooks import no_endpoint

        try:
            target, connection = self._connecting.live(self._connecting.addressed(one.connection), one.connection)
        except HeadwaterError as error:
            if error.code in ("not_found", "revoked"):
                raise no_endpoint() from None
            # Whoever sends it has proven nothing yet: what is wrong here is not told outside.
            raise refuse("unavailable", "Webhooks cannot be taken now.", safe="Nothing was done for it.") from error
        method = target.method(connection.profile)
        if method is None or not self._declares(target):
            raise no_endpoint()
        return target, connection, method

    def _declares(self, target: Target) -> bool:
        found = integrations_of(self._settings).all.get(target.connector)
        return found is not None and found.is_enabled and "webhooks" in found.integration.capabilities

    async def _add(self, custody: Custody, target: Target, connection: Connection, secret: Secret) -> Endpoint:
        """Keep a secret, noted before it is written, so that none is ever there that nobody knows of."""
        name, made_at = f"wh_{clock.token()}", clock.millis()
        noted: list[Endpoint] = []

        def note(version: str) -> None:
            noted.append(Endpoint(name, target.instance_id, connection.reference, version, made_at))
            self._records.add(noted[-1])

        try:
            await custody.write_new(name, secret, note)
        except HeadwaterError as error:
            if error.code == "custody_unavailable":
                self._records.forget(name)
            raise
        return noted[-1]

    def _custody(self) -> Custody:
        return custody_of(self._settings, configuration_of(self._settings))[0]

    @cached_property
    def _records(self) -> WebhookRecords:
        return WebhookRecords(self._settings.database_path, os.geteuid())


def _shown(target: Target, one: Endpoint) -> Shown:
    told = {"connection": one.connection, "endpoint": one.endpoint, "path": f"/v1/webhooks/{one.endpoint}"}
    counts = {"accepted": one.accepted, "repeated": one.repeated, "dropped": one.dropped}
    return {**looking.selectors(target), **told, "made_at_ms": one.made_at_ms, **counts}
