"""The credential of a connection as custody holds it: the exact version, and never another one (CLI-384)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from msgspec.structs import replace

from headwater import clock
from headwater.connect.envelope import Credential, Envelope, opened
from headwater.connect.fields import kept, read_entry
from headwater.connect.model import Check, Connection, Found, Target
from headwater.connect.ports import Custody, Registry
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.auth import Method
from headwater.secret import Secret

_MISSING: Final[tuple[Check, Found]] = ("credential_present", "missing")
_UNREACHABLE: Final[tuple[Check, Found]] = ("custody_reachable", "unavailable")


class Mounted(Protocol):
    """Custody that only the machine's owner writes: an item is pinned by its bytes."""

    async def pin(self, scope: str, item: str) -> tuple[str, Secret]:
        """Return the version of what an item holds now, and its bytes."""
        ...


@dataclass(frozen=True)
class Held:
    """A credential, and the version that it is."""

    credential: Credential
    version: str


@dataclass(frozen=True)
class Material:
    """Reads credentials of one instance. `mounted` is the custody once more, where that is a mounted folder."""

    registry: Registry
    custody: Custody
    mounted: Mounted | None
    target: Target

    async def read(self, method: Method, connection: Connection, *, repin: bool = False) -> Held:
        """Return what a connection has in custody. `repin` takes what its mounted item holds now (CLI-408).

        That custody cannot be reached, or has no such credential, is noted for whoever looks, until the next check.
        """
        try:
            return await self._read(method, connection, repin=repin)
        except HeadwaterError as error:
            if error.code == "custody_unavailable":
                is_missing = error.next_action == "repair_connection"
                self._note(connection, *_MISSING if is_missing else _UNREACHABLE)
            raise

    async def _read(self, method: Method, connection: Connection, *, repin: bool) -> Held:
        if self.mounted is not None and repin:
            version, bytes_ = await self.mounted.pin(connection.reference, item_of(self.target, method))
        else:
            version, bytes_ = connection.version, await self.custody.read(connection.reference, connection.version)
        if self.mounted is not None:
            return Held(static(method, read_entry(method, bytes_.reveal())), version)
        return Held(credential_in(bytes_), version)

    def _note(self, connection: Connection, check: Check, found: Found) -> None:
        checks = connection.evidence.checks
        if checks.get(check) == "ok":
            evidence = replace(connection.evidence, checks={**checks, check: found})
            self.registry.publish(connection, replace(connection, evidence=evidence), clock.millis())


def credential_in(material: Secret) -> Credential:
    """Return the credential that custody keeps. Raise `custody_unavailable` where it is none."""
    try:
        return opened(material)
    except ValueError:
        message = "What custody keeps for the connection is no credential."
        raise refuse("custody_unavailable", message, next_action="repair_connection") from None


def item_of(target: Target, method: Method) -> str:
    """Return the name of a mounted item."""
    return f"{target.alias}/{method.key}"


def static(method: Method, fields: Mapping[str, Secret]) -> Credential:
    """Make a credential of what was entered, where nothing has to be exchanged for it."""
    secret = next(fields[field.name] for field in method.fields if field.is_secret)
    return Credential(Envelope(secret), kept(method, fields))
