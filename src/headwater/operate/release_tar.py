"""A gzip tar archive, read once from its first byte to its last, in bounded memory.

Read are the formats of POSIX (ustar, pax) and GNU, as far as regular files and folders go. Whatever could be read in
two ways is refused, and so is every other kind of entry: links, devices, sparse files.
"""

import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from headwater import limits
from headwater.operate.release_index import invalid

_BLOCK: Final = 512
_OCTAL: Final = re.compile(rb" *([0-7]*)[ \0]*")
_RECORD: Final = re.compile(rb"([1-9][0-9]{0,6}) ([^=\n]+)=")
_SIZE: Final = re.compile(rb"[0-9]{1,18}")
_MEANT: Final = frozenset({b"path", b"size"})  # what a pax header may say that changes an entry's name or extent


class Entry(NamedTuple):
    """One file or folder of an archive. `size` is in bytes."""

    name: str
    is_folder: bool
    size: int


class Inflating:
    """What a gzip file inflates to. Raise `release_invalid` beyond `at_most` bytes, or where it is no such file."""

    def __init__(self, content: bytes, at_most: int) -> None:
        self._content = memoryview(content)
        self._at = 0
        self._left = at_most
        self._inflate = zlib.decompressobj(wbits=31)

    def take(self, size: int) -> bytes:
        """Return the next bytes: so many, or fewer at the end only."""
        taken = bytearray()
        while len(taken) < size and (piece := self._piece(size - len(taken))):
            taken += piece
        return bytes(taken)

    def _piece(self, at_most: int) -> bytes:
        while not self._inflate.eof:
            window = self._content[self._at : self._at + limits.RELEASE_PIECE_BYTES]
            try:
                piece = self._inflate.decompress(window, at_most)
            except zlib.error:
                raise invalid("its asset is no gzip file") from None
            unread = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
            self._at += len(window) - len(unread)
            self._left -= len(piece)
            if self._left < 0:
                raise invalid("its asset inflates to more than its files")
            if piece:
                return piece
            if not window and not self._inflate.eof:
                raise invalid("its asset is cut off")
        if self._at < len(self._content):
            raise invalid("something follows in its asset")
        return b""


def entries(archive: Inflating) -> Iterator[Entry]:
    """Yield the entries of an archive. The bytes of a file have to be taken before the next entry is asked for."""
    said: dict[bytes, bytes] = {}
    while any(block := archive.take(_BLOCK)):
        kind, size = _kind(block), _number(block[124:136])
        if kind in (b"x", b"L"):
            content = _content(archive, size)
            said |= _records(content) if kind == b"x" else {b"path": content.partition(b"\0")[0]}
        elif kind == b"g":
            if not _MEANT.isdisjoint(_records(_content(archive, size))):
                raise invalid("its asset says one thing of all entries")
        else:
            entry = _entry(block, kind, said)
            said = {}
            yield entry
            archive.take(-entry.size % _BLOCK)
    if said:
        raise invalid("its asset is cut off")
    _end(archive, block)


def _kind(block: bytes) -> bytes:
    """Return the kind of a header, whose sum has to be right."""
    if len(block) < _BLOCK:
        raise invalid("its asset is cut off")
    if _number(block[148:156]) != sum(block) - sum(block[148:156]) + 8 * ord(" "):
        raise invalid("its asset is no tar archive")
    return block[156:157]


def _entry(block: bytes, kind: bytes, said: Mapping[bytes, bytes]) -> Entry:
    name = said.get(b"path", _name(block))
    is_folder = kind == b"5" or (kind == b"\0" and name.endswith(b"/"))
    if not is_folder and kind not in (b"0", b"\0"):
        raise invalid("an entry of its asset is neither a file nor a folder")
    size = said.get(b"size", b"")
    if size and not _SIZE.fullmatch(size):
        raise invalid("its asset is no tar archive")
    entry = Entry(_text(name), is_folder, int(size) if size else _number(block[124:136]))
    if is_folder and entry.size:
        raise invalid("a folder of its asset has bytes")
    return entry


def _name(block: bytes) -> bytes:
    """Return the name in a header; that of POSIX may have a first part at another place."""
    parts = [block[345:500], block[:100]] if block[257:263] == b"ustar\0" else [block[:100]]
    return b"/".join(text for part in parts if (text := part.partition(b"\0")[0]))


def _text(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise invalid("a name in its asset is not UTF-8") from None


def _number(field: bytes) -> int:
    """Read a number: octal digits, or of GNU the bytes after a first one of 80 (hexadecimal)."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:])
    octal = _OCTAL.fullmatch(field)
    if octal is None:
        raise invalid("its asset is no tar archive")
    return int(octal[1] or b"0", 8)


def _content(archive: Inflating, size: int) -> bytes:
    """Return what a header that says more about an entry holds."""
    if size > limits.RELEASE_ROOM_BYTES:
        raise invalid("a header of its asset is too large")
    content = archive.take(size)
    archive.take(-size % _BLOCK)
    return content


def _records(content: bytes) -> dict[bytes, bytes]:
    """Read the records of a pax header, each `<length> <name>=<value>` and a line feed."""
    records: dict[bytes, bytes] = {}
    at = 0
    while at < len(content):
        begun = _RECORD.match(content, at)
        end = at + int(begun[1]) if begun else 0
        if begun is None or end <= begun.end() or content[end - 1 : end] != b"\n":
            raise invalid("its asset is no tar archive")
        records[begun[2]] = content[begun.end() : end - 1]
        at = end
    if any(name.startswith(b"GNU.sparse.") for name in records):
        raise invalid("an entry of its asset is neither a file nor a folder")
    return records


def _end(archive: Inflating, block: bytes) -> None:
    """Read on to the end: nothing but zeros follows the last entry, and the gzip file's own sum is right."""
    while block:
        if any(block):
            raise invalid("something follows the last entry of its asset")
        block = archive.take(limits.RELEASE_PIECE_BYTES)
