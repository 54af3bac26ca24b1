"""What the two families' databases say, in one form: rows in, records out."""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

MICROSECONDS_1601_TO_1970: Final = 11_644_473_600_000_000
_LAST_MICROSECOND: Final = 253_402_300_799_999_999
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CHROMIUM_REDIRECTS: Final = 0x40000000 | 0x80000000
_CHROMIUM_TRANSITIONS: Final = (
    "link",
    "typed",
    "bookmark",
    "subframe",
    "manual_subframe",
    "generated",
    "start_page",
    "form_submit",
    "reload",
    "keyword",
    "keyword_generated",
)
_FIREFOX_TRANSITIONS: Final = (
    "other",
    "link",
    "typed",
    "bookmark",
    "embed",
    "redirect_permanent",
    "redirect_temporary",
    "download",
    "framed_link",
    "reload",
)


class Visit(NamedTuple):
    """A visit's row; times are microseconds since 1970, `came_*` is the visit that led here."""

    row: int
    at: int
    url: str
    title: str | None
    transition: int
    duration: int | None
    came_row: int | None
    came_at: int | None
    came_url: str | None


class Page(NamedTuple):
    """A page's row."""

    row: int
    at: int
    url: str
    title: str | None
    visits: int
    typed: int
    hidden: int


class Bookmark(NamedTuple):
    """A bookmark, wherever its family keeps it."""

    guid: str
    title: str | None
    url: str
    folder: tuple[str, ...]
    added: int


def digest(*parts: object) -> str:
    """Return a key for what the parts name together."""
    return hashlib.sha256("\0".join(map(str, parts)).encode("utf-8")).hexdigest()[:32]


def moment(microseconds: int) -> str | None:
    """Return microseconds since 1970 as text, or None where they are no time that a calendar has."""
    if not 0 < microseconds <= _LAST_MICROSECOND:
        return None
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def visit_record(profile: str, family: str, visit: Visit) -> dict[str, Any] | None:
    """Make a visit's record, or none where its time is no time."""
    visited = moment(visit.at)
    if visited is None:
        return None
    came = None
    if visit.came_row is not None and visit.came_at is not None and visit.came_url is not None:
        came = digest(profile, visit.came_row, visit.came_at, visit.came_url)
    name, redirect = transition(family, visit.transition)
    return {
        "id": digest(profile, visit.row, visit.at, visit.url),
        "profile": profile,
        "family": family,
        "visited_at": visited,
        "page": digest(profile, visit.url),
        "url": visit.url,
        "title": visit.title or None,
        "transition": name,
        "redirect": redirect,
        "from_visit": came,
        "duration_ms": visit.duration // 1000 if visit.duration is not None and visit.duration > 0 else None,
    }


def transition(family: str, code: int) -> tuple[str, bool]:
    """Name how a page was come by, and say whether through a redirect."""
    if family == "firefox":
        return _named(_FIREFOX_TRANSITIONS, code), code in (5, 6)
    return _named(_CHROMIUM_TRANSITIONS, code & 0xFF), bool(code & _CHROMIUM_REDIRECTS)


def _named(names: tuple[str, ...], code: int) -> str:
    return names[code] if 0 <= code < len(names) else "other"


def page_record(profile: str, family: str, page: Page) -> dict[str, Any]:
    """Make a page's record."""
    return {
        "id": digest(profile, page.url),
        "profile": profile,
        "family": family,
        "url": page.url,
        "title": page.title or None,
        "visit_count": max(page.visits, 0),
        "typed_count": max(page.typed, 0),
        "last_visited_at": moment(page.at),
        "hidden": bool(page.hidden),
    }


def bookmark_record(profile: str, family: str, bookmark: Bookmark) -> dict[str, Any]:
    """Make a bookmark's record."""
    return {
        "id": digest(profile, bookmark.guid),
        "profile": profile,
        "family": family,
        "title": bookmark.title or None,
        "url": bookmark.url,
        "folder": list(bookmark.folder),
        "added_at": moment(bookmark.added),
    }
