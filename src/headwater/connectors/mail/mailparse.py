"""One message, read from its bytes: headers decoded, a text to read, attachments as bytes once they are asked for.

Parts are found by their place in the raw bytes, outermost first and with a stack, so that neither deep nesting
nor a broken inner part can take the outer ones along. Nothing in a message makes `read_message` raise.
"""

import binascii
import codecs
import hashlib
import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message
from email.parser import HeaderParser
from email.utils import getaddresses, parsedate_to_datetime
from typing import Any, Final, TypeVar

HEAD_BYTES: Final = 256 * 1024
VALUE_CHARACTERS: Final = 16_384
ADDRESSES: Final = 1_000
NESTED_PARTS: Final = 128
PARTS: Final = 2_000

# Mail programs rewrite these in place: they tell a message's state and are no part of its identity.
_VOLATILE = re.compile(
    rb"^(?:Status|X-Status|X-Keywords|X-UID|X-IMAP|X-IMAPbase|Content-Length|Lines|X-Mozilla-Status2?|X-Mozilla-Keys"
    rb"|X-Gmail-Labels):[^\n]*\n(?:[ \t][^\n]*\n)*",
    re.I | re.M,
)
_HEAD = re.compile(rb"(?:[!-9;-~]+[ \t]*:[^\n]*(?:\n|\Z)|[ \t][^\n]*(?:\n|\Z)|>?From [^\n]*(?:\n|\Z))*")
_FOLD = re.compile(r"[ \t]*\r?\n[ \t]*|\r")
_WORD = re.compile(r"=\?([^?\s*]+)(?:\*[^?\s]*)?\?([bBqQ])\?([^?]*)\?=")
_UNFIT = re.compile("[\x00\ud800-\udfff]")
_MIME_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+")
_BASE64_NOISE = re.compile(rb"[^A-Za-z0-9+/]")
# These are slow on hostile input, or no charsets of mail at all.
_REFUSED_CODECS = frozenset({"idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape"})
# What writers mean when they name the smaller charset.
_WIDER_CODECS = {"gb2312": "gb18030", "iso8859-1": "cp1252", "ascii": None}

Result = TypeVar("Result")


