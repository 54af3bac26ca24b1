"""Where mail lies on disk: the folders below a path, and the messages in each.

Folder     an mbox file, a Maildir, or a directory with .eml files
Tree       the folders that were found, what was passed over, and whether everything was seen
Letter     a file with one message, in a Maildir or an .eml directory
Prefix     a running digest of an mbox's beginning, to tell an append from a rewrite

Nothing here follows a symbolic link below the path, opens anything but a regular file, or holds a whole mbox.
"""

import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple

from headwater.sdk import Fail

FOLDERS: Final = 50_000
CHUNK_BYTES: Final = 1 << 20
# Enough before and after a "From " to see the blank line above it and the header below it.
_BEHIND_BYTES: Final = 4
_AHEAD_BYTES: Final = 2_048
_FROM_LINE_BYTES: Final = 256

Kind = Literal["mbox", "maildir", "eml"]

_DATED = re.compile(rb"From .*\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b,? .*\b\d{4}\b")
_FIELD = re.compile(rb"[!-9;-~]+[ \t]*:")
_QUOTED = re.compile(rb"^>(>*From )", re.M)
_DATE = re.compile(rb"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b,? .*")
_ENCODED_NAME = re.compile(r"&([A-Za-z0-9+,]*)-")


@dataclass(frozen=True)
class Folder:
    """A mail folder. `path` names it below the root, in text that JSON can hold; `place` is where it lies.

    `only` is set where a single .eml file was asked for, and not its whole directory.
    """

    path: str
    name: str
    kind: Kind
    place: Path
    only: str | None = None


@dataclass
class Tree:
    """What a walk found. Where `complete` is False, a folder that is missing here may still exist."""

    folders: list[Folder] = field(default_factory=list)
    passed_over: list[tuple[str, str]] = field(default_factory=list)
    complete: bool = True

    def pass_over(self, reason: str, message: str, *, unseen: bool = False) -> None:
        """Note something that was left out; `unseen` where it may hold folders."""
        self.passed_over.append((reason, message))
        self.complete = self.complete and not unseen


class Letter(NamedTuple):
    """A file with one message. Its change time moves when it is written, renamed or flagged."""

    changed_ns: int
    name: str
    size_bytes: int
    modified_ns: int


