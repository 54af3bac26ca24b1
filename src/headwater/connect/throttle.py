"""How often somebody may try to sign in: counted before a provider is asked, twice, and the strictest count decides.

One count is this process's own; the other is shared by all processes of the owner and survives them. Where the shared
one cannot be kept, nobody may try (INT-310 to INT-315). Nothing of what was tried is kept: a target is a digest.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, Literal, NamedTuple, Protocol

from headwater import limits
from headwater.connect.auth_state import Subject
from headwater.connect.failures import AuthFailure
from headwater.errors import HeadwaterError
from headwater.secret import Secret

Dimension = Literal["owner", "method", "target", "address", "code"]

RULES: Final[Mapping[Dimension, tuple[int, int]]] = {
    "owner": (limits.ATTEMPTS_PER_OWNER, 3_600),
    "method": (limits.ATTEMPTS_PER_METHOD, 3_600),
    "target": (limits.ATTEMPTS_PER_TARGET, 900),
    "address": (limits.ATTEMPTS_PER_ADDRESS, 3_600),
    "code": (1, 60),
}
"""How many attempts fit into how many seconds. A code that is sent is counted as an attempt, and as a code."""


class Counted(NamedTuple):
    """One count that an attempt adds to: at most `attempts` in `seconds`."""

    key: bytes
    attempts: int
    seconds: int


class Counters(Protocol):
    """Attempts by key, over time."""

    def add(self, counted: Sequence[Counted], now_ms: int) -> int:
        """Add an attempt to every count, or to none: return 0, or the seconds until there is room in all of them."""
        ...


@dataclass(frozen=True)
class Attempt:
    """Somebody tries. `address` is the client's, where there is one; `sends_code` where a code goes to the target."""

    subject: Subject
    target: str
    address: str = ""
    sends_code: bool = False

    def counted(self) -> list[Counted]:
        """Return the counts that it adds to."""
        return [Counted(_digest(*parts), *RULES[parts[0]]) for parts in self._parts()]

    def _parts(self) -> Iterator[tuple[Dimension, str]]:
        subject = self.subject
        target = f"{subject.provider}\0{self.target}"
        yield "owner", subject.owner
        yield "method", f"{subject.provider}\0{subject.method}"
        yield "target", target
        if self.address:
            yield "address", self.address
        if self.sends_code:
            yield "code", target


def _digest(dimension: Dimension, value: str) -> bytes:
    return sha256(f"{dimension}\0{value}".encode()).digest()


def target_of(subject: Subject, fields: Mapping[str, Secret], secrets: frozenset[str]) -> str:
    """Return at whom an attempt is aimed: the account that was entered, else whatever the owner has there."""
    named = [value.text() for name, value in sorted(fields.items()) if name not in secrets]
    return "\0".join(named) if named else f"{subject.owner}\0{subject.team}\0{subject.method}"


@dataclass(frozen=True)
class Throttle:
    """Admits attempts, by both counts."""

    own: Counters
    shared: Counters

    def admit(self, attempt: Attempt, now_ms: int) -> None:
        """Count an attempt. Raise `auth_throttled`, with a delay and nothing else, where it is one too many."""
        counted = attempt.counted()
        wait = self.own.add(counted, now_ms) or self._shared(counted, now_ms)
        if wait:
            raise AuthFailure("auth_throttled", retry_after=wait)

    def _shared(self, counted: Sequence[Counted], now_ms: int) -> int:
        try:
            return self.shared.add(counted, now_ms)
        except HeadwaterError:
            return limits.THROTTLE_UNKNOWN_SECONDS


@dataclass
class OwnCounters:
    """Counts of this process, in memory."""

    _times: dict[bytes, list[int]] = field(default_factory=dict)

    def add(self, counted: Sequence[Counted], now_ms: int) -> int:
        """See `Counters.add`."""
        kept = {
            one.key: [at for at in self._times.get(one.key, []) if at > now_ms - one.seconds * 1000] for one in counted
        }
        wait = max(room_in(one, kept[one.key], now_ms) for one in counted)
        if not wait:
            self._times |= {key: [*times, now_ms] for key, times in kept.items()}
        return wait


def room_in(one: Counted, times: Sequence[int], now_ms: int) -> int:
    """Return the whole seconds until a count has room again, by the times in its window, the oldest first."""
    if len(times) < one.attempts:
        return 0
    return max(1, -((now_ms - times[-one.attempts] - one.seconds * 1000) // 1000))
