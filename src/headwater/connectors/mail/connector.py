"""Mail that lies on disk: its folders, the messages in them, and their attachments."""

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headwater.sdk import Connector, DetailLane, Fail, RunContext, StreamRun

if TYPE_CHECKING:
    from headwater.connectors.mail import mailparse, mailtree
else:
    import mailparse
    import mailtree

MESSAGE_BYTES: Final = 64 * 1024 * 1024
SAVE_EVERY: Final = 1_000
SKIPS: Final = 200
CURSOR_VERSION: Final = 1

_MAILDIR_FLAGS = re.compile(r"[:;!]2,([A-Za-z]*)$")
_LETTER_FLAGS = {"D": "draft", "F": "flagged", "P": "forwarded", "R": "answered", "S": "seen", "T": "deleted"}
_STATUS_FLAGS = {"R": "seen"}
_X_STATUS_FLAGS = {"A": "answered", "D": "deleted", "F": "flagged", "T": "draft"}
_MOZILLA_FLAGS = {0x1: "seen", 0x2: "answered", 0x4: "flagged", 0x8: "deleted", 0x1000: "forwarded"}

connector = Connector()


@dataclass(frozen=True)
class Options:
    """What the owner set."""

    path: Path
    keep_raw: bool
    text_characters: int
    attachments_per_run: int

    @classmethod
    def of(cls, run: RunContext) -> "Options":
        """Read the options of a run, or end it."""
        path = run.options.get("path")
        if not isinstance(path, str) or not path or "\0" in path:
            raise Fail("Set the option `path` to where the mail lies.", retryable=False, hint="manual_action_required")
        return cls(
            path=Path(path),
            keep_raw=bool(run.options.get("keep_raw", False)),
            text_characters=int(run.options.get("text_characters", 100_000)),
            attachments_per_run=int(run.options.get("attachments_per_run", 100_000)),
        )


@dataclass(frozen=True)
class Origin:
    """Where a message was found, and what its place alone tells of it."""

    folder: str
    place: dict[str, Any]
    date: str
    date_source: str
    flags: frozenset[str] = frozenset()


class Skips:
    """Tells the owner what was skipped: the first of it one by one, the rest as a number."""

    def __init__(self, stream: StreamRun) -> None:
        self._stream = stream
        self._count = 0

    def add(self, reason: str, message: str) -> None:
        """Report one thing that was skipped."""
        self._count += 1
        if self._count <= SKIPS:
            self._stream.skip(reason, message)

    def close(self) -> None:
        """Report how many more there were."""
        if self._count > SKIPS:
            self._stream.skip("more_skips", f"{self._count - SKIPS:,} more messages or folders were skipped")


@cache
def tree_of(path: Path) -> mailtree.Tree:
    """Find the folders once for all streams of the run."""
    return mailtree.discover(path)


@connector.stream("folders")
def folders(stream: StreamRun) -> None:
    """Collect the folders with the number of their messages; a folder that is gone is deleted."""
    options = Options.of(stream.run)
    tree, root, complete = tree_of(options.path), mailtree.shown(options.path), True
    known: dict[str, Any] = stream.cursor.get("folders", {}) if stream.cursor.get("root") == root else {}
    found: dict[str, Any] = {}
    for folder in tree.folders:
        try:
            mark, count = _counted(folder, known.get(folder.path))
        except OSError as error:
            stream.skip("unreadable", f"{folder.path}: {error.strerror}")
            complete = False
            continue
        found[folder.path] = [mark, count]
        stream.emit({"path": folder.path, "name": folder.name, "kind": folder.kind, "message_count": count})
    gone = known.keys() - found.keys()
    if tree.complete and complete:
        for path in sorted(gone):
            stream.delete({"path": path})
    else:
        found.update((path, known[path]) for path in gone)
    stream.save({"root": root, "folders": found})


def _counted(folder: mailtree.Folder, known: Any) -> tuple[list[int], int]:
    """Count a folder's messages, unless it is an mbox that has not changed since."""
    if folder.kind != "mbox":
        return [], len(mailtree.letters(folder)[0])
    with mailtree.opened(folder.place) as descriptor:
        mark = _mark(os.fstat(descriptor))
        if known and known[0] == mark:
            return mark, int(known[1])
        return mark, sum(1 for _ in mailtree.boundaries(descriptor, 0, mark[0]))


def _mark(info: os.stat_result) -> list[int]:
    """Return what changes whenever a file does."""
    return [info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino]


@connector.stream("messages")
def messages(stream: StreamRun) -> None:
    """Collect the messages that are new or changed, and their attachments where the run wants them."""
    options = Options.of(stream.run)
    with ExitStack() as stack:
        wanted = stream.run.wants("attachments")
        lane = stack.enter_context(stream.details("attachments")) if wanted else None
        Collection(stream, lane, options, stream.cursor).walk(tree_of(options.path))


