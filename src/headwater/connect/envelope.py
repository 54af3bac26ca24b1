"""The credential envelope: what a completed sign-in gives, and what custody keeps of it (spec/004, INT-240 to 243)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from headwater.secret import Secret


@dataclass(frozen=True)
class Account:
    """The account that a credential belongs to. Only `id` and `kind` identify it; `display` may change."""

    id: str
    kind: str
    display: str = ""


@dataclass(frozen=True)
class Envelope:
    """A credential. `metadata` is safe to show; the rest that is secret is a `Secret`."""

    access_token: Secret
    token_type: str = ""
    expires_at: datetime | None = None
    refresh_token: Secret | None = None
    scopes: tuple[str, ...] | None = None
    account: Account | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Credential:
    """What custody holds for a connection: the envelope, and the entered fields that are still needed with it."""

    envelope: Envelope
    fields: Mapping[str, Secret] = field(default_factory=dict)
