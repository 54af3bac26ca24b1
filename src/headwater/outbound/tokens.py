"""The token endpoint of OAuth 2 (RFC 6749 3.2): one form out, one credential or one error back."""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from urllib.parse import quote

from headwater import clock, limits
from headwater.connect.envelope import Envelope
from headwater.connect.failures import AuthFailure, FailureCode
from headwater.outbound.client import Answer, Client, Unanswered
from headwater.outbound.probing import decoded, in_header, refused
from headwater.secret import Secret

# What an error of the endpoint means; `invalid_grant` depends on what was presented (RFC 6749 5.2, RFC 8628 3.5).
_MEANINGS: Final[Mapping[str, FailureCode]] = {
    "access_denied": "challenge_failed",
    "expired_token": "auth_state_expired",
    "invalid_client": "credential_invalid",
    "unauthorized_client": "credential_invalid",
    "invalid_scope": "insufficient_scope",
    "temporarily_unavailable": "provider_unavailable",
}
# The standard has no word for it: `invalid_grant` may mean as much. Slack has this one.
_REVOKED: Final = "token_revoked"


@dataclass(frozen=True)
class Party:
    """The client that we are to a provider; with a secret it proves that, in the form or in the header."""

    client_id: str
    secret: Secret | None = None
    in_form: bool = False

    def signed(self, form: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """Return a form and its headers with the client in them (RFC 6749 2.3.1)."""
        if self.secret is None:
            return {**form, "client_id": self.client_id}, {}
        if self.in_form:
            return {**form, "client_id": self.client_id, "client_secret": self.secret.text()}, {}
        pair = f"{quote(self.client_id, safe='')}:{quote(self.secret.text(), safe='')}"
        return dict(form), {"Authorization": f"Basic {b64encode(pair.encode()).decode('ascii')}"}


class Refused(Exception):
    """The endpoint answered with an error of its protocol."""

    def __init__(self, error: str) -> None:
        super().__init__("refused")
        self.error = error

    def meaning(self, of_grant: FailureCode) -> AuthFailure:
        """Return what it means, where `invalid_grant` means `of_grant`."""
        if self.error == _REVOKED:
            return AuthFailure("credential_invalid", revoked=True)
        known = {"invalid_grant": of_grant, **_MEANINGS}
        return AuthFailure(known.get(self.error, "provider_protocol_error"))


async def exchange(client: Client, url: str, party: Party, form: Mapping[str, str]) -> tuple[Mapping[str, Any], Answer]:
    """Send a form once, and return the object that is answered.

    Raise `Refused` for an error of the protocol; `exchange_unknown` where the form left and no answer came, since the
    provider may have used up what was sent with it.
    """
    signed, headers = party.signed(form)
    try:
        answer = await client.post(url, signed, headers)
    except Unanswered as error:
        raise AuthFailure("exchange_unknown" if error.sent else error.code) from None
    if answer.status in (400, 401):
        raise Refused(_error(answer))
    if answer.status != 200:
        raise refused(answer)
    document = decoded(answer)
    if not isinstance(document, dict):
        raise AuthFailure("provider_protocol_error")
    if isinstance(document.get("error"), str):  # some say so with the status of a success
        raise Refused(document["error"])
    return document, answer


def _error(answer: Answer) -> str:
    try:
        document = decoded(answer)
    except AuthFailure:
        document = None
    error = document.get("error") if isinstance(document, dict) else None
    return error if isinstance(error, str) else ("invalid_client" if answer.status == 401 else "")


def envelope(document: Mapping[str, Any], scopes: tuple[str, ...] | None) -> Envelope:
    """Read a credential (RFC 6749 5.1); `scopes` are those that are granted where none are named."""
    token, kind, renewal, granted = (
        document.get(name) for name in ("access_token", "token_type", "refresh_token", "scope")
    )
    if not isinstance(kind, str) or kind.lower() != "bearer" or not isinstance(token, str):
        raise AuthFailure("provider_protocol_error")
    if not isinstance(granted, str | None) or not isinstance(renewal, str | None):
        raise AuthFailure("provider_protocol_error")
    secrets = [Secret(text) for text in (token, renewal) if text]
    if len(secrets) < 1 + bool(renewal) or not all(_is_fit(secret) for secret in secrets):
        raise AuthFailure("provider_protocol_error")
    lifetime = _lifetime(document.get("expires_in"))
    return Envelope(
        Secret(token),
        "Bearer",
        expires_at=None if lifetime is None else clock.now() + lifetime,
        refresh_token=Secret(renewal) if renewal else None,
        scopes=tuple(sorted(set(re.split(r"[ ,]+", granted.strip()))))
        if granted
        else scopes,  # some separate by commas
    )


def _is_fit(secret: Secret) -> bool:
    try:
        return bool(in_header(secret))
    except AuthFailure:
        return False


def _lifetime(seconds: object) -> timedelta | None:
    """Read `expires_in`; some providers write the number as text."""
    if seconds is None:
        return None
    if isinstance(seconds, str) and seconds.isascii() and seconds.isdecimal() and len(seconds) < 12:
        seconds = int(seconds)
    if type(seconds) not in (int, float) or not 0 <= seconds <= limits.TOKEN_LIFETIME_SECONDS:  # type: ignore[operator]
        raise AuthFailure("provider_protocol_error")
    return timedelta(seconds=int(seconds))  # type: ignore[call-overload]
