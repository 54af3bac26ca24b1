"""What an owner hands out of custody: an access token, and what a consumer is started with.

It alone reads the credential, and no adapter is started for either.
"""

import asyncio
import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from headwater import clock, limits
from headwater.configuration.model import Executable
from headwater.configuration.selecting import Selection
from headwater.connect.admission import selected
from headwater.connect.launching import admit_consumer, admit_launch, document_of
from headwater.connect.looking import selectors
from headwater.connect.model import Target
from headwater.connect.ports import Registry
from headwater.errors import HeadwaterError, refuse
from headwater.host import Host
from headwater.joining.targets import Targets
from headwater.link.unix import Handed
from headwater.owner.served import check_configuration
from headwater.process import sealed
from headwater.store.sqlite.connections import opened
from headwater.store.sqlite.owner_records import Delivery, OwnerRecords

Asked = Mapping[str, Any]


class Handing:
    """Hands out what the owner's configuration permits, one question at a time of each client."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._copying = asyncio.Semaphore(limits.CONSUMERS_STARTING)

    async def token(self, asked: Asked) -> Mapping[str, Any]:
        """Hand out an access token, and record that once it is certain (CLI-870). It crosses only to be revealed."""
        check_configuration(self._host.settings, asked)
        selection, reveal = Selection(*asked["selection"]), asked["reveal"]
        try:
            async with asyncio.timeout(limits.TOKEN_SECONDS):
                issued = await self._host.connecting.access_token(selection, asked["connection"])
        except TimeoutError:
            raise refuse("timeout", stage="dispatch", safe="What was renewed meanwhile is kept.") from None
        _, target = Targets(self._host.settings).configured(selection)
        records = OwnerRecords(self._host.settings.database_path, target.owner)
        delivery: Delivery = "revealed" if reveal else "metadata_only"
        connection = issued.connection.reference
        told = {
            **selectors(target),
            "connection": connection,
            "scopes": list(issued.scopes),
            "refreshed": issued.refreshed,
            "issue": records.note_issue(connection, delivery, refreshed=issued.refreshed),
        }
        if issued.expires_at is not None:
            told["expires_at"] = clock.text(issued.expires_at)
        return {"issued": told, "access_token": issued.access_token.text() if reveal else None}

    async def launch(self, asked: Asked) -> Handed:
        """Hand over a sealed copy of a consumer's program, and the document that it reads, in this order (CLI-856)."""
        check_configuration(self._host.settings, asked)
        settings, reference = self._host.settings, asked["connection"]
        configuration, target = Targets(settings).configured(Selection(*asked["selection"]))
        consumer = configuration.consumers.get(asked["consumer"])
        if consumer is None:
            raise refuse("not_found", "The configuration has no such consumer.", safe="Nothing was started.")
        with ExitStack() as open_, opened(settings.database_path) as registry:
            admit_consumer(consumer.connections, target, _profile(registry, target, reference))
            program = await self._copied(consumer.executable)
            open_.callback(os.close, program)
            connection = selected(registry, target, reference)
            method = admit_launch(connection, target, clock.millis())
            material = self._host.connecting.material(registry, configuration, target)
            held = await material.read(method, connection)
            now = selected(registry, target, connection.reference)  # which may have been revoked meanwhile
            admit_launch(now, target, clock.millis())
            document = sealed.document(document_of(connection, target, method, held.credential))
            open_.pop_all()
        told = {"arguments": consumer.executable.args, "pass_env": consumer.pass_env}
        return Handed(told, (program, document))

    async def _copied(self, executable: Executable) -> int:
        if not sealed.is_here():
            raise refuse("unsupported", "This system has no memory that can be sealed.", stage="launch")
        async with self._copying:
            try:
                return await asyncio.to_thread(sealed.program, executable.path, executable.sha256)
            except (OSError, ValueError):
                pass
        message = "The consumer's program is not there, or is not the one that the configuration pins."
        raise refuse("invalid_configuration", message, safe="Nothing was started.", command="headwater setup check")


def _profile(registry: Registry, target: Target, reference: str | None) -> str | None:
    """Return the profile that a credential would be of; that there is none is told later (CLI-856)."""
    try:
        return selected(registry, target, reference).profile
    except HeadwaterError:
        return target.profile
