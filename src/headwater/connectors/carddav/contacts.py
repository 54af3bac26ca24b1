"""The record of one vCard (RFC 2426, RFC 6350)."""

import re
from typing import Any, Final

from headwater.connectors.dav.content import BrokenError, Component, Line, components, split, unescaped

VERSIONS: Final = frozenset({"3.0", "4.0"})
_NAME: Final = ("family", "given", "additional", "prefixes", "suffixes")
_ADDRESS: Final = ("po_box", "extended", "street", "locality", "region", "postal_code", "country")
_REVISED: Final = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)T(\d\d):?(\d\d):?(\d\d)(?:\.\d+)?Z")
# Apple's way to write a label of the owner's own, or one of its standard ones.
_APPLE_LABEL: Final = re.compile(r"_\$!<(.*)>!\$_")


def record(path: str, address_book: str, etag: str, text: str) -> dict[str, Any]:
    """Return the record. What cannot be read is null, and `fault` says so; `raw` is always the whole text."""
    card, fault = _card(text)
    photo = card.first("PHOTO")
    return {
        "id": path,
        "address_book": address_book,
        "etag": etag or None,
        "version": card.text("VERSION"),
        "uid": card.text("UID"),
        "kind": (card.text("KIND") or card.text("X-ADDRESSBOOKSERVER-KIND") or "").lower() or None,
        "full_name": card.text("FN"),
        "name": _name(card.first("N")),
        "nicknames": _listed(card, "NICKNAME"),
        "organization": _structured(card.first("ORG")),
        "title": card.text("TITLE"),
        "role": card.text("ROLE"),
        "emails": _values(card, "EMAIL"),
        "phones": _values(card, "TEL"),
        "urls": _values(card, "URL"),
        "impps": _values(card, "IMPP"),
        "addresses": [_address(card, line) for line in card.all("ADR")],
        "birthday": card.text("BDAY"),
        "anniversary": card.text("ANNIVERSARY"),
        "note": card.text("NOTE"),
        "categories": _listed(card, "CATEGORIES"),
        "members": [line.value for name in ("MEMBER", "X-ADDRESSBOOKSERVER-MEMBER") for line in card.all(name)],
        "photo": None if photo is None else "uri" if _is_remote(photo) else "inline",
        "revised_at": _revised(card.text("REV") or ""),
        "fault": fault,
        "raw": text,
    }


def _card(text: str) -> tuple[Component, str | None]:
    """Read the card; where there are several, the first, as a resource holds one (RFC 6352, 5.1)."""
    try:
        outer, unread = components(text)
    except BrokenError as error:
        return Component(""), str(error)
    card = next((item for item in outer if item.name == "VCARD"), None)
    if card is None:
        return Component(""), "it has no card"
    if card.text("VERSION") not in VERSIONS:
        return card, "its version is neither 3.0 nor 4.0"
    if len(outer) > 1:
        return card, "it has more than one card"
    return card, f"{unread} of its lines cannot be read" if unread else None


def _name(line: Line | None) -> dict[str, list[str]] | None:
    if line is None:
        return None
    parts = _fields(line, len(_NAME))
    return {
        name: [text for part in split(value, ",") if (text := unescaped(part))]
        for name, value in zip(_NAME, parts, strict=True)
    }


def _fields(line: Line, count: int) -> list[str]:
    """Return the fields of a structured value as they were written, so many of them."""
    parts = split(line.value, ";")
    return [*parts, *[""] * count][:count]


def _structured(line: Line | None) -> list[str]:
    return [text for text in line.parts(";") if text] if line is not None else []


def _listed(card: Component, name: str) -> list[str]:
    return [text for line in card.all(name) for text in line.parts(",") if text]


def _values(card: Component, name: str) -> list[dict[str, Any]]:
    return [{"value": _uri(line), **_marks(card, line)} for line in card.all(name) if line.value.strip()]


def _uri(line: Line) -> str:
    """Return a value as people write it: vCard 4 writes a number as `tel:`."""
    text = line.text.strip()
    for scheme in ("tel:", "mailto:"):
        if text.lower().startswith(scheme):
            return text[len(scheme) :]
    return text


def _address(card: Component, line: Line) -> dict[str, Any]:
    fields = (unescaped(field) or None for field in _fields(line, len(_ADDRESS)))
    return {**dict(zip(_ADDRESS, fields, strict=True)), **_marks(card, line)}


def _marks(card: Component, line: Line) -> dict[str, Any]:
    types = [text.lower() for value in line.parameters.get("TYPE", ()) for text in value.split(",") if text]
    label = next((other.text for other in card.all("X-ABLABEL") if line.group and other.group == line.group), None)
    apple = _APPLE_LABEL.fullmatch(label or "")
    return {
        "types": [text for text in types if text != "pref"],
        "label": apple[1].lower() if apple else label,
        "preferred": "pref" in types or line.parameter("PREF") == "1",
    }


def _is_remote(photo: Line) -> bool:
    return photo.value.lower().startswith(("http:", "https:"))


def _revised(text: str) -> str | None:
    found = _REVISED.fullmatch(text.strip())
    if found is None:
        return None
    year, month, day, hour, minute, second = found.groups()
    return f"{year}-{month}-{day}T{hour}:{minute}:{second}Z"
