"""The credential envelope: what a completed sign-in gives, and what custody keeps of it (spec/004, INT-240 to 243)."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
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


def sealed(credential: Credential) -> Secret:
    """Write a credential as the one JSON object that custody keeps."""
    envelope = credential.envelope
    written: dict[str, Any] = {"access_token": envelope.access_token.text()}
    if envelope.refresh_token is not None:
        written["refresh_token"] = envelope.refresh_token.text()
    if envelope.token_type:
        written["token_type"] = envelope.token_type
    if envelope.expires_at is not None:
        written["expires_at"] = envelope.expires_at.isoformat()
    if envelope.scopes is not None:
        written["scopes"] = list(envelope.scopes)
    if envelope.account is not None:
        written["account"] = asdict(envelope.account)
    if envelope.metadata:
        written["metadata"] = dict(envelope.metadata)
    fields = {name: value.text() for name, value in credential.fields.items()}
    return Secret(json.dumps({"fields": fields, "envelope": written}, ensure_ascii=False))


def opened(material: Secret) -> Credential:
    """Read what custody keeps. Raise `ValueError`, which holds nothing of it, where that is no credential."""
    try:
        whole = json.loads(material.reveal())
        return Credential(
            _envelope(whole["envelope"]), {name: Secret(value) for name, value in whole["fields"].items()}
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        pass
    raise ValueError("what custody keeps is no credential")


def _envelope(told: Mapping[str, Any]) -> Envelope:
    renewal, expires_at, scopes, account = (
        told.get(name) for name in ("refresh_token", "expires_at", "scopes", "account")
    )
    return Envelope(
        Secret(told["access_token"]),
        token_type=told.get("token_type", ""),
        expires_at=None if expires_at is None else datetime.fromisoformat(expires_at),
        refresh_token=None if renewal is None else Secret(renewal),
        scopes=None if scopes is None else tuple(scopes),
        account=None if account is None else Account(**account),
        metadata=told.get("metadata", {}),
    )
