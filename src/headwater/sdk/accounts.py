"""Accounting for keys: each that was named has one outcome, or none yet."""

from headwater.sdk.outcome import Misuse
from headwater.wire.keys import canonical_key
from headwater.wire.messages import Key


class Accounts:
    """Keys by their canonical form, in the order in which they were named, each with at most one outcome."""

    def __init__(self) -> None:
        self._outcomes: dict[str, str | None] = {}

    def __len__(self) -> int:
        return len(self._outcomes)

    def __contains__(self, name: str) -> bool:
        return name in self._outcomes

    def name(self, *keys: Key) -> None:
        """Name keys that need an outcome; a key that is named again stays what it is."""
        for key in keys:
            self._outcomes.setdefault(canonical_key(key), None)

    def check(self, name: str, outcome: str) -> None:
        """Raise `Misuse` where a key has another outcome already."""
        known = self._outcomes.get(name)
        if known not in (None, outcome):
            raise Misuse(f"this key was {known} before: it cannot also be {outcome}")

    def settle(self, name: str, outcome: str) -> None:
        """Give a key its outcome."""
        self._outcomes[name] = outcome

    def drop(self, name: str) -> None:
        """Forget a key that the scope of the run leaves out, unless it has its outcome."""
        if self._outcomes.get(name, "") is None:
            del self._outcomes[name]

    def of(self, outcome: str | None) -> list[str]:
        """Return the keys with an outcome; with None, those without any."""
        return [name for name, known in self._outcomes.items() if known == outcome]

    @property
    def all(self) -> list[str]:
        """Every key that was named."""
        return list(self._outcomes)
