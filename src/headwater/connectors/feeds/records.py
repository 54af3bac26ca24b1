"""A feed's elements, made into records: RSS 0.9 to 2.0, RSS 1.0 and both Atoms in one form."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urljoin

from headwater.connectors.feeds.document import Element, Feed
from headwater.connectors.mail import mailparse

LINE_CHARACTERS: Final = 2_000
ID_CHARACTERS: Final = 500
_MARKUP = re.compile(r"</?[A-Za-z]|&#?[0-9A-Za-z]+;")
LIST_ITEMS: Final = 100


def feed_record(url: str, current_url: str, feed: Feed) -> dict[str, Any]:
    """Make the record of a feed that answered."""
    about = feed.about
    return {
        "url": url,
        "status": "active",
        "current_url": current_url,
        "kind": feed.kind,
        "version": feed.version[:20] or None,
        "title": _title(about.said("title")),
        "description": _title(about.said("description", "subtitle", "tagline")),
        "link": _link(about, current_url),
        "language": _line(about.said("language", "dc:language") or about.attributes.get("xml:lang", "")),
        "source_updated_at": _moment(about.said("lastBuildDate", "updated", "modified", "pubDate", "dc:date")),
        "lossy": feed.lossy,
    }


def entry_records(url: str, current_url: str, feed: Feed, text_characters: int) -> Iterator[dict[str, Any]]:
    """Make the records of a feed's entries, in the feed's order, each under an id of its own."""
    ids = Counter(_own_id(entry) for entry in feed.entries)
    links = Counter(_link(entry, current_url) for entry in feed.entries)
    given: set[str] = set()
    for entry in feed.entries:
        own, link = _own_id(entry), _link(entry, current_url)
        # An id that several entries share tells them apart no more than none does.
        if own and ids[own] == 1:
            source, identity = "guid", own
        elif link and links[link] == 1:
            source, identity = "link", link
        else:
            source, identity = "content", _digest(own, link or "", entry.said("title"), _body(entry)[0])
        identity = identity if len(identity) <= ID_CHARACTERS else _digest(identity)
        if identity not in given:
            given.add(identity)
            yield _entry(url, current_url, feed, entry, text_characters) | {"id": identity, "id_source": source}


def mark(record: dict[str, Any]) -> str:
    """Return what changes whenever a record does."""
    return _digest(repr(sorted(record.items())))[:12]


def _entry(url: str, current_url: str, feed: Feed, entry: Element, bound: int) -> dict[str, Any]:
    published = _moment(entry.said("pubDate", "published", "issued", "dc:date", "created"))
    updated = _moment(entry.said("updated", "atom:updated", "modified"))
    markup, is_markup = _body(entry)
    text = mailparse.stripped(markup[: 16 * bound + 65_536]) if is_markup else markup.strip()
    return {
        "feed": url,
        "title": _title(entry.said("title", "dc:title")),
        "link": _link(entry, current_url),
        "authors": list(_authors(entry))[:LIST_ITEMS],
        "source_created_at": published or updated,
        "source_updated_at": updated,
        "text": text[:bound] or None,
        "text_truncated": len(text) > bound,
        "html": markup[:bound] if is_markup and markup else None,
        "categories": list(_categories(entry))[:LIST_ITEMS],
        "enclosures": list(_enclosures(entry, current_url))[:LIST_ITEMS],
        "lossy": feed.lossy,
    }


def _own_id(entry: Element) -> str:
    return entry.said("guid", "id") or entry.attributes.get("rdf:about", "").strip()


def _body(entry: Element) -> tuple[str, bool]:
    """Return the fullest text of an entry, and whether it is markup. What RSS holds always is."""
    for name in ("content:encoded", "content", "description", "summary", "atom:summary"):
        element = entry.first(name)
        if element is not None and element.text:
            is_rss = name in {"content:encoded", "description"}
            return element.text, is_rss or element.attributes.get("type", "text") not in {"text", "text/plain"}
    return "", False


def _link(element: Element, base: str) -> str | None:
    """Return where an entry or feed is shown: what RSS says as text, and Atom as an attribute."""
    for link in element.all("link"):
        target = link.text or link.attributes.get("href", "").strip()
        if target and link.attributes.get("rel", "alternate") == "alternate":
            return _absolute(target, base)
    guid = element.first("guid")
    if guid is not None and guid.attributes.get("isPermaLink", "true") == "true" and guid.text.startswith("http"):
        return _absolute(guid.text, base)
    return None


def _absolute(target: str, base: str) -> str | None:
    try:
        return urljoin(base, target)[:LINE_CHARACTERS]
    except ValueError:
        return None


def _authors(entry: Element) -> Iterator[str]:
    for element in entry.all("author", "dc:creator", "creator", "itunes:author"):
        name = element.said("name") or element.said("email") or element.text
        if name:
            yield name[:LINE_CHARACTERS]


def _categories(entry: Element) -> Iterator[str]:
    seen: set[str] = set()
    for element in entry.all("category", "dc:subject"):
        name = (element.text or element.attributes.get("label") or element.attributes.get("term") or "").strip()
        if name and name not in seen:
            seen.add(name)
            yield name[:LINE_CHARACTERS]


def _enclosures(entry: Element, base: str) -> Iterator[dict[str, Any]]:
    for element in entry.all("enclosure", "link"):
        target = element.attributes.get("url") or element.attributes.get("href") or ""
        if (element.name == "enclosure" or element.attributes.get("rel") == "enclosure") and target:
            length = element.attributes.get("length", "")
            yield {
                "url": _absolute(target, base),
                "mime_type": element.attributes.get("type", "")[:200] or None,
                "size_bytes": int(length) if length.isascii() and length.isdecimal() and len(length) < 16 else None,
            }


def _title(text: str) -> str | None:
    """Read a line that may be text or markup: feeds do not say which, or say it wrong."""
    return _line(mailparse.stripped(text) if _MARKUP.search(text) else text)


def _line(text: str) -> str | None:
    return " ".join(text.split())[:LINE_CHARACTERS] or None


def _moment(text: str) -> str | None:
    """Read a time of RFC 822 or ISO 8601 as RFC 3339 text in UTC; None where it is neither."""
    return _iso(text.strip()) or mailparse.moment(text) if text else None


def _iso(text: str) -> str | None:
    padded = {4: f"{text}-01-01", 7: f"{text}-01"}.get(len(text), text)
    try:
        date = datetime.fromisoformat(padded)
        date = date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return date.isoformat(timespec="seconds").replace("+00:00", "Z")


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]
