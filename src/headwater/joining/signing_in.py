"""Signing in by steps, for a face that answers one request at a time: started, gone on with, and connected at its end.

The command line, which has a person at hand, connects in one go instead. A failure is an `AuthFailure`, which each face
tells by the table of integration codes, or a refusal of connecting.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.connect.auth_state import AuthStates, Subject
from headwater.connect.entries import Obtained
from headwater.connect.envelope import Credential
from headwater.connect.flows import Pending, SignIn
from headwater.connect.throttle import OwnCounters, Throttle
from headwater.errors import refuse
from headwater.settings import Settings
from headwater.store.sqlite.signing_in import SignInStore
from headwater.vault.state_keys import StateKeys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.configuration.selecting import Selection
    from headwater.connect.acquiring import Acquiring
    from headwater.joining.connecting import Connecting
    from headwater.manifest.auth import Method
    from headwater.secret import Secret

Shown = dict[str, Any]


class Actor(NamedTuple):
    """Who acts, for which team, and from which address. An address is the socket's, or a trusted proxy's word."""

    user: str
    team: str = ""
    address: str = ""


class Wanted(NamedTuple):
    """What a sign-in is for: a connection of an instance, or another credential for one whose revision was seen."""

    selection: Selection
    profile: str | None = None
    reference: str | None = None
    expected_revision: str | None = None


class SigningIn:
    """The unfinished sign-ins of this process: they end with it."""

    def __init__(self, settings: Settings, connecting: Connecting) -> None:
        self._connecting = connecting
        store = SignInStore(settings.database_path)
        self._states = AuthStates(StateKeys(settings.state_keys_path), store)
        self._throttle = Throttle(OwnCounters(), store)

    async def start(
        self, wanted: Wanted, fields: Mapping[str, Secret], actor: Actor, *, redirect_uri: str | None = None
    ) -> Pending | Shown:
        """Begin with what was entered; return what has to be done next, or the connection.

        What would refuse the connection refuses the beginning, and the place of credentials is tried (INT-244).
        """
        with self._step(wanted, actor) as (acquiring, method, subject, flow):
            await acquiring.custody.probe()
            got = await flow.start(subject, method, fields, address=actor.address, redirect_uri=redirect_uri)
            return got if isinstance(got, Pending) else await self._connected(acquiring, wanted, method, got)

    async def complete(
        self, wanted: Wanted, auth_state: Secret, answer: Mapping[str, Secret], actor: Actor
    ) -> Pending | Shown | None:
        """Go on; None where a device's owner has not consented yet. There is no way to enter fields anew (INT-223)."""
        with self._step(wanted, actor) as (acquiring, method, subject, flow):
            got = await flow.complete(subject, method, auth_state, answer, address=actor.address)
            if got is None or isinstance(got, Pending):
                return got
            return await self._connected(acquiring, wanted, method, got)

    @contextmanager
    def _step(self, wanted: Wanted, actor: Actor) -> Iterator[tuple[Acquiring, Method, Subject, SignIn]]:
        with self._connecting.acquiring(wanted.selection) as acquiring:
            target, purpose = acquiring.target, "connect"
            if wanted.expected_revision is None:
                method = acquiring.connectable(wanted.profile)
            else:
                connection, method = acquiring.renewable(wanted.reference, wanted.expected_revision)
                if wanted.profile not in (None, method.key):
                    raise refuse("unsupported", "The connection was made by another way to sign in.")
                purpose = f"{connection.reference} {connection.revision}"
            name = f"{target.instance_id} {method.key} {purpose}"
            subject = Subject(target.authority, name, str(target.owner), actor.user, actor.team)
            yield acquiring, method, subject, SignIn(acquiring.authenticator, self._states, self._throttle)

    async def _connected(self, acquiring: Acquiring, wanted: Wanted, method: Method, credential: Credential) -> Shown:
        entry = Obtained(credential, acquiring.custody)
        if wanted.expected_revision is None:
            done = await acquiring.connect(method.key, lambda _: entry)
        else:
            done = await acquiring.reconnect(wanted.reference, wanted.expected_revision, lambda _: entry)
        return self._connecting.connected(acquiring.target, done)
