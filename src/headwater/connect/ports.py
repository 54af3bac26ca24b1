"""What connecting needs of the world, by noun. The host fills each port with one adapter."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from headwater.connect.envelope import Account, Credential, Envelope
from headwater.connect.model import Acquisition, AcquisitionFailure, Connection
from headwater.manifest.auth import Field, Method
from headwater.secret import Secret

CustodyState = Literal["available", "locked", "unavailable"]

Note = Callable[[str], None]
"""Notes durably the name of a version that is about to be written, or raises: then nothing is written."""


def unnoted(_version: str) -> None:
    """Note nothing: what is written is of no worth."""


class Custody(Protocol):
    """Where credentials are kept. A version never changes once it is written; there is no listing.

    Every call is bounded in time. Failures are `custody_unavailable` or `custody_read_only`.
    """

    @property
    def read_only(self) -> bool:
        """Whether only the machine's owner can put something here (a mounted directory)."""
        ...

    @property
    def is_durable(self) -> bool:
        """Whether it is known that what was kept survives a power cut. Of a keyring it is not (CLI-411)."""
        ...

    async def state(self) -> CustodyState:
        """Say whether it could be used now. Nothing is written, unlocked or asked."""
        ...

    async def write_new(self, scope: str, material: Secret, note: Note = unnoted) -> str:
        """Keep 1 to 65,536 bytes durably and return the new version's reference, which is opaque.

        `note` is called with it before a byte is written, so that nothing is ever here that nobody knows of.
        Raise `custody_unavailable` where nothing was kept, `outcome_unknown` where that is not known.
        """
        ...

    async def read(self, scope: str, version: str) -> Secret:
        """Return the bytes of a version. Raise `custody_unavailable` where they are missing or cannot be had."""
        ...

    async def delete(self, scope: str, version: str) -> Literal["deleted", "missing"]:
        """Erase a version."""
        ...

    async def probe(self) -> None:
        """Write, read back and erase something of no worth: called before a person is asked to consent (INT-244)."""
        ...


@dataclass(frozen=True)
class Challenge:
    """What a person has to do before a sign-in goes on.

    `code`: answer `fields`; `target` says, masked, where a code was sent. `redirect`: open `url`, and bring back the
    parameters of the redirect. `device`: open `url` and type `user_code`; ask again every `interval_seconds`.
    `upstream` is what the provider needs back; it is never shown.
    """

    kind: Literal["code", "redirect", "device"]
    fields: tuple[Field, ...] = ()
    target: str = ""
    url: str = ""
    user_code: str = ""
    interval_seconds: int = 5
    expires_at: datetime | None = None
    upstream: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Probed:
    """What a probe of a credential showed. `scopes` is None where the provider does not tell them."""

    account: Account
    scopes: tuple[str, ...] | None = None
    valid_until: datetime | None = None


class Authenticator(Protocol):
    """Signs in to one provider for one instance, by declaration or by hooks. It stores nothing and never retries.

    Every call is one attempt with a deadline, and raises `AuthFailure`.
    """

    async def start(
        self, method: Method, fields: Mapping[str, Secret], redirect_uri: str | None = None
    ) -> Challenge | Envelope:
        """Begin a sign-in with checked fields. `redirect_uri` is where a browser comes back to; without, no browser."""
        ...

    async def complete(
        self, method: Method, fields: Mapping[str, Secret], challenge: Challenge, answer: Mapping[str, Secret]
    ) -> Challenge | Envelope | None:
        """Go on behind a challenge; None where a device's owner has not consented yet."""
        ...

    async def refresh(self, method: Method, credential: Credential) -> Envelope:
        """Exchange a credential for a newer one."""
        ...

    async def probe(self, method: Method, credential: Credential) -> Probed:
        """Ask whose credential it is, and whether it is good for what it is needed for."""
        ...

    async def disconnect(self, method: Method, credential: Credential) -> bool:
        """Revoke at the provider, where that can be done; return whether it was."""
        ...


