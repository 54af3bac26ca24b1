"""What hooks take and return: an account, a credential, a challenge, a page of a list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal


@dataclass(frozen=True)
class Account:
    """Whose credential it is. `id` is the provider's own and never changes; `display` may."""

    id: str
    kind: str
    display: str = ""


@dataclass(frozen=True, repr=False)
class Envelope:
    """A credential that a completed sign-in gave. `expires_at` is aware; `metadata` is safe to show to anybody."""

    access_token: str
    token_type: str = ""
    expires_at: datetime | None = None
    refresh_token: str | None = None
    scopes: Sequence[str] | None = None
    account: Account | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Field:
    """Something that a challenge asks for. Its type is one of those of a manifest's fields."""

    name: str
    label: str
    type: str = "text"


@dataclass(frozen=True)
class Challenge:
    """A sign-in that is not complete. `upstream` is what the provider needs back; nobody is shown it.

    `code`: the person enters `fields`, and `target` says, masked, where a code went. `redirect`: they open `url`.
    `device`: they open `url` and type `user_code`; the host asks again every `interval_seconds`.
    """

    kind: Literal["code", "redirect", "device"]
    fields: Sequence[Field] = ()
    target: str = ""
    url: str = ""
    user_code: str = ""
    interval_seconds: int = 5
    expires_at: datetime | None = None
    upstream: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """One page of a list. `next` finds the next one; `complete` says that with this page everything was told."""

    items: Sequence[Mapping[str, Any]]
    next: str | None = None
    complete: bool = False
