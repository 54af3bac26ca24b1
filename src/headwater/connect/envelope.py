"""The credential envelope: what a completed sign-in gives, and what custody keeps of it (spec/004, INT-240 to 243)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec import DecodeError, Struct, json

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


class _Envelope(Struct, omit_defaults=True):
    access_token: str
    token_type: str = ""
    expires_at: datetime | None = None
    refresh_token: str | None = None
    scopes: tuple[str, ...] | None = None
    account: Account | None = None
    metadata: dict[str, Any] = {}


class _Kept(Struct):
    fields: dict[str, str]
    envelope: _Envelope


def sealed(credential: Credential) -> Secret:
    """Write a credential as the one JSON object that custody keeps."""
    told = credential.envelope
    renewal = None if told.refresh_token is None else told.refresh_token.text()
    rest = (told.scopes, told.account, dict(told.metadata))
    envelope = _Envelope(told.access_token.text(), told.token_type, told.expires_at, renewal, *rest)
    fields = {name: value.text() for name, value in credential.fields.items()}
    return Secret(json.encode(_Kept(fields, envelope)))


def opened(material: Secret) -> Credential:
    """Read what custody keeps. Raise `ValueError`, which holds nothing of it, where that is no credential."""
    try:
        kept = json.decode(material.reveal(), type=_Kept)
    except (DecodeError, RecursionError):
        raise ValueError("what custody keeps is no credential") from None
    told = kept.envelope
    renewal = None if told.refresh_token is None else Secret(told.refresh_token)
    rest = (renewal, told.scopes, told.account, told.metadata)
    envelope = Envelope(Secret(told.access_token), told.token_type, told.expires_at, *rest)
    return Credential(envelope, {name: Secret(value) for name, value in kept.fields.items()})
