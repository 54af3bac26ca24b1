"""What an IMAP server answers (RFC 9051), as imaplib hands it over: lines, and literals beside the line before them."""

import base64
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

_UID = re.compile(rb"\bUID (\d{1,10})")
_SIZE = re.compile(rb"RFC822\.SIZE (\d{1,19})")
_FLAGS = re.compile(rb"FLAGS \(([^()]*)\)")
_DATE = re.compile(rb'INTERNALDATE "([^"]{1,40})"')
_BODY = re.compile(rb"BODY\[(?:HEADER)?\] \{\d+\}$")
_SHORT_BODY = re.compile(rb'BODY\[(?:HEADER)?\] (?:NIL|"((?:[^"\\]|\\.)*)")')
_BEGIN = re.compile(rb"\d+ \(")
_LIST = re.compile(rb'\(([^()]*)\) (NIL|"(?:\\.|[^"\\])*") (.*)', re.DOTALL)
_STATUS = re.compile(rb"\(([^()]*)\)\s*$")
_SHIFTED = re.compile(r"&([A-Za-z0-9+,]*)-")
_UNFIT = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")

Piece = bytes | tuple[bytes, bytes] | None


class Refused(Exception):
    """The server answered NO, or could not even be asked."""


class Listed(NamedTuple):
    """A mailbox of a LIST: its name as the server writes it, and its attributes without their backslash."""

    raw: bytes
    delimiter: str | None
    attributes: frozenset[str]


class Fetched(NamedTuple):
    """One message of a FETCH; what was not asked for, or not answered, is None."""

    uid: int
    size_bytes: int | None
    flags: tuple[str, ...] | None
    received_at: str | None
    raw: bytes | None


def fetched(pieces: Iterable[Piece]) -> Iterator[Fetched]:
    """Read the answers to a FETCH; those without a UID, which nobody asked for, are left out."""
    line, raw = b"", None
    for piece in pieces:
        text, literal = piece if isinstance(piece, tuple) else (piece or b"", None)
        if _BEGIN.match(text) and line:
            yield from _message(line, raw)
            line, raw = b"", None
        line += b" " + text
        if literal is not None and _BODY.search(text):
            raw = literal
    yield from _message(line, raw)


def _message(line: bytes, raw: bytes | None) -> Iterator[Fetched]:
    uid, size, flags = _UID.search(line), _SIZE.search(line), _FLAGS.search(line)
    if uid is None:
        return
    short = _SHORT_BODY.search(line) if raw is None else None
    yield Fetched(
        uid=int(uid[1]),
        size_bytes=int(size[1]) if size else None,
        flags=tuple(flags[1].decode("utf-8", "replace").split()) if flags else None,
        received_at=_moment(_DATE.search(line)),
        raw=re.sub(rb"\\(.)", rb"\1", short[1] or b"") if short else raw,
    )


def _moment(found: re.Match[bytes] | None) -> str | None:
    """Read an INTERNALDATE as RFC 3339 text in UTC; None where it is no date."""
    try:
        date = datetime.strptime((found[1] if found else b"").decode("ascii").strip(), "%d-%b-%Y %H:%M:%S %z")
        return date.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError):
        return None


def listed(pieces: Iterable[Piece]) -> Iterator[Listed]:
    """Read the answers to a LIST."""
    for piece in pieces:
        text, literal = piece if isinstance(piece, tuple) else (piece or b"", None)
        found = _LIST.match(text)
        if found is None:
            continue
        delimiter = None if found[2] == b"NIL" else unquoted(found[2]).decode("ascii", "replace")
        attributes = found[1].decode("ascii", "replace").replace("\\", "").lower().split()
        yield Listed(unquoted(found[3]) if literal is None else literal, delimiter, frozenset(attributes))


def status(pieces: Iterable[Piece]) -> dict[str, int]:
    """Read the numbers of a STATUS by their names in lower case."""
    for piece in pieces:
        found = _STATUS.search(piece if isinstance(piece, bytes) else b"".join(piece or ()))
        words = found[1].decode("ascii", "replace").lower().split() if found else []
        if words:
            pairs = zip(words[::2], words[1::2], strict=False)
            return {name: int(value) for name, value in pairs if value.isdecimal()}
    return {}


def unquoted(text: bytes) -> bytes:
    """Undo the quotes of a string, if it has any."""
    if len(text) >= 2 and text.startswith(b'"') and text.endswith(b'"'):
        return re.sub(rb"\\(.)", rb"\1", text[1:-1], flags=re.DOTALL)
    return text


def quoted(name: bytes) -> bytes:
    """Put a mailbox's name into a command; raise `Refused` for one that no quoted string can hold."""
    if re.search(rb"[\x00\r\n]", name):
        raise Refused
    return b'"' + re.sub(rb'(["\\])', rb"\\\1", name) + b'"'


def named(raw: bytes) -> str:
    """Decode a mailbox's name from modified UTF-7 (RFC 3501 section 5.1.3); one that is none stays as it came."""
    text = raw.decode("utf-8", "backslashreplace")
    try:
        name = _SHIFTED.sub(lambda found: _unshifted(found[1]), text)
    except ValueError:
        name = text
    return _UNFIT.sub("\ufffd", name)


def _unshifted(code: str) -> str:
    if not code:
        return "&"
    packed = code.replace(",", "/").encode("ascii")
    return base64.b64decode(packed + b"=" * (-len(packed) % 4)).decode("utf-16-be")
