"""Custody in the login keychain of macOS. It has been tried on no machine yet: no test of ours runs on macOS.

macOS itself may ask the person whether this program may use the keychain; that cannot be kept from here.
"""

import asyncio
from base64 import b64decode, b64encode
from typing import Literal

from keyring.backends.macOS import Keyring  # type: ignore[import-not-found]

from headwater.connect.ports import CustodyState, Note, unnoted
from headwater.errors import HeadwaterError
from headwater.secret import Secret
from headwater.vault.pinned import pinned, unpinned
from headwater.vault.probing import probe
from headwater.vault.refusals import attempt, fitting, missing, unavailable, unknown


class KeychainCustody:
    """Keeps each version as one generic password, in base64: the keychain takes text."""

    read_only = False
    is_durable = False

    def __init__(self) -> None:
        self._keychain = Keyring()

    async def state(self) -> CustodyState:
        """Say that it is there: whether it is open cannot be asked without macOS asking the person."""
        return "available"

    async def write_new(self, scope: str, material: Secret, note: Note = unnoted) -> str:
        """Store a password under a new version, and read it back."""
        version, kept = pinned(fitting(material))
        note(version)
        await asyncio.to_thread(self._write, scope, version, kept)
        return version

    async def read(self, scope: str, version: str) -> Secret:
        """Return the bytes of a version, as they were written."""
        kept = await asyncio.to_thread(attempt, lambda: self._find(scope, version), _unusable())
        if kept is None:
            raise missing()
        return unpinned(version, kept)

    async def delete(self, scope: str, version: str) -> Literal["deleted", "missing"]:
        """Delete the password of a version."""

        def erase() -> Literal["deleted", "missing"]:
            if self._find(scope, version) is None:
                return "missing"
            self._keychain.delete_password(_service(scope), version)
            return "deleted"

        return await asyncio.to_thread(attempt, erase, _unusable())

    async def probe(self) -> None:
        """Write, read back and erase something of no worth (INT-244)."""
        await probe(self)

    def _write(self, scope: str, version: str, content: Secret) -> None:
        unsettled = unknown("It is not known whether the keychain holds the credential.")

        def store() -> bool:
            self._keychain.set_password(_service(scope), version, b64encode(content.reveal()).decode())
            return self._find(scope, version) == content

        if not attempt(store, unsettled, exact=False):
            raise unsettled

    def _find(self, scope: str, version: str) -> Secret | None:
        text = self._keychain.get_password(_service(scope), version)
        return None if text is None else Secret(b64decode(text))


def _service(scope: str) -> str:
    return f"Headwater {scope}"


def _unusable() -> HeadwaterError:
    return unavailable("The login keychain cannot be used.")
