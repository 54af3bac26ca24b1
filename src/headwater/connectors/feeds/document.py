"""A feed's bytes into its elements, whatever is wrong with them: in one pass, each entry on its own.

Nothing outside the document is ever read, and a document that declares entities of its own is refused: a kilobyte of
them can stand for gigabytes.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.entities import html5
from typing import Final
from xml.parsers import expat

from headwater.connectors.mail import mailparse

DEPTH: Final = 200
ENTRIES: Final = 2_000
ATOM: Final = ("http://www.w3.org/2005/Atom", "http://purl.org/atom/ns#")
# Prefixes that mean these namespaces, whichever ones a document chose, or forgot to declare.
_PREFIXES: Final = {
    **dict.fromkeys(ATOM, "atom"),
    "http://purl.org/rss/1.0/": "",
    "http://my.netscape.com/rdf/simple/0.9/": "",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#": "rdf",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://purl.org/rss/1.0/modules/content/": "content",
}
_ROOTS: Final = {"rss": "rss", "rdf:RDF": "rdf", "feed": "atom", "channel": "rss"}
_DECLARED = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")
_MARKS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_AMPERSAND = re.compile(r"&(?:(#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)?")
_ILLEGAL = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class NotAFeed(Exception):
    """The bytes are no feed; the message says why, and repeats nothing of them."""


@dataclass
class Element:
    """An element with its children. Where its type is `xhtml`, `text` holds the markup, tags and all."""

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list["Element"] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    def all(self, *names: str) -> Iterator["Element"]:
        """Yield the children of some names."""
        return (child for child in self.children if child.name in names)

    def first(self, *names: str) -> "Element | None":
        """Return the first child of the first name that has one."""
        return next((child for name in names for child in self.all(name)), None)

    def said(self, *names: str) -> str:
        """Return the text of the first child of the first name that says anything."""
        return next(filter(None, (child.text for name in names for child in self.all(name))), "")

    @property
    def text(self) -> str:
        """The text of the element itself."""
        return "".join(self.pieces).strip()


@dataclass(frozen=True)
class Feed:
    """A document: its kind, what it says of itself, and its entries. `lossy` says that something had to be mended."""

    kind: str
    version: str
    about: Element
    entries: list[Element]
    lossy: bool


def read_feed(raw: bytes, charset: str | None) -> Feed:
    """Read a feed; `charset` is what the server calls it. Raise `NotAFeed` where there is nothing to be read."""
    reading = mailparse.Reading()
    text = _decoded(reading, raw, charset).lstrip("\ufeff \t\r\n\0\ufffd")
    strict = _Reader()
    if strict.read(text):
        return strict.feed(lossy=reading.lossy)
    mended = _Reader()
    mended.read(_mended(text))
    return mended.feed(lossy=True)


def _decoded(reading: mailparse.Reading, raw: bytes, charset: str | None) -> str:
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return reading.text(raw[len(mark) :], encoding)
    declared = _DECLARED.match(raw.lstrip()[:300])
    return reading.text(raw, charset or (declared[1].decode("ascii") if declared else None))


def _mended(text: str) -> str:
    """Undo what feeds do most often against XML: bare ampersands, entities of HTML, control characters."""
    text = _ILLEGAL.sub("", text)
    parts, at = [], 0
    while (begin := text.find("<![CDATA[", at)) >= 0 and (end := text.find("]]>", begin)) >= 0:
        parts += [_AMPERSAND.sub(_reference, text[at:begin]), text[begin : end + 3]]
        at = end + 3
    return "".join([*parts, _AMPERSAND.sub(_reference, text[at:])])


def _reference(found: re.Match[str]) -> str:
    name = found[1]
    if name is None:
        return "&amp;"
    if name in {"amp", "lt", "gt", "quot", "apos"} or name.startswith("#"):
        return found[0]
    character = html5.get(f"{name};")
    return character if character is not None and character not in "<&" else f"&amp;{name};"


class _Reader:
    """Builds what is inside of entries, and what a feed says of itself; lets go of the rest."""

    def __init__(self) -> None:
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._begin
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._entity
        self._parser.SkippedEntityHandler = self._skipped
        self._prefixes: dict[str, str] = {}
        self._open: list[Element] = []
        self._root: Element | None = None
        self._about = Element("")
        self._entries: list[Element] = []
        self._broken = False

    def read(self, text: str) -> bool:
        """Read a text to its end; return whether it was well formed. What came before a fault is kept."""
        try:
            self._parser.Parse(text, True)
        except expat.ExpatError:
            self._broken = True
        return not self._broken

    def feed(self, *, lossy: bool) -> Feed:
        """Return what was read."""
        kind = _ROOTS.get(self._root.name) if self._root is not None else None
        if self._root is None or kind is None or (self._broken and not self._entries):
            raise NotAFeed("it is no RSS and no Atom" if not self._broken else "it is no well-formed XML")
        about = self._about if kind != "atom" else self._root
        return Feed(kind, self._root.attributes.get("version", ""), about, self._entries, lossy)

    def _entity(self, name: str, _parameter: bool, value: str | None, *_rest: object) -> None:
        # One that stands elsewhere is never read, so it does no harm; real feeds name the entities of HTML so.
        if value is not None:
            raise NotAFeed("it declares entities of its own")

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= DEPTH:
            raise NotAFeed("it is nested too deeply")
        for name, value in attributes.items():
            if name.startswith("xmlns"):
                self._prefixes[name[6:]] = _PREFIXES.get(value, name[6:])
        element = Element(self._named(tag), attributes)
        if self._root is None:
            self._root = element
        elif element.name == "channel" and len(self._open) == 1:
            self._about = element
        self._open.append(element)

    def _named(self, tag: str) -> str:
        """Name an element by the usual prefix of its namespace; Atom's has none in a feed of Atom."""
        prefix, colon, local = tag.rpartition(":")
        known = self._prefixes.get(prefix, prefix)
        if known == "atom":
            root = self._root.name if self._root is not None else local
            return local if root == "feed" else f"atom:{local}"
        return f"{known}:{local}" if colon and known else local

    def _characters(self, text: str) -> None:
        if self._open:
            self._open[-1].pieces.append(html.escape(text, quote=False) if self._in_markup() else text)

    def _skipped(self, name: str, is_parameter: bool) -> None:
        """Take an entity that a DTD elsewhere declares: one of HTML's, as nobody declares others."""
        if not is_parameter:
            self._characters(html5.get(f"{name};", f"&{name};"))

    def _end(self, _tag: str) -> None:
        element = self._open.pop()
        if element.name in {"item", "entry"} and len(self._open) <= 2:
            if len(self._entries) < ENTRIES:
                self._entries.append(element)
        elif self._open:
            if self._in_markup():
                self._open[-1].pieces.append(_tagged(element))
            self._open[-1].children.append(element)

    def _in_markup(self) -> bool:
        """Say whether what is read stands in a text that holds its markup as elements, as Atom's xhtml does."""
        return any(one.attributes.get("type") == "xhtml" for one in self._open)


def _tagged(element: Element) -> str:
    name = element.name.rpartition(":")[2]
    return f"<{name}>{''.join(element.pieces)}</{name}>"
