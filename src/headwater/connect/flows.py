"""Signing in, step by step: begun with fields, gone on with answers, through at most five challenges (spec/004, auth).

Between two steps a client holds an opaque state and nothing else; it can exchange neither the fields nor the subject.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from headwater import clock, limits
from headwater.connect.auth_state import AuthStates, Held, Subject
from headwater.connect.envelope import Credential, Envelope
from headwater.connect.failures import AuthFailure
from headwater.connect.fields import checked, entry_fields, kept
from headwater.connect.ports import Authenticator, Challenge
from headwater.connect.throttle import Attempt, Throttle, target_of
from headwater.manifest.auth import Method
from headwater.secret import Secret


@dataclass(frozen=True)
class Pending:
    """A sign-in that waits for somebody. What the provider needs back is not in `challenge`."""

    auth_state: Secret
    challenge: Challenge


@dataclass(frozen=True)
class SignIn:
    """Signs in at one provider. Nothing is stored here, and nothing is repeated."""

    authenticator: Authenticator
    states: AuthStates
    throttle: Throttle

    async def start(
        self,
        subject: Subject,
        method: Method,
        fields: Mapping[str, Secret],
        *,
        address: str = "",
        redirect_uri: str | None = None,
    ) -> Pending | Credential:
        """Begin with what was entered. `address` is the client's, where a request came from one.

        Raise `AuthFailure`; of `invalid_fields` and `auth_throttled` the provider has not been told anything.
        """
        fit = checked(method, fields)
        self._admit(subject, method, fit, address, sends_code=method.flow == "verification_code")
        got = await self.authenticator.start(method, fit, redirect_uri)
        if isinstance(got, Envelope):
            return Credential(got, kept(method, fit))
        return self._pending(subject, Held(fit, got, 1))

    async def complete(
        self, subject: Subject, method: Method, auth_state: Secret, answer: Mapping[str, Secret], *, address: str = ""
    ) -> Pending | Credential | None:
        """Go on behind a challenge, with the fields of the start; None where a device's owner has not consented yet.

        A wrong answer can be tried again, four times. Any other failure ends the sign-in, unless it is one of passing.
        """
        nonce, held = self.states.claim(subject, auth_state, clock.millis())
        try:
            if held.challenge.kind == "code":
                self._admit(subject, method, held.fields, address, sends_code=False)
            got = await self.authenticator.complete(method, held.fields, held.challenge, answer)
        except AuthFailure as failure:
            self._failed(nonce, failure)
            raise
        if got is None:
            self.states.again(nonce)
            return None
        if isinstance(got, Challenge) and got.kind == held.challenge.kind == "device":
            self.states.again(nonce, replace(held, challenge=got))
            return Pending(auth_state, _shown(got))
        self.states.end(nonce)
        if isinstance(got, Envelope):
            return Credential(got, kept(method, held.fields))
        return self._pending(subject, Held(held.fields, got, held.number + 1))

    def _admit(
        self, subject: Subject, method: Method, fields: Mapping[str, Secret], address: str, *, sends_code: bool
    ) -> None:
        secrets = frozenset(field.name for field in entry_fields(method) if field.is_secret)
        attempt = Attempt(subject, target_of(subject, fields, secrets), address, sends_code)
        self.throttle.admit(attempt, clock.millis())

    def _pending(self, subject: Subject, held: Held) -> Pending:
        if held.number > limits.SIGN_IN_CHALLENGES:
            raise AuthFailure("provider_protocol_error")
        return Pending(self.states.issue(subject, held, clock.millis()), _shown(held.challenge))

    def _failed(self, nonce: str, failure: AuthFailure) -> None:
        if failure.code in ("challenge_failed", "auth_throttled") or failure.is_transient:
            self.states.again(nonce, wrong=failure.code == "challenge_failed")
        else:
            self.states.end(nonce)


def _shown(challenge: Challenge) -> Challenge:
    return replace(challenge, upstream={})
