"""The opaque `auth_state` of an unfinished sign-in: what a client holds between two steps, and cannot read or change.

It names a sign-in that this process holds, says for whom and until when, and commits to what is held of it. What was
entered, and what the provider needs back, is not in it: with the key itself, no secret can be had from it (INT-226).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol

import msgspec

from headwater import clock, limits
from headwater.connect.failures import AuthFailure
from headwater.connect.ports import Challenge
from headwater.secret import Secret


class Subject(msgspec.Struct, frozen=True):
    """Whose sign-in it is, and where. On one person's machine, owner and acting user are that person."""

    provider: str
    method: str
    owner: str
    acting_user: str
    team: str = ""


class Sealer(Protocol):
    """Encrypts with authentication, under the newest of the keys that the owner's processes share."""

    def seal(self, plain: bytes) -> str:
        """Return printable ASCII that only `open` can read."""
        ...

    def open(self, sealed: str) -> bytes:
        """Return what was sealed. Raise `ValueError` where a bit was changed, or the key is not known any more."""
        ...


class UsedStates(Protocol):
    """Which states are used up, for all processes of the owner. A state is of one process at a time."""

    def claim(self, nonce: str, expires_at_ms: int, now_ms: int) -> bool:
        """Take a state for one answer; False where it is used up, or another answer to it is under way."""
        ...

    def settle(self, nonce: str, *, wrong: bool) -> bool:
        """Let go of a state that may be answered again; False where that was its last wrong answer."""
        ...


@dataclass(frozen=True)
class Held:
    """What is kept of an unfinished sign-in, in memory only. `salt` keeps a guess from being tried on the state."""

    fields: Mapping[str, Secret]
    challenge: Challenge
    number: int
    salt: str = field(default_factory=clock.token, repr=False)

    def commitment(self) -> str:
        """Return what binds the state to these fields and this challenge, and tells nothing of them."""
        fields = {name: value.text() for name, value in self.fields.items()}
        whole = [self.salt, fields, dict(self.challenge.upstream)]
        return sha256(msgspec.json.encode(whole, order="deterministic")).hexdigest()


class _State(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    nonce: str
    expires_at_ms: int
    subject: Subject
    commitment: str


@dataclass
class AuthStates:
    """The unfinished sign-ins of this process, and the states that were handed out for them."""

    sealer: Sealer
    used: UsedStates
    _held: dict[str, tuple[int, Held]] = field(default_factory=dict, repr=False)

    def issue(self, subject: Subject, held: Held, now_ms: int) -> Secret:
        """Hand out a state for ten minutes."""
        self._forget_old(now_ms)
        expires_at_ms = now_ms + limits.AUTH_STATE_SECONDS * 1000
        state = _State(clock.token(), expires_at_ms, subject, held.commitment())
        sealed = Secret(self.sealer.seal(msgspec.json.encode(state)))
        if len(sealed) > limits.AUTH_STATE_BYTES:
            raise AuthFailure("invalid_fields")
        self._held[state.nonce] = (expires_at_ms, held)
        return sealed

    def claim(self, subject: Subject, given: Secret, now_ms: int) -> tuple[str, Held]:
        """Return the sign-in that a state is of, for one answer to it, with its name.

        Raise `auth_state_invalid` where it was changed or is another's, `auth_state_expired` where its time is over
        or it began in another process, `auth_state_used` where it is used up or being answered.
        """
        state = self._opened(given)
        if state is None or state.subject != subject:
            raise AuthFailure("auth_state_invalid")
        if now_ms >= state.expires_at_ms:
            raise AuthFailure("auth_state_expired")
        if not self.used.claim(state.nonce, state.expires_at_ms, now_ms):
            raise AuthFailure("auth_state_used")
        _, held = self._held.get(state.nonce, (0, None))
        if held is None:
            raise AuthFailure("auth_state_expired")
        if held.commitment() != state.commitment:
            raise AuthFailure("auth_state_invalid")
        return state.nonce, held

    def again(self, nonce: str, held: Held | None = None, *, wrong: bool = False) -> None:
        """Let a state be answered again, about `held` from now on."""
        if held is not None:
            self._held[nonce] = (self._held[nonce][0], held)
        if not self.used.settle(nonce, wrong=wrong):
            self.end(nonce)

    def end(self, nonce: str) -> None:
        """Forget a sign-in. Its state stays claimed, and so used up."""
        self._held.pop(nonce, None)

    def _opened(self, given: Secret) -> _State | None:
        if len(given) > limits.AUTH_STATE_BYTES:
            return None
        try:
            return msgspec.json.decode(self.sealer.open(given.text()), type=_State)
        except (ValueError, msgspec.DecodeError):
            return None

    def _forget_old(self, now_ms: int) -> None:
        self._held = {nonce: kept for nonce, kept in self._held.items() if kept[0] > now_ms}
        if len(self._held) >= limits.SIGN_INS_AT_ONCE:
            raise AuthFailure("auth_throttled", retry_after=limits.AUTH_STATE_SECONDS)
