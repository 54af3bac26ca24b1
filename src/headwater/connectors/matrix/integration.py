"""Signing in to a Matrix homeserver: a password gives a session of its own, with a token that is renewed."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from headwater.sdk.integration import Account, Context, Envelope, Integration, Refused

_CLIENT = "/_matrix/client/v3"
# A token that lasts longer than a century need not be renewed.
_LONGEST_MS = 100 * 366 * 24 * 3600 * 1000


class Matrix(Integration):
    """The client-server API's sessions (Matrix 1.11 and later)."""

    def start_auth(self, ctx: Context, method: str, fields: Mapping[str, str]) -> Envelope:
        """Log in by password: the session is this program's own, and shown under its name among the devices."""
        asked = {
            "type": "m.login.password",
            "identifier": {"type": "m.id.user", "user": fields["username"]},
            "password": fields["password"],
            "initial_device_display_name": "Headwater",
            "refresh_token": True,
        }
        return _envelope(ctx, _posted(ctx, "/login", asked), None)

    def refresh_credential(self, ctx: Context, envelope: Envelope) -> Envelope:
        """Exchange the refresh token; the homeserver may keep it or give another one."""
        if envelope.refresh_token is None:
            raise Refused("credential_invalid")
        told = _posted(ctx, "/refresh", {"refresh_token": envelope.refresh_token})
        return _envelope(ctx, told, envelope.refresh_token)

    def get_account(self, ctx: Context) -> Account:
        """Ask whose token it is."""
        told = ctx.http.request("GET", f"{_CLIENT}/account/whoami", headers=_headers(ctx)).accepted().json()
        user = _text(told, "user_id")
        return Account(user, "matrix.user", user)

    def disconnect(self, ctx: Context) -> None:
        """End the session. One that has ended already is as good."""
        answer = ctx.http.request("POST", f"{_CLIENT}/logout", headers=_headers(ctx), json={})
        if answer.status != 401:
            answer.accepted()


def _posted(ctx: Context, path: str, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the homeserver's answer. It says 403 of a wrong password and of an account that is locked."""
    answer = ctx.http.request("POST", f"{_CLIENT}{path}", json=asked)
    if answer.status == 403:
        raise Refused("credential_invalid")
    told = answer.accepted().json()
    if not isinstance(told, dict):
        raise Refused("provider_protocol_error")
    return told


def _envelope(ctx: Context, told: Mapping[str, Any], renewal: str | None) -> Envelope:
    lasts = told.get("expires_in_ms")
    expires_at = None
    if isinstance(lasts, int) and 0 < lasts < _LONGEST_MS:
        expires_at = ctx.clock() + timedelta(milliseconds=lasts)
    given = told.get("refresh_token")
    return Envelope(
        _text(told, "access_token"), "bearer", expires_at, given if isinstance(given, str) and given else renewal
    )


def _headers(ctx: Context) -> Mapping[str, str]:
    if ctx.credential is None:
        raise Refused("credential_invalid")
    return {"authorization": f"Bearer {ctx.credential.access_token}"}


def _text(told: Any, name: str) -> str:
    value = told.get(name) if isinstance(told, dict) else None
    if not isinstance(value, str) or not value:
        raise Refused("provider_protocol_error")
    return value