class Undecodable(Exception):
    """The bytes of a part cannot be recovered; `reason` is the name of the cause."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class Reading:
    """Turns a message's bytes into text, and notes when something had to be replaced or guessed."""

    def __init__(self) -> None:
        self.lossy = False

    def text(self, data: bytes, charset: str | None) -> str:
        """Decode bytes by the charset that they claim, else as UTF-8, else byte for byte."""
        codec = self._codec(charset)
        for name in (codec, "utf-8"):
            if name is not None:
                try:
                    return self.fit(data.decode(name))
                except ValueError:
                    self.lossy = True
        return self.fit(data.decode(codec or "latin-1", "replace"))

    def _codec(self, charset: str | None) -> str | None:
        if charset is None:
            return None
        try:
            name = codecs.lookup(charset).name
            b"\0\0\0\0".decode(name, "replace")
        except (LookupError, ValueError):
            name = "undefined"
        self.lossy |= name in _REFUSED_CODECS
        return None if name in _REFUSED_CODECS else _WIDER_CODECS.get(name, name)

    def fit(self, text: str) -> str:
        """Replace what JSON or a database cannot hold: halves of surrogate pairs, and NUL."""
        fitting = _UNFIT.sub("\ufffd", text)
        self.lossy |= fitting != text
        return fitting

    def words(self, value: str) -> str:
        """Decode a header value with its encoded words (RFC 2047); neighbours may share a character."""
        value = _FOLD.sub(" ", value)[:VALUE_CHARACTERS]
        runs: list[tuple[str, bytes]] = []
        at = 0
        for match in _WORD.finditer(value):
            between = value[at : match.start()]
            adjoining = at > 0 and not between.strip()
            if between and not adjoining:
                runs.append(("utf-8", between.encode()))
            charset, content = match[1].lower(), self._unworded(match[2], match[3])
            if content is None:
                charset, content = "utf-8", match[0].encode()
            if adjoining and runs[-1][0] == charset:
                content = runs.pop()[1] + content
            runs.append((charset, content))
            at = match.end()
        runs.append(("utf-8", value[at:].encode()))
        return "".join(self.text(content, charset) for charset, content in runs).strip()

    def _unworded(self, encoding: str, payload: str) -> bytes | None:
        try:
            if encoding in "bB":
                return binascii.a2b_base64(payload.encode() + b"==")
            return binascii.a2b_qp(payload.encode(), header=True)
        except ValueError:
            self.lossy = True
            return None

    def head(self, raw: bytes, start: int, stop: int) -> tuple[Message, int]:
        """Read the header fields at a place; return them and where the body begins."""
        bound = min(stop, start + HEAD_BYTES)
        match = _HEAD.match(raw, start, bound)
        end = match.end() if match else start
        self.lossy |= end == bound < stop
        headers: Message = HeaderParser().parsestr(self.text(raw[start:end], None))
        blank = 2 if raw.startswith(b"\r\n", end, stop) else int(raw.startswith(b"\n", end, stop))
        return headers, end + blank

    def ask(self, question: Callable[[], Result], otherwise: Result) -> Result:
        """Ask the email package about a header that may be malformed beyond what it foresees."""
        try:
            return question()
        except (ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError):
            self.lossy = True
            return otherwise

    def addresses(self, headers: Message, name: str) -> list[dict[str, str]]:
        """Read the mailboxes that a header names."""
        values = [_FOLD.sub(" ", str(value))[:VALUE_CHARACTERS] for value in headers.get_all(name, [])]
        pairs = self.ask(lambda: getaddresses(values[:ADDRESSES]), [(value, "") for value in values])
        if values and not any(pair[0] or pair[1] for pair in pairs):
            pairs = [(value, "") for value in values if value.strip()]
        return [{"name": self.words(shown), "address": self.fit(address)} for shown, address in pairs[:ADDRESSES]]

    def value(self, headers: Message, name: str) -> str | None:
        """Read one header's text; None where it is absent."""
        value = headers.get(name)
        return None if value is None else self.words(str(value))


@dataclass(frozen=True)
class Part:
    """A part by its place in the message. `ended` is False where the file stops before the part is closed."""

    number: str
    headers: Message
    start: int
    stop: int
    ended: bool = True

    def encoded(self, raw: bytes) -> tuple[bytes, str]:
        """Return the body as it came, and the name of its transfer encoding."""
        named = str(self.headers.get("content-transfer-encoding") or "7bit").partition(";")[0]
        return raw[self.start : self.stop], named.strip().lower()


@dataclass(frozen=True)
class Attachment:
    """One attachment: what it is called, and its bytes once `content` is asked for."""

    part: Part
    raw: bytes = field(repr=False)
    filename: str | None
    mime_type: str
    content_id: str | None
    inline: bool

    def content(self) -> bytes:
        """Decode the bytes, or raise `Undecodable`."""
        data, encoding = self.part.encoded(self.raw)
        if not self.part.ended and not (encoding == "base64" and data.rstrip().endswith(b"=")):
            raise Undecodable("truncated")
        return decoded(data, encoding)


@dataclass(frozen=True)
class Mail:
    """What was read from a message. `headers` are the raw ones; `fields` go into the record as they are."""

    digest: str
    headers: Message
    fields: dict[str, Any]
    date: str | None
    attachments: tuple[Attachment, ...]


def read_message(raw: bytes, text_characters: int) -> Mail:
    """Read a message; whatever is broken in it is replaced, and `lossy` says so."""
    reading = Reading()
    headers, body = reading.head(raw, 0, len(raw))
    texts: dict[str, list[Part]] = {"text/plain": [], "text/html": []}
    attachments = []
    for part in _leaves(reading, raw, Part("", headers, body, len(raw))):
        attachment = _attachment(reading, raw, part)
        if attachment is None:
            texts[_kind(part)].append(part)
        else:
            attachments.append(attachment)
    fields: dict[str, Any] = {
        "message_id": _bare(reading.value(headers, "message-id")),
        "in_reply_to": _bare(reading.value(headers, "in-reply-to")),
        **{name: reading.addresses(headers, name) for name in ("from", "to", "cc")},
        "subject": reading.value(headers, "subject"),
        **_text_fields(reading, raw, texts, text_characters),
        "labels": _labels(reading, headers),
        "attachment_count": len(attachments),
    }
    fields["lossy"] = reading.lossy
    return Mail(_identity(raw, body), headers, fields, moment(headers.get("date")), tuple(attachments))


