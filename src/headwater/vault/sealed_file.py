"""Custody in one encrypted file, for machines without a keyring, where the configuration names it (decision 24)."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeVar

from headwater import clock, limits
from headwater.connect.ports import CustodyState, Note, unnoted
from headwater.errors import HeadwaterError
from headwater.owned import folder, read_at
from headwater.secret import Secret
from headwater.vault.locking import locked
from headwater.vault.probing import probe
from headwater.vault.refusals import attempt, fitting, missing, unavailable, unknown
from headwater.vault.sealing import Contents, Damaged, Kind, Seal, WrongKey

T = TypeVar("T")

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class SealedFileCustody:
    """Keeps every version in one file that is replaced whole. `entry` gives the passphrase, or the key file's bytes.

    `entry` is called once, by the first call of this, in its own thread: a terminal can be asked from nowhere else.
    One process at a time is in the file; another waits for it, five seconds at most.
    """

    read_only = False
    is_durable = True

    def __init__(self, path: Path, kind: Kind, entry: Callable[[], Secret]) -> None:
        self._path = path
        self._seal = Seal(kind, entry)

    async def state(self) -> CustodyState:
        """Say whether the key opens the file, or could open a new one. Nothing is written."""
        try:
            self._seal.ask()
            await asyncio.to_thread(attempt, self._look, _unfit())
        except HeadwaterError as refusal:
            return "locked" if refusal.next_action == "unlock_keyring" else "unavailable"
        return "available"

    async def write_new(self, scope: str, material: Secret, note: Note = unnoted) -> str:
        """Add a version: the file is written beside its place, synced, moved there, and read again."""
        version = clock.identifier("ver")
        fitting(material)
        note(version)
        await self._alone(lambda within: self._add(within, scope, version, material))
        return version

    async def read(self, scope: str, version: str) -> Secret:
        """Return the bytes of a version."""
        return await self._alone(lambda within: self._found(within, scope, version))

    async def delete(self, scope: str, version: str) -> Literal["deleted", "missing"]:
        """Take a version out of the file. Copies of the file that something else made are not reached."""

        def erase(within: int) -> Literal["deleted", "missing"]:
            contents = self._opened(within)
            if contents.get(scope, {}).pop(version, None) is None:
                return "missing"
            if not contents[scope]:
                del contents[scope]
            self._replace(within, contents)
            if version in self._opened(within).get(scope, {}):
                raise _unsettled()
            return "deleted"

        return await self._alone(erase)

    async def probe(self) -> None:
        """Write, read back and erase something of no worth (INT-244)."""
        await probe(self)

    async def _alone(self, work: Callable[[int], T]) -> T:
        """Do work in the file's folder, with its lock held: in a thread, behind the question for the passphrase."""
        self._seal.ask()

        def going() -> T:
            with folder(self._path.parent) as within, locked(within, f"{self._path.name}.lock", _busy()):
                return work(within)

        return await asyncio.to_thread(attempt, going, _unfit())

    def _look(self) -> None:
        """Open the file as it stands: it is replaced whole, and so needs no lock to be looked at."""
        with folder(self._path.parent) as within:
            self._opened(within)

    def _add(self, within: int, scope: str, version: str, material: Secret) -> None:
        contents = self._opened(within)
        contents.setdefault(scope, {})[version] = material
        self._replace(within, contents)
        if attempt(lambda: self._found(within, scope, version), _unsettled(), exact=False) != material:
            raise _unsettled()

    def _opened(self, within: int) -> Contents:
        """Return what the file holds; nothing where there is no file yet."""
        try:
            return self._seal.open(read_at(within, self._path.name, limits.SEALED_BYTES, private=True))
        except FileNotFoundError:
            return {}
        except WrongKey:
            raise unavailable("The passphrase or key file does not open the sealed file.") from None
        except Damaged:
            message = "The sealed file was changed or damaged by something else, or an older one was put in its place."
            raise unavailable(message, "check_configuration") from None

    def _found(self, within: int, scope: str, version: str) -> Secret:
        material = self._opened(within).get(scope, {}).get(version)
        if material is None:
            raise missing()
        return material

    def _replace(self, within: int, contents: Contents) -> None:
        """Write the file anew. Until it is moved to its place nothing has changed; from then on that is not known."""
        content = self._seal.close(contents)
        if len(content) > limits.SEALED_BYTES:
            raise unavailable("The sealed file would be larger than 16 MiB.", "revoke_connection")
        name, new = self._path.name, f"{self._path.name}.new"
        with suppress(FileNotFoundError):
            os.unlink(new, dir_fd=within)
        with os.fdopen(os.open(new, _NEW, 0o600, dir_fd=within), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        attempt(lambda: _move(within, new, name), _unsettled())


def _move(within: int, new: str, name: str) -> None:
    os.rename(new, name, src_dir_fd=within, dst_dir_fd=within)
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=within)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _busy() -> HeadwaterError:
    return unavailable("Another process is in the sealed file.", "retry_explicitly")


def _unfit() -> HeadwaterError:
    message = (
        "The sealed file cannot be used: it and its folder must be yours alone to change, only you may read it, "
        "and no symbolic link may lead there."
    )
    return unavailable(message, "check_configuration")


def _unsettled() -> HeadwaterError:
    return unknown("It is not known whether the sealed file holds the credential.")