class Registry(Protocol):
    """What is known of connections. Every call is one transaction, and shows only what is the owner's.

    Raise `metadata_unavailable` where it cannot be used, `outcome_unknown` where it is not known whether a write was
    committed; looking at it again tells.
    """

    def held(self, owner: int, instance_id: str) -> Sequence[Connection]:
        """Return the published connections of an instance that are not revoked: one, but for stores of old."""
        ...

    def page(self, owner: int, instance_id: str, after: str, limit: int) -> Sequence[Connection]:
        """Return connections of an instance, revoked ones too, by reference, those behind `after`."""
        ...

    def epoch(self, owner: int, instance_id: str) -> int:
        """Return a number that moves when a connection of the instance comes or its revision moves."""
        ...

    def find(self, owner: int, reference: str) -> Connection | None:
        """Return a connection; None for one that is not there, or is another owner's."""
        ...

    def acquisition(self, owner: int, reference: str) -> Acquisition | None:
        """Return an acquisition; None for one that is not there, or is another owner's."""
        ...

    def open_connect(self, owner: int, instance_id: str, now_ms: int) -> Acquisition | None:
        """Return the connect of an instance that is under way."""
        ...

    def begin(self, acquisition: Acquisition) -> None:
        """Note that an acquisition begins. A connect ends those of its instance that were cut off: it alone is live."""
        ...

    def consume(self, acquisition: Acquisition, now_ms: int) -> bool:
        """Note durably that its exchange begins; False where it has begun before, has ended or is too late."""
        ...

    def note_candidate(self, acquisition: Acquisition, version: str, now_ms: int) -> None:
        """Note what custody will keep for it, so that it is erased in time if it is never published."""
        ...

    def fail(self, acquisition: Acquisition, reason: AcquisitionFailure, now_ms: int) -> None:
        """End an open acquisition."""
        ...

    def publish(
        self,
        before: Connection | None,
        after: Connection,
        now_ms: int,
        acquisition: Acquisition | None = None,
        *,
        source: Connection | None = None,
    ) -> bool:
        """Put a connection in the place of `before`, and complete the acquisition, in one transaction.

        False, and nothing was written, where `before` is not what stands there (its fence moved), where it was
        revoked, where another connection holds the instance, where the acquisition is not open any more, or where
        `source`, whose credential was copied, is not live any more or not what it was. A version that `after` has no
        more is erased later.
        """
        ...

    def retire(self, owner: int, now_ms: int) -> Sequence[tuple[str, str]]:
        """Fence the versions whose time is over, and return each with its connection, for erasing.

        Nothing is linked to them again.
        """
        ...

    def versions(self, owner: int, instance_id: str) -> Sequence[tuple[str, str]]:
        """Return everything that custody may hold for an instance, each with its connection."""
        ...

    def forget(self, connection: str, version: str) -> None:
        """Note that custody has erased a version."""
        ...


class Turns(Protocol):
    """Whose turn it is at an instance, among all processes of the owner. A holder that dies lets go."""

    def connecting(self, instance_id: str) -> AbstractContextManager[bool]:
        """Be the one connect of an instance; False at once where another process is."""
        ...

    def publishing(self, instance_id: str) -> AbstractAsyncContextManager[None]:
        """Be alone from probe to publication (CLI-489). Raise `timeout` where the turn does not come in time."""
        ...


class Entry(Protocol):
    """The way by which a credential comes in."""

    async def fields(self, method: Method, scope: str) -> Mapping[str, Secret]:
        """Return what was entered: exactly the method's fields. `scope` is where custody will keep it."""
        ...

    async def sign_in(self, method: Method, fields: Mapping[str, Secret]) -> Credential:
        """Exchange the fields for a credential, through every challenge. Raise `AuthFailure`."""
        ...

    async def keep(self, scope: str, credential: Credential, note: Note) -> str:
        """Put the credential in custody, and return its version. See `Custody.write_new`.

        What the machine's owner has put there is not noted: it is not ours to erase.
        """
        ...
