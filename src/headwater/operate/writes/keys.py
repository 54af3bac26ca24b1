"""The keys that sign approvals: what may follow what. One is active at most, and one a candidate at most.

A candidate is noted before its private half is kept, so that nothing is in custody that nobody knows of. A change of
the active key is a hard cut: what the one before has signed counts no more.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from msgspec.structs import replace

from headwater import limits
from headwater.errors import HeadwaterError, refuse
from headwater.operate.writes.model import Issuer, KeyState, SigningKey
from headwater.secret import Secret

Note = Callable[[str], None]


class KeyCustody(Protocol):
    """Where private halves are kept: what custody does for credentials (see `connect.ports.Custody`)."""

    async def write_new(self, scope: str, material: Secret, note: Note) -> str:
        """Keep bytes durably and return their version; `note` is called with it first."""
        ...

    async def read(self, scope: str, version: str) -> Secret:
        """Return the bytes of a version."""
        ...

    async def delete(self, scope: str, version: str) -> object:
        """Erase a version."""
        ...


class Issuers(Protocol):
    """Keeps the issuer of one owner."""

    def issuer(self) -> Issuer | None:
        """Return it; None where no key was ever made."""
        ...

    def put_issuer(self, before: Issuer | None, after: Issuer) -> bool:
        """Put one in the place of another; False, and nothing was written, where that is not what stands there."""
        ...


@dataclass(frozen=True)
class KeyPair:
    """A key with its private half, as the document that custody keeps."""

    key_id: str
    public: str
    document: Secret = field(repr=False)


@dataclass(frozen=True)
class Keys:
    """Makes, changes and ends the keys of one owner. `new` makes a pair; `public_of` reads what custody has of one."""

    issuers: Issuers
    custody: KeyCustody
    new: Callable[[], KeyPair]
    new_issuer: Callable[[], str]
    public_of: Callable[[Secret], str | None]

    def now(self) -> Issuer | None:
        """Return the issuer as it is."""
        return self.issuers.issuer()

    async def init(self, expected: str | None) -> Issuer:
        """Make the first key, or the first one after all were revoked."""
        before = self.issuers.issuer()
        if before is not None and before.active is not None:
            raise _conflict("There is a key already; key-rotate makes another.", None)
        if before is not None:
            _expect(before, expected)
        elif expected is not None:
            raise _conflict("There is no key yet, and so no revision.", "expected_revision")
        return await self._made(before or Issuer(self.new_issuer()), is_new=before is None, active=None)

    async def rotate(self, expected: str, expected_key: str) -> Issuer:
        """Make another key. The one before signs nothing more, and nothing that it signed counts."""
        return await self._made(self._seen(expected), is_new=False, active=expected_key)

    async def recover(self, expected: str, candidate: str) -> Issuer:
        """Finish a creation that was cut off. No key is made: where custody has none, it is revoked instead."""
        before = self._seen(expected)
        key = _of_state(before, candidate, "candidate")
        material = await self.custody.read(before.issuer_id, key.version or "")
        if self.public_of(material) != key.public:
            message = "What is kept is not that key: revoke it, and make another."
            raise refuse("custody_unavailable", message, next_action="check_configuration", safe="Nothing was changed.")
        return self._put(before, _activated(before, key))

    async def revoke(self, expected: str, expected_key: str) -> Issuer:
        """End the active key, and a candidate with it. No approval counts until there is another."""
        before = self._seen(expected)
        if expected_key not in {key.key_id for key in before.keys if key.state in ("active", "candidate")}:
            raise _conflict("That key is neither active nor a candidate.", "expected_key")
        keys = tuple(_moved(key, "retired") if key.state in ("active", "candidate") else key for key in before.keys)
        return self._put(before, _next(before, keys))

    async def retire(self, expected: str, key_id: str) -> Issuer:
        """Erase the private half of a key that is not current, and say so for good."""
        before = self._seen(expected)
        key = _of_state(before, key_id, "retired", "retiring")
        marked = before
        if key.state == "retired":
            marked = self._put(before, _next(before, _with(before, _moved(key, "retiring"))))
        if key.version is not None:
            await self.custody.delete(before.issuer_id, key.version)
        return self._put(marked, _next(marked, _with(marked, replace(key, state="deleted", version=None))))

    async def _made(self, before: Issuer, *, is_new: bool, active: str | None) -> Issuer:
        held = before.active
        if (None if held is None else held.key_id) != active:
            raise _conflict("That is not the key that is active.", "expected_key")
        if any(key.state == "candidate" for key in before.keys):
            raise _conflict("The creation of a key was cut off: recover or revoke it first.", None)
        pair = self.new()
        noted: list[Issuer] = []

        def note(version: str) -> None:
            candidate = SigningKey(pair.key_id, pair.public, "candidate", version)
            after = _next(before, (*_bounded(before), candidate))
            if not self.issuers.put_issuer(None if is_new else before, after):
                raise _changed()
            noted.append(after)

        await self.custody.write_new(before.issuer_id, pair.document, note)
        (after,) = noted
        return self._put(after, _activated(after, after.keys[-1]))

    def _seen(self, expected: str) -> Issuer:
        before = self.issuers.issuer()
        if before is None:
            message = "No key signs approvals yet."
            raise refuse("not_found", message, next_action="none", command="headwater approvals key-init")
        _expect(before, expected)
        return before

    def _put(self, before: Issuer, after: Issuer) -> Issuer:
        if not self.issuers.put_issuer(before, after):
            raise _changed()
        return after


def _activated(issuer: Issuer, candidate: SigningKey) -> Issuer:
    keys = tuple(_moved(key, "retired") if key.state == "active" else key for key in issuer.keys)
    return _next(issuer, tuple(_moved(key, "active") if key == candidate else key for key in keys))


def _next(issuer: Issuer, keys: tuple[SigningKey, ...]) -> Issuer:
    return replace(issuer, revision=issuer.revision + 1, keys=keys)


def _with(issuer: Issuer, changed: SigningKey) -> tuple[SigningKey, ...]:
    return tuple(changed if key.key_id == changed.key_id else key for key in issuer.keys)


def _moved(key: SigningKey, state: KeyState) -> SigningKey:
    return replace(key, state=state)


def _bounded(issuer: Issuer) -> tuple[SigningKey, ...]:
    """Return the keys with room for one more: of those that are deleted the oldest are forgotten."""
    keys = list(issuer.keys)
    while len(keys) >= limits.SIGNING_KEYS:
        old = next((key for key in keys if key.state == "deleted"), None)
        if old is None:
            message = "There are 128 keys: retire those that are not current."
            raise refuse("capacity", message, next_action="none", safe="Nothing was changed.")
        keys.remove(old)
    return tuple(keys)


def _of_state(issuer: Issuer, key_id: str, *states: KeyState) -> SigningKey:
    key = issuer.key(key_id)
    if key is None:
        raise refuse("not_found", "There is no such key.", next_action="none", safe="Nothing was changed.")
    if key.state not in states:
        raise _conflict(f"That key is {key.state}, and not {states[0]}.", None)
    return key


def _expect(issuer: Issuer, given: str | None) -> None:
    if given != str(issuer.revision):
        raise _conflict("The keys have changed since their revision was read.", "expected_revision")


def _conflict(message: str, argument: str | None) -> HeadwaterError:
    told: dict[str, Any] = {} if argument is None else {"field": argument}
    command = "headwater approvals key-status"
    return refuse("lifecycle_conflict", message, safe="Nothing was changed.", command=command, **told)


def _changed() -> HeadwaterError:
    return refuse("revision_conflict", "Another command changed the keys meanwhile.", safe="Nothing was changed.")
