"""Signing in to an IMAP server: the name and the password together are the credential, and the name is the account."""

import base64
from collections.abc import Mapping
from typing import Final

from headwater.connectors.imap.server import Server, told
from headwater.sdk import Fail
from headwater.sdk.integration import Account, Context, Envelope, Integration, Refused
from headwater.sdk.refusals import RefusalCode

_CODES: Final[Mapping[str, RefusalCode]] = {
    "refresh_credentials": "credential_invalid",
    "retry_by_runtime": "provider_unavailable",
}


class Imap(Integration):
    """One credential for the whole account; nothing is renewed, and only the server's own pages can revoke it."""

    def start_auth(self, ctx: Context, method: str, fields: Mapping[str, str]) -> Envelope:
        """Take the name and the password as they are; whether they are right, the account tells (RFC 4616)."""
        pair = f"\0{fields['username']}\0{fields['password']}".encode()
        return Envelope(access_token=base64.b64encode(pair).decode(), token_type="PLAIN")  # noqa: S106 - a mechanism

    def get_account(self, ctx: Context) -> Account:
        """Sign in once, and out."""
        if ctx.credential is None:
            raise Refused("credential_invalid")
        try:
            pair = base64.b64decode(ctx.credential.access_token, validate=True).decode()
            _, username, password = pair.split("\0")
        except ValueError:
            raise Refused("credential_invalid") from None
        try:
            with told():
                server = Server.of({"endpoint": ctx.provider.endpoint, "ca": ctx.provider.settings.get("ca")})
                server.signed_in(username, password).logout()
        except Fail as failure:
            raise Refused(_CODES.get(failure.hint or "", "provider_protocol_error")) from None
        return Account(username, "imap.user", username)
