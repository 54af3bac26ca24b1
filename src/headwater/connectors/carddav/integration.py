"""Signing in to a CardDAV server."""

from collections.abc import Mapping

from headwater.connectors.dav.signing_in import pair, principal
from headwater.sdk.integration import Account, Context, Envelope, Integration


class CardDAV(Integration):
    """One credential for the whole account; nothing is renewed, and only the server's own pages can revoke it."""

    def start_auth(self, ctx: Context, method: str, fields: Mapping[str, str]) -> Envelope:
        """Take the name and the password as they are; whether they are right, the account tells."""
        return pair(fields)

    def get_account(self, ctx: Context) -> Account:
        """Ask whose they are."""
        return principal(ctx, "carddav.principal")