def shown(path: str | Path) -> str:
    """Return a path as text that JSON can hold, with bytes that are not UTF-8 written in hexadecimal."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def discover(root: Path) -> Tree:
    """Find the mail folders at and below a path; raise `Fail` where there is no mail."""
    tree = Tree()
    try:
        root = root.resolve(strict=True)
        mode = root.stat().st_mode
        if stat.S_ISDIR(mode):
            _walk(tree, root)
        elif stat.S_ISREG(mode):
            _single_file(tree, root)
    except (OSError, RuntimeError) as error:
        cause = getattr(error, "strerror", None) or "it leads back to itself"
        raise Fail(f"The option `path` cannot be read: {cause}.", hint="manual_action_required") from error
    if not tree.folders:
        seen = "" if tree.complete else ", and not all of it could be read"
        raise Fail(
            f"The option `path` leads to no mail{seen}: it needs an mbox file, a Maildir, .eml files, "
            "or a folder with any of these.",
            retryable=not tree.complete,
            code="no_mail",
            hint="manual_action_required",
        )
    return tree


def _single_file(tree: Tree, file: Path) -> None:
    if file.suffix.lower() == ".eml":
        tree.folders.append(Folder(shown(file.name), shown(file.stem), "eml", file.parent, file.name))
    elif file.stat().st_size == 0 or _is_mbox(file):
        tree.folders.append(_mbox_folder(file.parent, file))


def _walk(tree: Tree, root: Path) -> None:
    waiting, links = [root], 0
    while waiting:
        place = waiting.pop()
        try:
            with os.scandir(place) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            tree.pass_over("unreadable", f"{_below(root, place)}: {error.strerror}", unseen=True)
            continue
        links += sum(entry.is_symlink() for entry in entries)
        directories = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        _note_folders(tree, root, place, entries, directories)
        inner = {"cur", "new", "tmp"} if _is_maildir(directories) else set()
        waiting.extend(place / name for name in reversed(directories) if name not in inner)
        if len(tree.folders) > FOLDERS:
            tree.pass_over("too_many_folders", f"Only the first {FOLDERS:,} folders are read.", unseen=True)
            break
    if links:
        tree.pass_over("symbolic_links", f"{links} symbolic link{'s' if links > 1 else ''} not followed")


def _note_folders(tree: Tree, root: Path, place: Path, entries: list[os.DirEntry[str]], directories: list[str]) -> None:
    names = {entry.name for entry in entries if entry.is_file(follow_symlinks=False)}
    letters = {name for name in names if name.lower().endswith(".eml")}
    if _is_maildir(directories):
        tree.folders.append(Folder(_below(root, place), _maildir_name(place), "maildir", place))
    elif letters:
        tree.folders.append(Folder(_below(root, place), shown(place.name), "eml", place))
    for name in sorted(names - letters):
        # An empty file is a mail folder only where its name, or the index beside it, says so.
        claimed = name.lower().endswith(".mbox") or f"{name}.msf" in names
        _note_file(tree, root, place / name, claimed)


def _note_file(tree: Tree, root: Path, file: Path, claimed: bool) -> None:
    """Take a file for an mbox by its first bytes; an empty one, if it claims to be one."""
    try:
        if _is_mbox(file) or (claimed and file.stat().st_size == 0):
            tree.folders.append(_mbox_folder(root, file))
        elif file.suffix.lower() == ".mbox":
            tree.pass_over("not_an_mbox", f"{_below(root, file)} does not begin as an mbox does")
    except OSError as error:
        tree.pass_over("unreadable", f"{_below(root, file)}: {error.strerror}", unseen=True)


def _is_maildir(directories: list[str]) -> bool:
    return "cur" in directories and ("new" in directories or "tmp" in directories)


def _below(root: Path, place: Path) -> str:
    return shown(place.relative_to(root))


def _mbox_folder(root: Path, file: Path) -> Folder:
    named = file.parent if file.name == "mbox" and file.parent != root else file
    return Folder(_below(root, file), shown(named.name).removesuffix(".mbox"), "mbox", file)


def _maildir_name(place: Path) -> str:
    """Return the last part of a Maildir++ name, whose letters beyond ASCII are in IMAP's own UTF-7."""
    last = shown(place.name).removeprefix(".").rpartition(".")[2] or shown(place.name)
    return _ENCODED_NAME.sub(_utf7, last)


def _utf7(match: re.Match[str]) -> str:
    try:
        text = ("+" + match[1].replace(",", "/") + "-").encode().decode("utf-7") if match[1] else "&"
        return text if text.encode() else match[0]
    except UnicodeError:
        return match[0]


# Files.


