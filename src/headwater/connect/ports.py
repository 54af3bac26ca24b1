"""What connecting needs of the world, by noun. The host fills each port with one adapter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from headwater.connect.envelope import Account, Credential, Envelope
from headwater.manifest.auth import Field, Method
from headwater.secret import Secret


class Custody(Protocol):
    """Where credentials are kept. A version never changes once it is written; there is no listing.

    Every call is bounded in time. Failures are `custody_unavailable` or `custody_read_only`.
    """

    @property
    def read_only(self) -> bool:
        """Whether only the machine's owner can put something here (a mounted directory)."""
        ...

    async def write_new(self, scope: str, material: Secret) -> str:
        """Keep 1 to 65,536 bytes durably and return the new version's reference, which is opaque.

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

    async def start(self, method: Method, fields: Mapping[str, Secret]) -> Challenge | Envelope:
        """Begin a sign-in with checked fields."""
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