@connector.stream("attachments")
def attachments(stream: StreamRun) -> None:
    """Collect the attachments of every message, where the run wants them and not the messages."""
    if not stream.run.wants("messages"):
        options = Options.of(stream.run)
        Collection(stream, stream.alone("messages"), options, {}).walk(tree_of(options.path))


class Collection:
    """One pass over the messages of a tree, from where the cursor says that the last one came to."""

    def __init__(self, stream: StreamRun, lane: DetailLane | None, options: Options, cursor: dict[str, Any]) -> None:
        self._stream, self._lane, self._options = stream, lane, options
        self._skips = Skips(stream)
        self._basis = {
            "version": CURSOR_VERSION,
            "root": mailtree.shown(options.path),
            "attachments": lane is not None,
            "keep_raw": options.keep_raw,
            "text_characters": options.text_characters,
        }
        same = all(cursor.get(name) == value for name, value in self._basis.items())
        self._entries: dict[str, dict[str, Any]] = dict(cursor["folders"]) if same else {}
        self._taken = 0
        self._unsaved = 0
        self._details: set[str] = set()

    def walk(self, tree: mailtree.Tree) -> None:
        """Read every folder, then save."""
        for reason, message in tree.passed_over:
            self._skips.add(reason, message)
        for folder in tree.folders:
            if self._full:
                break
            reading = self._mbox if folder.kind == "mbox" else self._loose
            try:
                for entry in reading(folder, self._entries.get(folder.path, {})):
                    self._entries[folder.path] = entry
                    self._save_if_due()
            except OSError as error:
                self._skips.add("unreadable", f"{folder.path}: {error.strerror}")
        if self._full:
            self._skips.add("run_bounded", "The run has as many attachments as one may have; the next one goes on")
        if tree.complete:
            present = {folder.path for folder in tree.folders}
            self._entries = {path: entry for path, entry in self._entries.items() if path in present}
        self._skips.close()
        self._save()

    @property
    def _full(self) -> bool:
        return len(self._details) >= self._options.attachments_per_run

    def _save_if_due(self) -> None:
        # A cursor over very many folders is large: it is saved as seldom as it is long.
        if self._unsaved >= max(SAVE_EVERY, len(self._entries)):
            self._save()

    def _save(self) -> None:
        self._unsaved = 0
        if self._stream.name == "messages":
            self._stream.save({**self._basis, "folders": self._entries})
            self._stream.progress(f"{self._taken:,} messages read", count=self._taken)

    def _mbox(self, folder: mailtree.Folder, entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Read an mbox on from its last known message, if all before it is the same; yield how far it is read.

        The last message is always read again: it may have been a part of one that was being delivered.
        """
        with mailtree.opened(folder.place) as descriptor:
            mark = _mark(os.fstat(descriptor))
            if entry.get("stat") == mark:
                return
            size, offset = mark[0], int(entry.get("offset", 0))
            prefix = mailtree.Prefix(descriptor)
            if offset > size or (offset and prefix.upto(offset) != entry.get("digest")):
                offset, prefix = 0, mailtree.Prefix(descriptor)
            modified = mailparse.from_timestamp(mark[1])
            for begin, end in mailtree.spans(descriptor, offset, size):
                offset = begin
                self._span(folder, descriptor, (begin, end), modified)
                if end < size and (self._full or self._unsaved >= SAVE_EVERY):
                    yield {"offset": end, "digest": prefix.upto(end)}
                    if self._full:
                        return
            yield {"stat": mark, "offset": offset, "digest": prefix.upto(offset)}

    def _span(self, folder: mailtree.Folder, descriptor: int, span: tuple[int, int], modified: str) -> None:
        """Take the message in a span of an mbox."""
        begin, end = span
        if end - begin > MESSAGE_BYTES:
            self._too_large(f"{folder.path}, at byte {begin:,}", end - begin)
            return
        date, raw = mailtree.unwrapped(mailtree.read_span(descriptor, begin, end))
        received = mailparse.moment(date)
        place = {"folder": folder.path, "offset": begin}
        self._take(raw, Origin(folder.path, place, received or modified, "from_line" if received else "file_time"))

    def _loose(self, folder: mailtree.Folder, entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Read the files that changed since the last pass; yield how far this one is.

        A pass may take several runs, and files come meanwhile: `next` is where the pass after this one begins,
        and `pass` is the listing as it was when this one did.
        """
        found, settled = mailtree.letters(folder)
        listing = mailtree.listing_digest(found)
        if entry.get("listing") == listing:
            return
        since, following, begun = int(entry.get("since", 0)), entry.get("next", settled), entry.get("pass", listing)
        for index, letter in enumerate(found, 1):
            if letter.changed_ns < since:
                continue
            if not self._letter(folder, letter):
                following, begun = min(following, letter.changed_ns), ""
            later = found[index].changed_ns if index < len(found) else letter.changed_ns
            # Of files that changed at the same moment, all are read or none: the next run could not tell them apart.
            stopping = self._full and later > letter.changed_ns
            if stopping or self._unsaved >= SAVE_EVERY:
                yield {"since": later, "next": following, "pass": begun}
                if stopping:
                    return
        yield {"since": following, "listing": listing} if begun == listing else {"since": following}

    def _letter(self, folder: mailtree.Folder, letter: mailtree.Letter) -> bool:
        """Take the message of one file; return whether there is no need to come back for it."""
        name = mailtree.shown(letter.name)
        where = f"{folder.path}/{name}"
        if letter.size_bytes > MESSAGE_BYTES:
            self._too_large(where, letter.size_bytes)
            return True
        try:
            with mailtree.opened(folder.place / letter.name) as descriptor:
                raw = mailtree.read_span(descriptor, 0, MESSAGE_BYTES)
        except OSError as error:
            gone = isinstance(error, FileNotFoundError)
            self._skips.add("vanished" if gone else "unreadable", f"{where}: {error.strerror}")
            return gone
        if not raw.strip(b"\0\r\n\t "):
            self._skips.add("empty", f"{where} is empty")
            return True
        flags = _MAILDIR_FLAGS.search(name) if folder.kind == "maildir" else None
        origin = Origin(
            folder=folder.path,
            place={"folder": folder.path, "file": name},
            date=mailparse.from_timestamp(letter.modified_ns),
            date_source="file_time",
            flags=_named(_LETTER_FLAGS, flags[1] if flags else ""),
        )
        self._take(raw, origin)
        return True

    def _too_large(self, where: str, size: int) -> None:
        self._skips.add("too_large", f"{where}: the message has {size:,} bytes, and {MESSAGE_BYTES:,} are read")

    def _take(self, raw: bytes, origin: Origin) -> None:
        """Emit a message, then its attachments."""
        mail = mailparse.read_message(raw, self._options.text_characters)
        if not mail.headers and "file" in origin.place:
            self._skips.add("not_a_message", f"{origin.folder}/{origin.place['file']} has no header of a message")
            return
        self._taken += 1
        self._unsaved += 1
        record = {
            "id": mailparse.identifier(origin.folder, mail.digest),
            "folder": origin.folder,
            "content_sha256": mail.digest,
            "source_created_at": mail.date or origin.date,
            "date_source": "date_header" if mail.date else origin.date_source,
            **mail.fields,
            "flags": sorted(origin.flags | _header_flags(mail)),
            "size_bytes": len(raw),
        }
        if self._stream.name == "messages":
            if self._options.keep_raw:
                record["blob_ref"] = self._blob(raw, "message/rfc822")
            if not self._stream.emit(record):
                return
        if self._lane is not None:
            for attachment in mail.attachments:
                self._attach(self._lane, attachment, record, origin)

    def _blob(self, content: bytes, mime_type: str) -> dict[str, Any]:
        """Hand bytes to the host; where it cannot take them the run ends, for the source is not to blame."""
        try:
            return self._stream.run.blob(content, mime_type)
        except OSError as error:
            raise Fail(f"There is no place to keep the bytes of the mail: {error.strerror}.") from error

    def _attach(
        self, lane: DetailLane, attachment: mailparse.Attachment, message: dict[str, Any], origin: Origin
    ) -> None:
        """Emit one attachment, or report the gap that it leaves."""
        key = f"{message['id']}:{attachment.part.number}"
        if key in self._details:
            return
        self._details.add(key)
        lane.require(key)
        try:
            content = attachment.content()
        except mailparse.Undecodable as cause:
            locator = {**origin.place, "message": message["id"], "part": attachment.part.number}
            lane.gap(key, cause.reason, locator=locator, retryable=False)
            return
        lane.emit(
            {
                "id": key,
                "message": message["id"],
                "folder": origin.folder,
                "part": attachment.part.number,
                "source_created_at": message["source_created_at"],
                "filename": attachment.filename,
                "mime_type": attachment.mime_type,
                "size_bytes": len(content),
                "content_id": attachment.content_id,
                "inline": attachment.inline,
                "blob_ref": self._blob(content, attachment.mime_type),
            }
        )


def _header_flags(mail: mailparse.Mail) -> frozenset[str]:
    """Read the flags that mail programs keep in a message's own headers."""
    status, x_status = (str(mail.headers.get(name) or "") for name in ("status", "x-status"))
    try:
        bits = int(str(mail.headers.get("x-mozilla-status") or "0")[:8], 16)
    except ValueError:
        bits = 0
    mozilla = {name for bit, name in _MOZILLA_FLAGS.items() if bits & bit}
    return _named(_STATUS_FLAGS, status) | _named(_X_STATUS_FLAGS, x_status) | mozilla


def _named(table: dict[str, str], letters: str) -> frozenset[str]:
    return frozenset(table[letter] for letter in letters if letter in table)


if __name__ == "__main__":
    connector.run()
