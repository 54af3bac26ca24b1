"""What the tests of flows share: a provider that asks for a code, and a sign-in over a real store and real keys."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from headwater.connect.auth_state import AuthStates, Subject
from headwater.connect.envelope import Account, Credential, Envelope
from headwater.connect.failures import AuthFailure
from headwater.connect.flows import SignIn
from headwater.connect.ports import Challenge, Probed
from headwater.connect.throttle import OwnCounters, Throttle
from headwater.manifest.auth import Field, Method
from headwater.secret import Secret
from headwater.store.sqlite.signing_in import SignInStore
from headwater.vault.state_keys import StateKeys

CODE = Field("code", "Code", "token", required=True)
PASSWORD = Method(
    "password",
    "Password",
    "password",
    (Field("email", "E-mail", "email", required=True), Field("password", "Password", "password", required=True)),
)
BY_CODE = Method("code", "Code by mail", "verification_code", (Field("email", "E-mail", "email", required=True),))
ENTERED = {"email": Secret("ada@example.org"), "password": Secret("sentinel-password")}
SUBJECT = Subject("provider.example", "password", "1000", "1000", "")
GIVEN = Envelope(Secret("sentinel-token"), account=Account("ada", "person"))


@dataclass
class AsksForCodes:
    """A provider that asks for a code, `steps` times; `given` are the fields that it was told with each answer."""

    steps: int = 1
    code: str = "123456"
    started: int = 0
    given: list[Mapping[str, Secret]] = field(default_factory=list)
    fails: AuthFailure | None = None

    async def start(self, method, fields, redirect_uri=None):
        self.started += 1
        return self._challenge(self.steps)

    async def complete(self, method, fields, challenge, answer):
        self.given.append(fields)
        if self.fails is not None:
            raise self.fails
        if answer.get("code") != Secret(self.code):
            raise AuthFailure("challenge_failed")
        left = challenge.upstream["left"] - 1
        return self._challenge(left) if left else GIVEN

    def _challenge(self, left: int) -> Challenge:
        return Challenge("code", (CODE,), "a***@example.org", upstream={"left": left, "id": "sentinel-upstream"})

    async def refresh(self, method, credential: Credential) -> Envelope:
        raise AuthFailure("credential_invalid")

    async def probe(self, method, credential: Credential) -> Probed:
        return Probed(Account("ada", "person"))

    async def disconnect(self, method, credential: Credential) -> bool:
        return False


def signing(folder: Path, provider: AsksForCodes, **parts) -> SignIn:
    """Return a sign-in that stands on a state directory."""
    store = SignInStore(folder / "headwater.db")
    states = parts.get("states") or AuthStates(StateKeys(folder / "auth-state-keys"), store)
    return SignIn(provider, states, parts.get("throttle") or Throttle(OwnCounters(), store))


def other(subject: Subject, name: str) -> Subject:
    """Return a subject that differs in one thing."""
    return msgspec.structs.replace(subject, **{name: "another"})
