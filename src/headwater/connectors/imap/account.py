"""A session with an IMAP server: signed in, read-only, each answer bounded in bytes and in time."""

import imaplib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from headwater.connectors.imap.responses import Fetched, Listed, Piece, Refused, fetched, listed, quoted, status
from headwater.connectors.imap.server import MESSAGE_BYTES, Server, told
from headwater.sdk import RunContext

BATCH_BYTES: Final = 4 * 1024 * 1024
BATCH_MESSAGES: Final = 200
WINDOW: Final = 1_000

_QUESTION: Final = {
    "type": "object",
    "required": ["username", "password"],
    "properties": {
        "username": {"type": "string", "title": "User name"},
        "password": {"type": "string", "format": "password", "title": "Password"},
    },
}
_STATUS = "(MESSAGES UNSEEN UIDNEXT UIDVALIDITY)"


@dataclass(frozen=True)
class Selected:
    """A mailbox as it was when it was opened. `modseq` is None where the server keeps none (RFC 7162)."""

    exists: int
    validity: int
    next_uid: int | None
    modseq: int | None


class Account:
    """One person's mailboxes on a server."""

    def __init__(self, client: imaplib.IMAP4, host: str, username: str) -> None:
        self._client = client
        self.host, self.username = host, username
        offered = set(client.capabilities)
        enabled = next((name for name in ("QRESYNC", "CONDSTORE") if {"ENABLE", name} <= offered), None)
        if enabled is not None and client.enable(enabled)[0] != "OK":
            enabled = None
        self._counts_changes = enabled is not None or "CONDSTORE" in offered
        self._can_vanish = enabled == "QRESYNC"

    @classmethod
    def of(cls, run: RunContext) -> "Account":
        """Ask for the credentials, and sign in."""
        server = Server.of(run.options)
        answer = run.ask("credentials", f"Sign in to {server.host}.", _QUESTION)
        username, password = (str(answer.get(name) or "") for name in ("username", "password"))
        with told():
            return cls(server.signed_in(username, password), server.host, username)

    def mailboxes(self) -> list[Listed]:
        """List every mailbox; what is returned is whole."""
        return list(listed(_taken(self._client.list('""', "*"))))

    def status(self, raw: bytes) -> dict[str, int]:
        """Return the numbers of a mailbox that is not opened: messages, unseen, uidnext, uidvalidity."""
        return status(_taken(self._client.status(quoted(raw), _STATUS)))  # type: ignore[arg-type]

    def examine(self, raw: bytes) -> Selected:
        """Open a mailbox to read it; nothing in it changes by that."""
        (exists,) = _taken(self._client.select(quoted(raw), readonly=True))[-1:]  # type: ignore[arg-type]
        validity = self._number("UIDVALIDITY")
        if validity is None:
            raise Refused
        count = int(exists) if isinstance(exists, bytes) and exists.isdigit() else 0
        modseq = self._number("HIGHESTMODSEQ") if self._counts_changes else None
        return Selected(count, validity, self._number("UIDNEXT"), modseq)

    def _number(self, name: str) -> int | None:
        found = self._client.response(name)[1][-1:]
        return int(found[0]) if found and found[0] and found[0].isdigit() else None

    def listing(self, exists: int, first_uid: int, items: str) -> Iterator[list[Fetched]]:
        """Yield windows of messages from the newest one down to a UID. Call it right after `examine`.

        Message numbers hold still all the while: a server may not take one away during a FETCH (RFC 9051 section
        7.5.1).
        """
        for last in range(exists, 0, -WINDOW):
            numbers = f"{max(1, last - WINDOW + 1)}:{last}"
            window = [row for row in fetched(_taken(self._client.fetch(numbers, items))) if row.size_bytes is not None]
            yield [row for row in window if row.uid >= first_uid]
            if any(row.uid < first_uid for row in window):
                return

    def changes(self, last_uid: int, modseq: int) -> tuple[list[Fetched], str]:
        """Return the messages up to a UID whose flags changed since, and the UIDs that were expunged since.

        The latter are empty where the server has no QRESYNC (RFC 7162).
        """
        self._client.response("VANISHED")
        since = f"(CHANGEDSINCE {modseq}{' VANISHED' if self._can_vanish else ''})"
        rows = list(fetched(self._uid_fetch(f"1:{last_uid}", f"(FLAGS RFC822.SIZE) {since}")))
        said = self._client.response("VANISHED")[1]
        gone = [re.sub(rb"[^0-9:,]", b"", line).decode("ascii") for line in said if isinstance(line, bytes)]
        return [row for row in rows if row.uid <= last_uid and row.size_bytes is not None], ",".join(filter(None, gone))

    def sizes(self, uids: Sequence[int]) -> list[tuple[int, int]]:
        """Return UID and size in bytes of those messages that there are."""
        found: list[tuple[int, int]] = []
        for at in range(0, len(uids), BATCH_MESSAGES):
            asked = ",".join(map(str, uids[at : at + BATCH_MESSAGES]))
            rows = fetched(self._uid_fetch(asked, "(RFC822.SIZE)"))
            found += [(row.uid, row.size_bytes) for row in rows if row.size_bytes is not None]
        return sorted(found)

    def messages(self, sizes: Iterable[tuple[int, int]]) -> Iterator[list[Fetched]]:
        """Yield batches of whole messages in the order of `sizes`; of one that is too large, the header alone.

        A message that the server does not hand out is left out, and so is one that is gone.
        """
        for batch in _batches(sizes):
            try:
                yield self._batch(batch)
            except Refused:
                for one in batch:
                    with suppress(Refused):
                        yield self._batch([one])

    def _batch(self, batch: Sequence[tuple[int, int]]) -> list[Fetched]:
        section = "" if all(size <= MESSAGE_BYTES for _, size in batch) else "HEADER"
        asked = {uid for uid, _ in batch}
        items = f"(FLAGS INTERNALDATE RFC822.SIZE BODY.PEEK[{section}])"
        rows = fetched(self._uid_fetch(",".join(map(str, sorted(asked))), items))
        return sorted((row for row in rows if row.raw is not None and row.uid in asked), key=attrgetter("uid"))

    def _uid_fetch(self, uids: str, items: str) -> list[Piece]:
        return _taken(self._client.uid("FETCH", uids, items))


def _taken(answer: tuple[str, list[Any]]) -> list[Any]:
    if answer[0] != "OK":
        raise Refused
    return answer[1]


def _batches(sizes: Iterable[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Cut into batches that fit into memory; a large message is one of its own."""
    batch: list[tuple[int, int]] = []
    total = 0
    for uid, size in sizes:
        if batch and (total + size > BATCH_BYTES or len(batch) >= BATCH_MESSAGES):
            yield batch
            batch, total = [], 0
        batch.append((uid, size))
        total += size
    if batch:
        yield batch
