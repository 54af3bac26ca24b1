"""How far each mailbox is read: what the cursor keeps of it."""

from array import array
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from headwater.connectors.imap.responses import Fetched
from headwater.connectors.imap.uids import Uids


@dataclass
class Generation:
    """Messages under one UIDVALIDITY: their UIDs, and the parts of those with attachments, by UID."""

    validity: int
    known: Uids = field(default_factory=Uids)
    parts: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, saved: dict[str, Any]) -> "Generation":
        """Read what was saved."""
        return cls(saved["validity"], Uids(saved["known"]), dict(saved["parts"]))

    def saved(self) -> dict[str, Any]:
        """Return it as it is saved."""
        return {"validity": self.validity, "known": str(self.known), "parts": self.parts}


@dataclass
class Place:
    """How far one mailbox is read.

    All of `now` below the UID `following` was read. Flags were seen as of `modseq`, or where the server keeps none as
    `flags` has them: the UIDs that have each. `old` are generations that are gone once the new one is read whole.
    """

    now: Generation
    following: int = 1
    modseq: int | None = None
    flags: dict[str, Uids] = field(default_factory=dict)
    old: list[Generation] = field(default_factory=list)

    @classmethod
    def of(cls, saved: dict[str, Any]) -> "Place":
        """Read what was saved."""
        return cls(
            Generation.of(saved["now"]),
            saved["following"],
            saved["modseq"],
            {flag: Uids(uids) for flag, uids in saved["flags"].items()},
            [Generation.of(old) for old in saved["old"]],
        )

    def saved(self) -> dict[str, Any]:
        """Return it as it is saved."""
        return {
            "now": self.now.saved(),
            "following": self.following,
            "modseq": self.modseq,
            "flags": {flag: str(uids) for flag, uids in self.flags.items()},
            "old": [old.saved() for old in self.old],
        }

    def begun_anew(self, validity: int) -> "Place":
        """Return the place of a mailbox that must be read from its beginning; what was known is checked at its end."""
        return Place(Generation(validity), old=[old for old in (*self.old, self.now) if old.known])

    @property
    def weight(self) -> int:
        """How long it is when it is saved, in pieces."""
        flagged = sum(1 + uids.pieces for uids in self.flags.values())
        return sum(one.known.pieces + len(one.parts) for one in (self.now, *self.old)) + flagged

    def note(self, row: Fetched) -> None:
        """Remember the flags of a message that was not known."""
        for flag in lasting(row):
            self.flags.setdefault(flag, Uids()).add(row.uid)

    def differing(self, flags: Mapping[str, Uids]) -> set[int]:
        """Return the UIDs of messages that have other flags now."""
        found: set[int] = set()
        for flag in self.flags.keys() | flags.keys():
            before, after = self.flags.get(flag, Uids()), flags.get(flag, Uids())
            found.update(uid for uid in before if uid not in after)
            found.update(uid for uid in after if uid not in before)
        return found


def lasting(row: Fetched) -> frozenset[str]:
    """Return a message's flags, but for the one that only this session sees (RFC 3501 section 2.3.2)."""
    return frozenset(row.flags or ()) - {"\\Recent"}


class Listing:
    """The messages that a mailbox has: 16 bytes for each, and 8 for each flag of one, however many there are."""

    def __init__(self) -> None:
        self._windows: list[tuple[array[int], array[int]]] = []
        self._flags: dict[str, array[int]] = defaultdict(lambda: array("Q"))

    def take(self, rows: Iterable[Fetched]) -> None:
        """Add a window; they come from the newest one down."""
        uids, sizes = array("Q"), array("Q")
        for row in sorted(rows, key=attrgetter("uid")):
            uids.append(row.uid)
            sizes.append(row.size_bytes or 0)
            for flag in lasting(row):
                self._flags[flag].append(row.uid)
        self._windows.append((uids, sizes))

    def __len__(self) -> int:
        return sum(len(uids) for uids, _ in self._windows)

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Yield UID and size in bytes of the messages, oldest first."""
        for uids, sizes in reversed(self._windows):
            yield from zip(uids, sizes, strict=True)

    def uids(self) -> Uids:
        """Return the UIDs."""
        return Uids.of(uid for uid, _ in self.sizes())

    def flags(self, known: Container[int]) -> dict[str, Uids]:
        """Return the UIDs of known messages by the flags that they have."""
        return {flag: Uids.of(sorted(uid for uid in uids if uid in known)) for flag, uids in self._flags.items()}