def moment(value: object) -> str | None:
    """Read the date of a header or a From_ line as RFC 3339 text in UTC; None where it is none."""
    try:
        date = parsedate_to_datetime(str(value)[:200])
        date = date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    except (ValueError, TypeError, OverflowError, LookupError):
        return None
    return date.isoformat(timespec="seconds").replace("+00:00", "Z")


def from_timestamp(nanoseconds: int) -> str:
    """Write a file's time as RFC 3339 text in UTC."""
    return datetime.fromtimestamp(max(nanoseconds, 0) // 1_000_000_000, UTC).isoformat().replace("+00:00", "Z")


def identifier(folder: str, digest: str) -> str:
    """Return the id of a message in a folder: its copy in another folder is another record."""
    return hashlib.sha256(f"{folder}\0{digest}".encode()).hexdigest()[:32]


def decoded(data: bytes, encoding: str) -> bytes:
    """Undo a transfer encoding, or raise `Undecodable`."""
    match encoding:
        case "7bit" | "8bit" | "binary" | "":
            return data
        case "quoted-printable":
            return binascii.a2b_qp(data)
        case "base64":
            return _unbased(data)
    raise Undecodable("unknown_transfer_encoding")


def _unbased(data: bytes) -> bytes:
    packed = data.translate(None, b" \t\r\n")
    if len(packed) % 4 in (2, 3):
        packed += b"=" * (-len(packed) % 4)
    try:
        return binascii.a2b_base64(packed, strict_mode=True) if packed else b""
    except binascii.Error:
        raise Undecodable("broken_base64") from None


def _identity(raw: bytes, body: int) -> str:
    """Digest a message without its volatile headers, whichever line endings it has."""
    digest = hashlib.sha256(_VOLATILE.sub(b"", raw[:body].replace(b"\r\n", b"\n")))
    digest.update(raw[body:].replace(b"\r\n", b"\n").rstrip(b"\n"))
    return digest.hexdigest()


def _leaves(reading: Reading, raw: bytes, top: Part) -> Iterator[Part]:
    """Yield the parts that hold no further parts, in order."""
    waiting, found = [top], 0
    while waiting:
        part = waiting.pop()
        children = _children(reading, raw, part)
        waiting.extend(reversed(children))
        if not children:
            found += 1
            yield part
        if found + len(waiting) > PARTS:
            reading.lossy = True
            return


def _children(reading: Reading, raw: bytes, part: Part) -> list[Part]:
    if part.headers.get_content_maintype() != "multipart":
        return []
    boundary = reading.ask(part.headers.get_boundary, None)
    if not boundary or part.number.count(".") >= NESTED_PARTS:
        reading.lossy = True
        return []
    spans, closed = _spans(raw, b"--" + boundary.encode(), part.start, part.stop)
    reading.lossy |= not closed
    prefix = f"{part.number}." if part.number else ""
    children = []
    for index, (start, stop) in enumerate(spans, 1):
        headers, body = reading.head(raw, start, stop)
        ended = closed or index < len(spans) or stop < len(raw)
        children.append(Part(f"{prefix}{index}", headers, min(body, stop), stop, ended))
    return children


def _spans(raw: bytes, mark: bytes, start: int, stop: int) -> tuple[list[tuple[int, int]], bool]:
    """Return the places between a multipart's delimiter lines, and whether the last of them was closed."""
    spans: list[tuple[int, int]] = []
    opened, at = None, start
    while (at := raw.find(mark, at, stop)) >= 0 and len(spans) < PARTS:
        end = raw.find(b"\n", at, stop) + 1 or stop
        tail = raw[at + len(mark) : min(end, at + len(mark) + 100)].strip()
        if tail in (b"", b"--") and (at == start or raw[at - 1] == 0x0A):
            if opened is not None:
                spans.append((opened, max(opened, at - (2 if raw[at - 2 : at] == b"\r\n" else 1))))
            if tail:
                return spans, True
            opened = end
        at = end
    if opened is not None:
        spans.append((opened, stop))
    return spans, False


def _kind(part: Part) -> str:
    """Return a leaf's type: a multipart whose parts cannot be told apart is read as text."""
    kind = part.headers.get_content_type()
    return "text/plain" if kind.startswith("multipart/") else kind


def _attachment(reading: Reading, raw: bytes, part: Part) -> Attachment | None:
    """Say what attachment a part is; None where it is the text of the message."""
    headers = part.headers
    kind = _kind(part)
    disposition = reading.ask(headers.get_content_disposition, None)
    filename = reading.ask(headers.get_filename, None)
    if kind in ("text/plain", "text/html") and disposition != "attachment" and not filename:
        return None
    return Attachment(
        part=part if part.number else Part("1", headers, part.start, part.stop),
        raw=raw,
        filename=reading.words(filename) if filename else None,
        mime_type=kind if _MIME_TYPE.fullmatch(kind) else "application/octet-stream",
        content_id=_bare(reading.value(headers, "content-id")),
        inline=disposition == "inline",
    )


def _text_fields(reading: Reading, raw: bytes, texts: dict[str, list[Part]], bound: int) -> dict[str, Any]:
    for kind, parts in texts.items():
        text = "\n".join(filter(None, (_shown(reading, raw, part, kind, bound) for part in parts)))
        if text:
            source = kind.rpartition("/")[2]
            return {"text": text[:bound], "text_source": source, "text_truncated": len(text) > bound}
    return {"text": None, "text_source": None, "text_truncated": False}


def _shown(reading: Reading, raw: bytes, part: Part, kind: str, bound: int) -> str:
    data, encoding = part.encoded(raw)
    try:
        content = decoded(data, encoding)
    except Undecodable:
        reading.lossy = True
        packed = _BASE64_NOISE.sub(b"", data)
        content = binascii.a2b_base64(packed[: len(packed) // 4 * 4]) if encoding == "base64" else data
    text = reading.text(content, reading.ask(part.headers.get_content_charset, None))
    text = text.replace("\r\n", "\n")
    # Markup is worth less than its text: of a long page the first part is enough to fill the bound.
    return (stripped(text[: 16 * bound + 65_536]) if kind == "text/html" else text).strip()


_UNSEEN = re.compile(r"(script|style|head|title)\b", re.I)
_BREAKING = re.compile(r"/?(?:address|blockquote|br|d[dlt]|div|h[1-6r]|li|[ou]l|p|pre|table|t[dhr])(?![a-z0-9])", re.I)


def stripped(markup: str) -> str:
    """Return the text of an HTML page, in one pass: no markup can make it slow."""
    pieces, at = [], 0
    while (opening := markup.find("<", at)) >= 0:
        pieces.append(markup[at:opening])
        at = _past_tag(markup, opening)
        if _BREAKING.match(markup, opening + 1):
            pieces.append("\n")
    lines = html.unescape("".join([*pieces, markup[at:]])).replace("\xa0", " ").split("\n")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(" ".join(line.split()) for line in lines)).strip()


def _past_tag(markup: str, opening: int) -> int:
    """Return where the text goes on after the tag, comment or unseen element that opens here."""
    if markup.startswith("<!--", opening):
        closing = markup.find("-->", opening + 4)
        return len(markup) if closing < 0 else closing + 3
    unseen = _UNSEEN.match(markup, opening + 1)
    if unseen:
        end = re.compile(rf"</{unseen[1]}[^<>]*>", re.I).search(markup, opening)
        return end.end() if end else len(markup)
    closing = markup.find(">", opening)
    return len(markup) if closing < 0 else closing + 1


def _labels(reading: Reading, headers: Message) -> list[str]:
    labels = (reading.value(headers, "x-gmail-labels") or "").split(",")
    for name in ("x-keywords", "x-mozilla-keys"):
        labels += (reading.value(headers, name) or "").split()
    return sorted({label.strip() for label in labels} - {""})


def _bare(value: str | None) -> str | None:
    return value.strip().removeprefix("<").removesuffix(">") or None if value else None