@contextmanager
def opened(file: Path) -> Iterator[int]:
    """Open a regular file for reading; anything else is refused without waiting for it."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def read_span(descriptor: int, start: int, stop: int) -> bytes:
    """Read the bytes between two offsets; fewer where the file ends before."""
    pieces = []
    while start < stop and (piece := os.pread(descriptor, stop - start, start)):
        pieces.append(piece)
        start += len(piece)
    return b"".join(pieces)


def letters(folder: Folder) -> tuple[list[Letter], int]:
    """List a Maildir or an .eml directory, oldest change first, and the time before which the list is final.

    What comes or changes while the list is made has a change time no earlier than any that was there before it.
    """
    inner = [""] if folder.kind == "eml" else [name for name in ("new", "cur") if (folder.place / name).is_dir()]
    if not inner:
        raise FileNotFoundError(errno.ENOENT, "it is no longer there")
    settled = max(os.stat(folder.place / name).st_ctime_ns for name in inner)
    found: list[Letter] = []
    for name in inner:
        with os.scandir(folder.place / name) as entries:
            found.extend(
                _letter(os.path.join(name, entry.name), entry.stat(follow_symlinks=False))
                for entry in entries
                if _is_letter(folder, entry)
            )
    found.sort()
    return found, settled


def _is_letter(folder: Folder, entry: os.DirEntry[str]) -> bool:
    if folder.only is not None:
        return entry.name == folder.only
    named = entry.name.lower().endswith(".eml") if folder.kind == "eml" else not entry.name.startswith(".")
    return named and entry.is_file(follow_symlinks=False)


def _letter(name: str, info: os.stat_result) -> Letter:
    return Letter(info.st_ctime_ns, name, info.st_size, info.st_mtime_ns)


def listing_digest(found: list[Letter]) -> str:
    """Return the digest of a list: it changes when a file comes, goes, is renamed or rewritten."""
    digest = hashlib.blake2b(digest_size=16)
    for letter in found:
        digest.update(b"%d %d %s\0" % (letter.changed_ns, letter.size_bytes, os.fsencode(letter.name)))
    return digest.hexdigest()


# The mbox format.


def _is_mbox(file: Path) -> bool:
    with opened(file) as descriptor:
        head = read_span(descriptor, 0, 2 * _AHEAD_BYTES).lstrip(b"\r\n")
    return head.startswith(b"From ") and _begins(head, 0)


def _begins(window: bytes, at: int) -> bool:
    """Say whether the "From " here begins a message.

    After a blank line it must either bear a date or stand above a header field; without one, both.
    """
    if at and window[at - 1] != 0x0A:
        return False
    first, _, rest = window[at : at + _AHEAD_BYTES].partition(b"\n")
    dated = _DATED.match(first[:_FROM_LINE_BYTES]) is not None
    headed = _FIELD.match(rest) is not None
    blank = at == 0 or window[:at].endswith((b"\n\n", b"\n\r\n")) or not window[:at].strip(b"\r\n")
    return (dated or headed) if blank else (dated and headed)


def boundaries(descriptor: int, start: int, stop: int) -> Iterator[int]:
    """Yield the offset of each message that begins in a span of an mbox, reading it in chunks."""
    base = max(start - _BEHIND_BYTES, 0)
    window, scanned, ended = b"", start, False
    while not ended:
        fresh = base + len(window)
        chunk = read_span(descriptor, fresh, min(fresh + CHUNK_BYTES, stop))
        ended = not chunk
        window += chunk
        settled = len(window) if ended else max(len(window) - _AHEAD_BYTES, 0)
        at = scanned - base
        while 0 <= (at := window.find(b"From ", at)) < settled:
            if _begins(window[max(at - _BEHIND_BYTES, 0) : at + _AHEAD_BYTES], min(at, _BEHIND_BYTES)):
                yield base + at
            at += 1
        scanned = max(scanned, base + settled)
        dropped = max(settled - _BEHIND_BYTES, 0)
        base, window = base + dropped, window[dropped:]


def spans(descriptor: int, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield where each message of an mbox begins and ends, between two offsets."""
    begin = None
    for offset in boundaries(descriptor, start, stop):
        if begin is not None:
            yield begin, offset
        begin = offset
    if begin is not None:
        yield begin, stop


def unwrapped(raw: bytes) -> tuple[str | None, bytes]:
    """Take a message out of its mbox: the date of its From_ line, and its bytes without the quoting."""
    first, _, rest = raw.partition(b"\n")
    date = _DATE.search(first[:_FROM_LINE_BYTES])
    if b">From " in rest:
        rest = _QUOTED.sub(rb"\1", rest)
    blank = 2 if rest.endswith(b"\r\n\r\n") else int(rest.endswith(b"\n\n"))
    return (date[0].decode("latin-1") if date else None), rest[: len(rest) - blank]


class Prefix:
    """A running digest of the bytes of a file before an offset."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._offset = 0
        self._digest = hashlib.blake2b(digest_size=16)

    def upto(self, offset: int) -> str:
        """Return the digest of everything before an offset that is no earlier than the last one."""
        while self._offset < offset:
            chunk = read_span(self._descriptor, self._offset, min(self._offset + CHUNK_BYTES, offset))
            if not chunk:
                break
            self._digest.update(chunk)
            self._offset += len(chunk)
        return self._digest.copy().hexdigest()
