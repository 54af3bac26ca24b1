"""XML from a server: no document type, so no entities; bounds on depth and size; a multistatus (RFC 4918, 14.16)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote_to_bytes, urljoin, urlsplit
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat
from xml.sax.saxutils import escape

DAV: Final = "{DAV:}"
DEPTH: Final = 64
ELEMENTS: Final = 2_000_000
_SAFE: Final = "~!$&'()*+,;=:@-._"


class GarbledError(Exception):
    """The body is not what the protocol says."""


def parse(body: bytes) -> Element:
    """Return the root element; its names are `{namespace}name`. Raise `GarbledError` where it is none of ours."""
    reader = _Reader()
    try:
        return reader.read(body)
    except (expat.ExpatError, LookupError, ValueError) as error:
        # The last two are about an encoding that Python does not have, or that expat cannot read.
        raise GarbledError("it is not well-formed XML") from error


class _Reader:
    def __init__(self) -> None:
        self._depth = self._count = 0
        self._tree = TreeBuilder()

    def read(self, body: bytes) -> Element:
        parser = expat.ParserCreate(namespace_separator="}")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._tree.data
        parser.Parse(body, True)
        return self._tree.close()

    def _refuse(self, *_declared: object) -> None:
        raise GarbledError("it declares a document type")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._count += 1
        if self._depth > DEPTH or self._count > ELEMENTS:
            raise GarbledError("it is too deep or too large")
        self._tree.start(_qualified(name), attributes)

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._tree.end(_qualified(name))


def _qualified(name: str) -> str:
    return "{" + name if "}" in name else name


@dataclass(frozen=True)
class Resource:
    """One resource of a multistatus: its URL and path, its own status if it has one, and the properties that it has."""

    url: str
    status: int = 200
    properties: dict[str, Element] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The path, which is how a resource is named in records."""
        return urlsplit(self.url).path

    def text(self, name: str) -> str:
        """Return a property's text, empty where there is none."""
        found = self.properties.get(name)
        return (found.text or "") if found is not None else ""

    def hrefs(self, name: str) -> list[str]:
        """Return the URLs that a property holds."""
        found = self.properties.get(name)
        return [resolved(self.url, item.text or "") for item in found.iter(DAV + "href")] if found is not None else []

    def holds(self, name: str, *path: str) -> bool:
        """Whether a property has an element below it, such as `resourcetype` has `collection`."""
        found = self.properties.get(name)
        return found is not None and found.find("/".join(path)) is not None


@dataclass(frozen=True)
class Multistatus:
    """The resources of an answer, and the token that it closes with (RFC 6578, 6.4)."""

    resources: list[Resource]
    sync_token: str = ""


def multistatus(body: bytes, url: str) -> Multistatus:
    """Read an answer to a request for `url`; its references are resolved against that."""
    root = parse(body)
    if root.tag != DAV + "multistatus":
        raise GarbledError("it is not a multistatus")
    resources = [resource for node in root.iter(DAV + "response") for resource in _resources(node, url)]
    return Multistatus(resources, (root.findtext(DAV + "sync-token") or "").strip())


def _resources(node: Element, url: str) -> Iterator[Resource]:
    """Yield what a response says: of one resource with its properties, or of several with one status."""
    properties = {
        found.tag: found
        for propstat in node.findall(DAV + "propstat")
        if _status(propstat) == 200
        for found in propstat.findall(f"{DAV}prop/*")
    }
    stated = node.find(DAV + "status") is not None
    faults = [code for propstat in node.findall(DAV + "propstat") if (code := _status(propstat)) != 200]
    status = _status(node) if stated else 200 if properties or not faults else faults[0]
    for href in node.findall(DAV + "href"):
        yield Resource(resolved(url, href.text or ""), status, properties)


def _status(node: Element) -> int:
    """Read a status line, 0 where there is none."""
    words = (node.findtext(DAV + "status") or "").split()
    return int(words[1]) if len(words) > 1 and words[1].isascii() and words[1].isdecimal() and len(words[1]) == 3 else 0


def resolved(url: str, href: str) -> str:
    """Return a reference as an absolute URL in one spelling: servers escape as they please."""
    try:
        parts = urlsplit(urljoin(url, href.strip()))
    except ValueError:
        return ""
    segments = [quote(unquote_to_bytes(segment), safe=_SAFE) for segment in parts.path.split("/")]
    return parts._replace(path="/".join(segments), query="", fragment="").geturl()


def written(text: str) -> str:
    """Return text as it stands in XML."""
    return escape(text)
