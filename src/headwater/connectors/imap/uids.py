"""Sets of UIDs as ranges: a mailbox of a million messages is a short text, and `1:*` costs nothing."""

from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator
from operator import itemgetter


class Uids:
    """UIDs, in order. Its text is an IMAP sequence-set (RFC 9051 section 9), such as `1:5,7`; empty for none."""

    def __init__(self, text: str = "") -> None:
        self._ranges: list[tuple[int, int]] = []
        for low, high in sorted(_range(part) for part in text.split(",") if part):
            if self._ranges and low <= self._ranges[-1][1] + 1:
                self._ranges[-1] = self._ranges[-1][0], max(high, self._ranges[-1][1])
            else:
                self._ranges.append((low, high))

    @classmethod
    def of(cls, uids: Iterable[int]) -> "Uids":
        """Return the set of some UIDs, which should come in order."""
        found = cls()
        for uid in uids:
            found.add(uid)
        return found

    def __str__(self) -> str:
        return ",".join(f"{low}:{high}" if low < high else str(low) for low, high in self._ranges)

    def __len__(self) -> int:
        return sum(high - low + 1 for low, high in self._ranges)

    def __iter__(self) -> Iterator[int]:
        for low, high in self._ranges:
            yield from range(low, high + 1)

    def __contains__(self, uid: object) -> bool:
        if not isinstance(uid, int):
            return False
        at = bisect_right(self._ranges, uid, key=itemgetter(0)) - 1
        return at >= 0 and self._ranges[at][0] <= uid <= self._ranges[at][1]

    @property
    def pieces(self) -> int:
        """How many ranges there are: how long the text is."""
        return len(self._ranges)

    def add(self, uid: int) -> None:
        """Add a UID; one that is above all others costs nothing."""
        if uid in self:
            return
        if not self._ranges or uid > self._ranges[-1][1] + 1:
            self._ranges.append((uid, uid))
        elif uid == self._ranges[-1][1] + 1:
            self._ranges[-1] = self._ranges[-1][0], uid
        else:
            self._ranges = Uids(f"{self},{uid}")._ranges

    def without(self, gone: Container[int]) -> "Uids":
        """Return the UIDs that are not among those gone."""
        return Uids.of(uid for uid in self if uid not in gone)

    def among(self, others: Container[int]) -> "Uids":
        """Return the UIDs that are among others too."""
        return Uids.of(uid for uid in self if uid in others)


def _range(part: str) -> tuple[int, int]:
    low, _, high = part.partition(":")
    first, last = int(low), int(high or low)
    return min(first, last), max(first, last)
