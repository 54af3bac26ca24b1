"""Custody in the user's login keyring, over the Secret Service of freedesktop desktops: the default on Linux (CLI-400).

That an item is durable once the service has acknowledged it is for the service to keep; here each is read back.
"""

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Literal, TypeVar

from headwater.connect.ports import CustodyState, Note, unnoted
from headwater.errors import HeadwaterError
from headwater.secret import Secret
from headwater.vault.login_keyring import LoginKeyring, is_locked
from headwater.vault.pinned import pinned, unpinned
from headwater.vault.probing import probe
from headwater.vault.refusals import attempt, fitting, missing, unavailable
from headwater.vault.session_bus import SessionBus, session_bus

T = TypeVar("T")


class SecretServiceCustody:
    """Keeps each version as one item. `socket` is the bus's, where it is not the user's usual one.

    Each call opens a connection of its own, and sends about ten messages; each is answered within two seconds.
    """

    read_only = False
    is_durable = False

    def __init__(self, socket: Path | None = None) -> None:
        self._socket = socket

    async def write_new(self, scope: str, material: Secret, note: Note = unnoted) -> str:
        """Store an item under a new version. A write that may have happened is `outcome_unknown`."""
        version, kept = pinned(fitting(material))
        note(version)
        await self._unlocked(lambda keyring: keyring.keep(scope, version, kept))
        return version

    async def read(self, scope: str, version: str) -> Secret:
        """Return the bytes of a version, as they were written."""
        kept = await self._unlocked(lambda keyring: keyring.find(scope, version))
        if kept is None:
            raise missing()
        return unpinned(version, kept)

    async def delete(self, scope: str, version: str) -> Literal["deleted", "missing"]:
        """Delete the item of a version."""
        return "deleted" if await self._unlocked(lambda keyring: keyring.erase(scope, version)) else "missing"

    async def probe(self) -> None:
        """Write, read back and erase something of no worth (INT-244)."""
        await probe(self)

    async def state(self) -> CustodyState:
        """Say whether the login keyring is there, and open."""
        try:
            return "locked" if await self._connected(is_locked) else "available"
        except HeadwaterError:
            return "unavailable"

    async def _unlocked(self, work: Callable[[LoginKeyring], T]) -> T:
        return await self._connected(lambda bus: work(LoginKeyring(bus)))

    async def _connected(self, work: Callable[[SessionBus], T]) -> T:
        """Do work on the bus, in a thread of its own: the library waits without a loop."""

        def going() -> T:
            with closing(session_bus(self._socket)) as bus:
                return work(bus)

        return await asyncio.to_thread(attempt, going, _unreachable())


def _unreachable() -> HeadwaterError:
    message = "The login keyring does not answer: its service or its login collection is absent, or too slow."
    return unavailable(message)
