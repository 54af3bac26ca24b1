"""The ways by which a credential comes in: entered, obtained before, or mounted by the machine's owner."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from headwater import limits
from headwater.connect.consenting import Person
from headwater.connect.envelope import Credential, sealed
from headwater.connect.fields import checked, read_entry
from headwater.connect.model import Connection, Target
from headwater.connect.ports import Custody, Note
from headwater.connect.reading import Mounted, credential_in, item_of, static
from headwater.errors import refuse
from headwater.manifest.auth import Method
from headwater.secret import Secret

Ask = Callable[[Method], Mapping[str, Secret]]
"""Asks a person for the fields of a method, by a protected source."""

SignIn = Callable[[Method, Mapping[str, Secret]], Awaitable[Credential]]
"""Checks fields, and exchanges them for a credential, through every challenge."""


@dataclass(frozen=True)
class Means:
    """What a person signs in by: the source that they chose, None for none; and whether by another device.

    `person` is shown what the provider wants of them.
    """

    ask: Ask | None
    person: Person
    device: bool = False


@dataclass(frozen=True)
class Entered:
    """What a person enters, and what becomes of it: `sign_in_by` checks, counts and exchanges it."""

    ask: Ask
    sign_in_by: SignIn
    custody: Custody

    async def fields(self, method: Method, scope: str) -> Mapping[str, Secret]:
        """See `Entry.fields`."""
        return self.ask(method)

    async def sign_in(self, method: Method, fields: Mapping[str, Secret]) -> Credential:
        """See `Entry.sign_in`."""
        return await self.sign_in_by(method, fields)

    async def keep(self, scope: str, credential: Credential, note: Note) -> str:
        """See `Entry.keep`."""
        return await _keep(self.custody, scope, credential, note)


@dataclass(frozen=True)
class Obtained:
    """What came of a sign-in that was gone through step by step, before."""

    credential: Credential
    custody: Custody

    async def fields(self, method: Method, scope: str) -> Mapping[str, Secret]:
        """See `Entry.fields`."""
        return {}

    async def sign_in(self, method: Method, fields: Mapping[str, Secret]) -> Credential:
        """See `Entry.sign_in`."""
        return self.credential

    async def keep(self, scope: str, credential: Credential, note: Note) -> str:
        """See `Entry.keep`."""
        return await _keep(self.custody, scope, credential, note)


@dataclass(frozen=True)
class Copied:
    """What custody keeps for another connection, which is only read. It is kept once more, as a version of its own."""

    source: Connection
    custody: Custody

    async def fields(self, method: Method, scope: str) -> Mapping[str, Secret]:
        """See `Entry.fields`."""
        return {}

    async def sign_in(self, method: Method, fields: Mapping[str, Secret]) -> Credential:
        """See `Entry.sign_in`."""
        return credential_in(await self.custody.read(self.source.reference, self.source.version))

    async def keep(self, scope: str, credential: Credential, note: Note) -> str:
        """See `Entry.keep`."""
        return await _keep(self.custody, scope, credential, note)


async def _keep(custody: Custody, scope: str, credential: Credential, note: Note) -> str:
    material = sealed(credential)
    if len(material) > limits.CUSTODY_BYTES:
        raise refuse("capacity", "The credential is too large to be kept.", safe="Nothing was stored.")
    return await custody.write_new(scope, material, note)


@dataclass
class FromMount:
    """What stands in a mounted item. Its version is the bytes that were read for the probe, and no later ones."""

    mounted: Mounted
    target: Target
    _version: str = field(default="", init=False)

    async def fields(self, method: Method, scope: str) -> Mapping[str, Secret]:
        """See `Entry.fields`."""
        self._version, material = await self.mounted.pin(scope, item_of(self.target, method))
        return read_entry(method, material.reveal())

    async def sign_in(self, method: Method, fields: Mapping[str, Secret]) -> Credential:
        """See `Entry.sign_in`. What has to be exchanged cannot be kept where nothing is written (CLI-407)."""
        if not is_static(method):
            raise refuse("custody_read_only", safe="Nothing was sent.")
        return static(method, checked(method, fields))

    async def keep(self, scope: str, credential: Credential, note: Note) -> str:
        """See `Entry.keep`."""
        return self._version


def is_static(method: Method) -> bool:
    """Whether what is entered is the credential, so that nothing is exchanged."""
    return method.scheme in ("token", "basic")
