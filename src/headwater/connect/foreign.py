"""What comes back from foreign code: an envelope, an account, a challenge, held to their form (INT-240 to INT-243).

Whatever does not fit is a `provider_protocol_error`, and nothing of it is repeated.
"""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from hashlib import md5, sha1, sha256, sha512
from typing import Any, Final, get_args

from headwater import limits
from headwater.connect.envelope import Account, Envelope
from headwater.connect.failures import AuthFailure
from headwater.connect.ports import Challenge
from headwater.manifest.auth import Field, FieldType
from headwater.secret import Secret

_ENVELOPE: Final = frozenset(
    {"access_token", "token_type", "expires_at", "refresh_token", "scopes", "account", "metadata"}
)
_CHALLENGE: Final = frozenset(
    {"kind", "fields", "target", "url", "user_code", "interval_seconds", "expires_at", "upstream"}
)


class _Misfit(Exception):
    """Something is not of its form."""


def received_envelope(told: object) -> Envelope:
    """Return the credential that foreign code gave."""
    try:
        return _envelope(_object(told, _ENVELOPE))
    except (_Misfit, UnicodeError):
        pass
    raise AuthFailure("provider_protocol_error")


def received_account(told: object) -> Account:
    """Return the account that foreign code named."""
    try:
        return _account(told)
    except _Misfit:
        pass
    raise AuthFailure("provider_protocol_error")


def received_challenge(told: object) -> Challenge:
    """Return what a person is asked to do by foreign code."""
    try:
        return _challenge(_object(told, _CHALLENGE))
    except _Misfit:
        pass
    raise AuthFailure("provider_protocol_error")


def _envelope(told: Mapping[str, Any]) -> Envelope:
    token = _text(told.get("access_token"), limits.TOKEN_CHARACTERS)
    renewal = told.get("refresh_token")
    renewal = None if renewal is None else _text(renewal, limits.TOKEN_CHARACTERS)
    scopes = told.get("scopes")
    metadata = told.get("metadata") or {}
    account = told.get("account")
    _check_metadata(metadata, [token, *([renewal] if renewal else [])])
    return Envelope(
        Secret(token),
        token_type=_text(told.get("token_type") or "bearer", limits.LABEL_CHARACTERS) if told.get("token_type") else "",
        expires_at=_instant(told.get("expires_at")),
        refresh_token=None if renewal is None else Secret(renewal),
        scopes=None if scopes is None else _scopes(scopes),
        account=None if account is None else _account(account),
        metadata=metadata,
    )


def _account(told: object) -> Account:
    members = _object(told, frozenset({"id", "kind", "display"}))
    display = members.get("display") or ""
    return Account(
        _text(members.get("id"), limits.ACCOUNT_CHARACTERS),
        _text(members.get("kind"), limits.LABEL_CHARACTERS),
        _text(display, limits.LABEL_CHARACTERS) if display else "",
    )


def _challenge(told: Mapping[str, Any]) -> Challenge:
    kind, upstream, seconds = told.get("kind"), told.get("upstream") or {}, told.get("interval_seconds", 5)
    if (
        kind not in ("code", "redirect", "device")
        or not isinstance(upstream, dict)
        or len(_json(upstream)) > limits.UPSTREAM_BYTES
    ):
        raise _Misfit
    if type(seconds) is not int or seconds < 1:
        raise _Misfit
    rows = told.get("fields") or []
    if not isinstance(rows, list) or len(rows) > limits.AUTH_FIELDS:
        raise _Misfit
    url = _shown(told, "url", limits.URL_CHARACTERS)
    if url and not url.startswith("https://"):
        raise _Misfit
    return Challenge(
        kind,
        fields=tuple(_field(row) for row in rows),
        target=_shown(told, "target", limits.LABEL_CHARACTERS),
        url=url,
        user_code=_shown(told, "user_code", limits.LABEL_CHARACTERS),
        interval_seconds=seconds,
        expires_at=_instant(told.get("expires_at")),
        upstream=upstream,
    )


def _field(told: object) -> Field:
    row = _object(told, frozenset({"name", "label", "type"}))
    kind: FieldType = row.get("type", "text")
    if kind not in get_args(FieldType):
        raise _Misfit
    name, label = (_text(row.get(member), limits.LABEL_CHARACTERS) for member in ("name", "label"))
    return Field(name, label, kind, required=True)


def _object(told: object, members: frozenset[str]) -> Mapping[str, Any]:
    if not isinstance(told, dict) or not members.issuperset(told):
        raise _Misfit
    return told


def _text(value: object, longest: int) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= longest or not value.isprintable():
        raise _Misfit
    return value


def _shown(told: Mapping[str, Any], member: str, longest: int) -> str:
    value = told.get(member) or ""
    return _text(value, longest) if value else ""


def _instant(value: object) -> datetime | None:
    """Read an absolute instant: one without an offset is none."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) and len(value) >= _INSTANT else None
        if moment is not None and moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise _Misfit


_INSTANT: Final = len("2026-01-01T00:00:00Z")


def _scopes(told: object) -> tuple[str, ...]:
    if not isinstance(told, list) or len(told) > limits.SCOPES:
        raise _Misfit
    return tuple(_text(scope, limits.LABEL_CHARACTERS) for scope in told)


def _check_metadata(metadata: object, secrets: list[str]) -> None:
    """Refuse metadata that is large, or that holds a token or a digest of one (INT-242)."""
    if not isinstance(metadata, dict) or len(text := _json(metadata)) > limits.METADATA_BYTES:
        raise _Misfit
    folded = text.decode().lower()
    if any(trace.lower() in folded for secret in secrets for trace in _traces(secret)):
        raise _Misfit


def _traces(secret: str) -> Iterator[str]:
    """Yield a secret and what is commonly made of it."""
    yield secret
    material = secret.encode()
    yield b64encode(material).decode().rstrip("=")
    yield material.hex()
    for digest in (md5, sha1, sha256, sha512):
        made = digest(material, usedforsecurity=False).digest()
        yield made.hex()
        yield b64encode(made).decode().rstrip("=")
        yield urlsafe_b64encode(made).decode().rstrip("=")


def _json(value: object) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise _Misfit from None
