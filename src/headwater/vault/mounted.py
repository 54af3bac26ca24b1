"""Custody in a folder that the platform mounts, as a container's secrets are. Nothing is written there (CLI-405)."""

import asyncio
import re
from hashlib import sha256
from pathlib import Path
from typing import Literal, NoReturn

from headwater import limits
from headwater.connect.ports import CustodyState, Note, unnoted
from headwater.errors import HeadwaterError, refuse
from headwater.owned import folder, read_at
from headwater.secret import Secret
from headwater.vault.refusals import attempt, missing, unavailable

_NAME = r"(?!\.\.?(?:/|$))[A-Za-z0-9._-]{1,128}"
_ITEM = re.compile(f"{_NAME}(?:/{_NAME}){{1,2}}")


class MountedCustody:
    """Reads the items `<alias>/<profile>` of one folder. A version is an item with the digest of its bytes.

    The digest covers the connection too: a version that another connection pinned cannot be read.
    """

    read_only = True
    is_durable = True

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def state(self) -> CustodyState:
        """Say whether the folder can be read."""
        try:
            await self.probe()
        except HeadwaterError:
            return "unavailable"
        return "available"

    async def pin(self, scope: str, item: str) -> tuple[str, Secret]:
        """Return the version of what an item holds now, and its bytes: what connecting and revalidating do."""
        material = await asyncio.to_thread(self._item, item)
        return f"{item}@{_digest(scope, material)}", material

    async def read(self, scope: str, version: str) -> Secret:
        """Return the bytes that a version pinned; raise `custody_unavailable` where the item has others (CLI-408)."""
        item, _, digest = version.rpartition("@")
        material = await asyncio.to_thread(self._item, item)
        if _digest(scope, material) != digest:
            message = "The mounted credential is not the one that was validated."
            raise unavailable(message, "revalidate_connection", "The connection is unharmed; nothing was sent.")
        return material

    async def write_new(self, scope: str, material: Secret, note: Note = unnoted) -> NoReturn:
        """Refuse: nothing is ever written here (CLI-407)."""
        raise refuse("custody_read_only", safe="Nothing was stored.")

    async def delete(self, scope: str, version: str) -> Literal["deleted", "missing"]:
        """Refuse, as writing is."""
        raise refuse("custody_read_only", safe="Nothing was changed.")

    async def probe(self) -> None:
        """Look whether the folder can be read; there is no write to be tested."""

        def enter() -> None:
            with folder(self._directory):
                pass

        await asyncio.to_thread(attempt, enter, _unfit())

    def _item(self, item: str) -> Secret:
        if not _ITEM.fullmatch(item):
            raise missing()
        place = Path(item)

        def read() -> Secret:
            with folder(self._directory) as mounted, folder(place.parent, mounted) as within:
                return read_at(within, place.name, limits.CUSTODY_BYTES, private=False)

        material = attempt(read, _unfit())
        if not material:
            raise _unfit()
        return material


def _digest(scope: str, material: Secret) -> str:
    return sha256(scope.encode() + b"\0" + material.reveal()).hexdigest()


def _unfit() -> HeadwaterError:
    message = (
        "The mounted credential cannot be read: it must be a file of 1 to 65,536 bytes, reached through no symbolic "
        "link, that only you or root can change."
    )
    return unavailable(message, "check_configuration")
