"""One pass over the messages of an account, from where the cursor says that the last one came to."""

import hashlib
import json
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from headwater.connectors.imap.account import Account, Selected
from headwater.connectors.imap.places import Generation, Listing, Place
from headwater.connectors.imap.records import attachment_record, message_record, without_body
from headwater.connectors.imap.responses import Fetched, Refused
from headwater.connectors.imap.server import MESSAGE_BYTES
from headwater.connectors.imap.uids import Uids
from headwater.connectors.mail import mailparse
from headwater.sdk import DetailLane, Fail, StreamRun

SAVE_EVERY: Final = 1_000
# A run's report names each attachment twice, in one line.
LANE_BYTES: Final = 4 * 1024 * 1024
_VERSION: Final = 1


class Full(Exception):
    """The run has as much as one may have."""


@dataclass(frozen=True)
class Bounds:
    """How much of a message's text is kept, and after how much new mail a run stops in good order."""

    text_characters: int
    messages_per_run: int


class Walk:
    """Reads mailboxes on from a cursor: what came, what changed its flags, what is gone."""

    def __init__(self, stream: StreamRun, lane: DetailLane | None, account: Account, bounds: Bounds) -> None:
        self._stream, self._lane, self._account = stream, lane, account
        self._bounds = bounds
        whose = hashlib.sha256(f"{account.host}\0{account.username}".encode()).hexdigest()[:16]
        self._basis = {"version": _VERSION, "account": whose}
        self._reading = {"text_characters": bounds.text_characters, "attachments": lane is not None}
        self._places: dict[str, Place] = {}
        cursor = stream.cursor
        if all(cursor.get(name) == value for name, value in self._basis.items()):
            self._places = {name: Place.of(saved) for name, saved in cursor["mailboxes"].items()}
            if cursor["reading"] != self._reading:
                self._places = {name: place.begun_anew(place.now.validity) for name, place in self._places.items()}
        self._taken = self._fresh = self._unsaved = self._lane_bytes = 0

    def all(self, mailboxes: Mapping[str, bytes], gone: Iterable[str]) -> None:
        """Read mailboxes by their names; those that are gone lose their messages."""
        for name in gone:
            if place := self._places.pop(name, None):
                for generation in (place.now, *place.old):
                    self._delete(name, generation, generation.known)
        try:
            for name, raw in mailboxes.items():
                with self._opened(name):
                    self._mailbox(name, raw)
        except Full:
            self._stream.skip("run_bounded", "The run has as much new mail as one may have; the next one goes on.")
        self.save()

    def unknown(self, listed: Container[str]) -> list[str]:
        """Return the mailboxes of the cursor that a whole list lacks."""
        return [name for name in self._places if name not in listed]

    def only(self, mailbox: str, raw: bytes, validity: int, uids: Iterable[int]) -> None:
        """Read some messages of a mailbox, whatever the cursor says."""
        with self._opened(mailbox):
            if self._account.examine(raw).validity == validity:
                generation = Generation(validity)
                for batch in self._account.messages(self._account.sizes(sorted(uids))):
                    for row in batch:
                        self._take(mailbox, generation, row)

    @contextmanager
    def _opened(self, mailbox: str) -> Iterator[None]:
        """Leave out, aloud, a mailbox that the server does not open, or whose name no command can hold."""
        try:
            yield
        except Refused:
            self._stream.skip("unreadable", f"The server does not open the mailbox {mailbox}.")

    def save(self) -> None:
        """Save how far the mailboxes are read."""
        self._unsaved = 0
        if self._stream.name == "messages" and self._stream.resources is None:
            saved = {name: place.saved() for name, place in self._places.items()}
            self._stream.save({**self._basis, "reading": self._reading, "mailboxes": saved})
        self._stream.progress(f"{self._taken:,} messages read", count=self._taken)

    def _save_if_due(self) -> None:
        # A cursor over torn mailboxes is long: it is saved as seldom as it is long.
        if self._unsaved >= max(SAVE_EVERY, sum(place.weight for place in self._places.values())):
            self.save()

    def _mailbox(self, name: str, raw: bytes) -> None:
        selected = self._account.examine(raw)
        place = self._places.get(name) or Place(Generation(selected.validity))
        if place.now.validity != selected.validity:
            place = place.begun_anew(selected.validity)
        self._places[name] = place
        if selected.modseq is None:
            self._by_listing(name, place, selected)
        else:
            self._by_modseq(name, raw, place, selected)
        for old in place.old:
            self._delete(name, old, old.known.without(place.now.known if old.validity == selected.validity else ()))
        place.old = []

    def _by_modseq(self, name: str, raw: bytes, place: Place, selected: Selected) -> None:
        """Read a mailbox whose server counts changes (RFC 7162)."""
        listing, known = Listing(), place.now.known
        if selected.next_uid is None or selected.next_uid > place.following:
            listing = self._listed(selected, place.following, "(UID RFC822.SIZE)")
        missing = len(known) - (selected.exists - len(listing))
        changed, gone = Listing(), Uids()
        if known and place.modseq != selected.modseq:
            rows, vanished = self._account.changes(place.following - 1, place.modseq or 1)
            changed.take(row for row in rows if row.uid in known)
            gone = known.among(Uids(vanished))
        late: list[tuple[int, int]] = []
        if missing != len(gone):
            # What the counts do not explain is asked for whole. The mailbox is opened again: numbers may have moved.
            present = self._listed(self._account.examine(raw), 1, "(UID RFC822.SIZE)")
            gone = known.without(present.uids())
            late = [pair for pair in present.sizes() if pair[0] < place.following and pair[0] not in known]
        self._forget(name, place, gone)
        self._read(name, place, changed.sizes())
        place.modseq = selected.modseq
        self._read(name, place, chain(late, listing.sizes()))
        place.following = max(place.following, selected.next_uid or 0)

    def _by_listing(self, name: str, place: Place, selected: Selected) -> None:
        """Read a mailbox by its whole list of UIDs and flags."""
        listing = self._listed(selected, 1, "(UID FLAGS RFC822.SIZE)")
        self._forget(name, place, place.now.known.without(listing.uids()))
        flags = listing.flags(place.now.known)
        differing = place.differing(flags)
        known = place.now.known
        self._read(name, place, (pair for pair in listing.sizes() if pair[0] in differing and pair[0] in known))
        place.modseq, place.flags = None, flags
        self._read(name, place, (pair for pair in listing.sizes() if pair[0] not in known), noting=True)
        place.following = max(place.following, selected.next_uid or 0)

    def _listed(self, selected: Selected, first_uid: int, items: str) -> Listing:
        listing = Listing()
        for window in self._account.listing(selected.exists, first_uid, items):
            listing.take(window)
        # What is not whole proves of nothing that it is gone.
        if first_uid == 1 and len(listing) < selected.exists:
            raise Refused
        return listing

    def _read(self, name: str, place: Place, sizes: Iterable[tuple[int, int]], *, noting: bool = False) -> None:
        """Read messages in the order of their UIDs, and save every thousand how far that is."""
        for batch in self._account.messages(sizes):
            for row in batch:
                self._take(name, place.now, row)
                self._fresh += row.uid not in place.now.known
                place.now.known.add(row.uid)
                place.following = max(place.following, row.uid + 1)
                if noting:
                    place.note(row)
            self._save_if_due()
            if self._fresh >= self._bounds.messages_per_run or self._lane_bytes >= LANE_BYTES:
                raise Full

    def _take(self, name: str, generation: Generation, row: Fetched) -> None:
        """Emit a message, then its attachments."""
        mail = mailparse.read_message(row.raw or b"", self._bounds.text_characters)
        whole = (row.size_bytes or 0) <= MESSAGE_BYTES
        record = message_record(name, generation.validity, row, mail)
        self._taken += 1
        self._unsaved += 1
        wanted = self._stream.name != "messages" or self._stream.emit(record if whole else without_body(record))
        # An attachment never changes: where only a flag did, it came before.
        if self._lane is not None and whole and wanted and row.uid not in generation.known and mail.attachments:
            generation.parts[str(row.uid)] = ",".join(one.part.number for one in mail.attachments)
            for attachment in mail.attachments:
                self._attach(self._lane, record, attachment)

    def _attach(self, lane: DetailLane, message: dict[str, Any], attachment: mailparse.Attachment) -> None:
        """Emit one attachment, or report the gap that it leaves."""
        key = _key(message["mailbox"], message["uidvalidity"], message["uid"], attachment.part.number)
        self._lane_bytes += len(json.dumps(key)) + 4
        lane.require(key)
        try:
            content = attachment.content()
        except mailparse.Undecodable as cause:
            locator = dict(zip(("mailbox", "uidvalidity", "uid", "part"), key, strict=True))
            lane.gap(key, cause.reason, locator=locator, retryable=False)
            return
        try:
            blob = self._stream.run.blob(content, attachment.mime_type)
        except OSError as error:
            raise Fail(f"There is no place to keep the bytes of the mail: {error.strerror}.") from error
        lane.emit(attachment_record(message, attachment, blob))

    def _forget(self, name: str, place: Place, gone: Uids) -> None:
        if gone:
            self._delete(name, place.now, gone)
            place.now.known = place.now.known.without(gone)

    def _delete(self, name: str, generation: Generation, gone: Uids) -> None:
        """Say that messages are gone, and their attachments with them."""
        for uid in gone:
            key = {"mailbox": name, "uidvalidity": generation.validity, "uid": uid}
            if self._stream.name == "messages":
                self._stream.delete(key)
            for part in filter(None, generation.parts.pop(str(uid), "").split(",")):
                if self._stream.run.wants("attachments"):
                    self._stream.run.stream("attachments").delete({**key, "part": part})
            self._unsaved += 1


def _key(mailbox: str, validity: int, uid: int, part: str) -> list[str]:
    return [mailbox, str(validity), str(uid), part]
