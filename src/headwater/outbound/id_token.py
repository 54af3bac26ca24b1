"""Whose sign-in it was, by the ID token that came beside an access token (OpenID Connect Core 3.1.3.7).

The token comes straight from the token endpoint over a checked connection, so that its signature adds nothing: the
standard permits to rely on the connection instead (3.1.3.7, point 6). All else that it asks for is checked.
"""

from base64 import urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import nan
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from headwater import limits
from headwater.connect.failures import AuthFailure

_SUBJECT_CHARACTERS: Final = 255


@dataclass(frozen=True)
class Expected:
    """What an ID token has to say. `at` is the time by the clock of who answered; ours may be wrong by much."""

    client_id: str
    token_url: str
    at: datetime
    issuer: str | None = None
    nonce: str | None = None


def subject(token: object, expected: Expected) -> str:
    """Return the `sub` of an ID token. Raise `provider_protocol_error` where it is not one for us, of now."""
    claims = _claims(token)
    if not (_is_ours(claims, expected) and _is_current(claims, expected)):
        raise AuthFailure("provider_protocol_error")
    found = claims.get("sub")
    if not isinstance(found, str) or not 1 <= len(found) <= _SUBJECT_CHARACTERS or not found.isprintable():
        raise AuthFailure("provider_protocol_error")
    return found


def _claims(token: object) -> Mapping[str, Any]:
    try:
        _head, body, _signature = str(token).split(".")
        claims = msgspec.json.decode(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (ValueError, msgspec.DecodeError, RecursionError):
        claims = None
    if not isinstance(token, str) or not isinstance(claims, dict):
        raise AuthFailure("provider_protocol_error")
    return claims


def _is_ours(claims: Mapping[str, Any], expected: Expected) -> bool:
    issuer, audience = claims.get("iss"), claims.get("aud")
    right_issuer = issuer == expected.issuer if expected.issuer else _origin(issuer) == _origin(expected.token_url)
    only = audience in (expected.client_id, [expected.client_id])
    among = isinstance(audience, list) and expected.client_id in audience and claims.get("azp") == expected.client_id
    return right_issuer and (only or among) and (expected.nonce is None or claims.get("nonce") == expected.nonce)


def _is_current(claims: Mapping[str, Any], expected: Expected) -> bool:
    now = expected.at.astimezone(UTC).timestamp()
    issued, ends = _seconds(claims.get("iat")), _seconds(claims.get("exp"))
    return abs(issued - now) <= limits.ID_TOKEN_SECONDS and ends > now - limits.ID_TOKEN_SECONDS


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else nan


def _origin(url: object) -> tuple[str, str] | None:
    if not isinstance(url, str):
        return None
    parts = urlsplit(url)
    return (parts.scheme, parts.netloc)
