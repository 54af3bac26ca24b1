"""Handing out the access token of a connection that was made by a grant (spec/002, access token issue)."""

from dataclasses import dataclass
from datetime import datetime

from headwater import clock
from headwater.connect.admission import admit_use
from headwater.connect.lifetime import is_due
from headwater.connect.model import Connection
from headwater.connect.ports import Turns
from headwater.connect.reading import Held
from headwater.connect.refresh_refusals import of_token
from headwater.connect.refreshing import NotRefreshed, Refreshing
from headwater.errors import refuse
from headwater.manifest.auth import Method
from headwater.secret import Secret


@dataclass(frozen=True)
class Issued:
    """A token that is good for a minute at least, or as long as it can be. `refreshed` says that it was renewed now."""

    connection: Connection
    access_token: Secret
    expires_at: datetime | None
    scopes: tuple[str, ...]
    refreshed: bool


@dataclass(frozen=True)
class Issuing:
    """Issues tokens of one instance. No integration's code is asked, and no probe is sent."""

    refreshing: Refreshing
    turns: Turns

    async def issue(self, connection: Connection) -> Issued:
        """Return the access token, renewed first where it is due. Raise what the table of refusals says (CLI-871)."""
        method = self._admitted(connection)
        held = await self.refreshing.material.read(method, connection)
        if not is_due(held.credential, clock.now()):
            return _issued(connection, held, refreshed=False)
        async with self.turns.publishing(self.refreshing.target.instance_id):
            now = self.refreshing.registry.find(connection.owner, connection.reference)
            if now is None:
                raise refuse("revoked")
            return await self._renewed(now, self._admitted(now))

    async def _renewed(self, now: Connection, method: Method) -> Issued:
        held = await self.refreshing.material.read(method, now)
        try:
            after, held = await self.refreshing.refreshed(now, method, held, at_once=True)
        except NotRefreshed as error:
            raise of_token(error) from None
        return _issued(after, held, refreshed=after.generation > now.generation)

    def _admitted(self, connection: Connection) -> Method:
        """Refuse before anything is sent: what renews a token must not go where the connection was not made for."""
        target = self.refreshing.target
        admit_use(connection, target, clock.millis())
        method = target.method(connection.profile)
        permitted = target.permitted is None or connection.profile in target.permitted
        if method is None or method.scheme != "oauth2_grant" or not permitted:
            message = (
                "Tokens are handed out of connections that were made by consent, where the configuration permits it."
            )
            raise refuse("forbidden", message, safe="No token was handed out.")
        if connection.lifecycle == "stale":
            raise of_token(NotRefreshed("invalid_or_revoked"))
        return method


def _issued(connection: Connection, held: Held, *, refreshed: bool) -> Issued:
    envelope = held.credential.envelope
    return Issued(connection, envelope.access_token, envelope.expires_at, envelope.scopes or (), refreshed)
