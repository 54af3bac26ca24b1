"""The two families of browsers: the same questions, each in the words of its own schema."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from headwater.connectors.browser_history.profiles import Copies, Profile, Unreadable, clean, read_json
    from headwater.connectors.browser_history.records import MICROSECONDS_1601_TO_1970, Bookmark
else:
    from profiles import Copies, Profile, Unreadable, clean, read_json
    from records import MICROSECONDS_1601_TO_1970, Bookmark

FOLDER_LEVELS: Final = 100
_ROOTS: Final = {"menu________": "menu", "toolbar_____": "toolbar", "unfiled_____": "unfiled", "mobile______": "mobile"}
_FIREFOX_TAGS: Final = "tags________"


@dataclass(frozen=True)
class Family:
    """How one family answers.

    `visits` and `pages` are views that take no parameter, with microseconds since 1970. `lists` are the files of a
    profile that may hold bookmarks, and `bookmarks` reads one of them.
    """

    columns: Mapping[str, str]
    visits: str
    pages: str
    lists: tuple[str, ...]
    bookmarks: Callable[[Copies, Profile, str], Iterator[Bookmark]]


def chromium_bookmarks(_copies: Copies, profile: Profile, file: str) -> Iterator[Bookmark]:
    """Read a file of JSON in which Chromium keeps bookmarks; raise where it is broken."""
    document = read_json(profile.folder / file)
    roots = document.get("roots") if isinstance(document, dict) else None
    if not isinstance(roots, dict):
        raise Unreadable(f"{file} is not a file of bookmarks")
    waiting: list[tuple[Any, tuple[str, ...]]] = [(root, ()) for root in reversed(roots.values())]
    while waiting:
        node, folder = waiting.pop()
        if not isinstance(node, dict):
            continue
        if node.get("type") == "url":
            yield _chromium_bookmark(node, folder)
        children = node.get("children")
        if isinstance(children, list):
            inside = (*folder, clean(str(node.get("name", ""))))
            waiting.extend((child, inside) for child in reversed(children))


def _chromium_bookmark(node: dict[str, Any], folder: tuple[str, ...]) -> Bookmark:
    added = str(node.get("date_added", ""))
    return Bookmark(
        guid=clean(str(node.get("guid") or node.get("id"))),
        title=clean(str(node.get("name", ""))),
        url=clean(str(node.get("url", ""))),
        folder=folder,
        added=int(added) - MICROSECONDS_1601_TO_1970 if added.isascii() and added.isdigit() and len(added) < 20 else 0,
    )


def firefox_bookmarks(copies: Copies, profile: Profile, _file: str) -> Iterator[Bookmark]:
    """Read the bookmarks beside Firefox's history; those in the folder of tags only say which tags another has."""
    with copies.opened(profile, {"moz_bookmarks": "id, type, fk, parent, title, dateAdded, guid"}) as database:
        folders = {
            row: rest
            for row, *rest in database.execute("SELECT id, parent, title, guid FROM moz_bookmarks WHERE type = 2")
        }
        for guid, title, url, parent, added in database.execute(_FIREFOX_BOOKMARKS):
            folder = _firefox_folder(folders, parent)
            if folder is not None:
                yield Bookmark(str(guid), title, url, folder, added)


def _firefox_folder(folders: dict[int, list[Any]], row: int) -> tuple[str, ...] | None:
    """Return the names of a folder and those around it, or None for the folders of tags."""
    names: list[str] = []
    while row in folders and len(names) < FOLDER_LEVELS:
        row, title, guid = folders[row]
        if guid == _FIREFOX_TAGS:
            return None
        if guid != "root________":
            names.insert(0, _ROOTS.get(guid, str(title or "")))
    return tuple(names)


_FIREFOX_BOOKMARKS: Final = """
    SELECT b.guid, b.title, IFNULL(p.url, ''), b.parent, CAST(IFNULL(b.dateAdded, 0) AS INTEGER)
    FROM moz_bookmarks b JOIN moz_places p ON p.id = b.fk WHERE b.type = 1 ORDER BY b.id"""

CHROMIUM: Final = Family(
    columns={
        "urls": "id, url, title, visit_count, typed_count, last_visit_time, hidden",
        "visits": "id, url, visit_time, from_visit, transition, visit_duration",
    },
    visits="""
        SELECT v.id AS row, CAST(v.visit_time AS INTEGER) - 11644473600000000 AS at, IFNULL(u.url, '') AS url, u.title,
            CAST(IFNULL(v.transition, 0) AS INTEGER) AS transition, CAST(v.visit_duration AS INTEGER) AS duration,
            f.id AS came_row, CAST(f.visit_time AS INTEGER) - 11644473600000000 AS came_at, fu.url AS came_url
        FROM visits v JOIN urls u ON u.id = v.url
        LEFT JOIN visits f ON f.id = v.from_visit LEFT JOIN urls fu ON fu.id = f.url""",
    pages="""
        SELECT id AS row, CAST(last_visit_time AS INTEGER) - 11644473600000000 AS at, IFNULL(url, ''), title,
            CAST(IFNULL(visit_count, 0) AS INTEGER), CAST(IFNULL(typed_count, 0) AS INTEGER),
            CAST(IFNULL(hidden, 0) AS INTEGER)
        FROM urls WHERE last_visit_time BETWEEN 11644473600000001 AND 265046774399999999""",
    lists=("Bookmarks", "AccountBookmarks"),
    bookmarks=chromium_bookmarks,
)
FIREFOX: Final = Family(
    columns={
        "moz_places": "id, url, title, visit_count, typed, last_visit_date, hidden",
        "moz_historyvisits": "id, place_id, visit_date, from_visit, visit_type",
    },
    visits="""
        SELECT v.id AS row, CAST(IFNULL(v.visit_date, 0) AS INTEGER) AS at, IFNULL(p.url, '') AS url, p.title,
            CAST(IFNULL(v.visit_type, 0) AS INTEGER) AS transition, NULL AS duration,
            f.id AS came_row, CAST(f.visit_date AS INTEGER) AS came_at, fp.url AS came_url
        FROM moz_historyvisits v JOIN moz_places p ON p.id = v.place_id
        LEFT JOIN moz_historyvisits f ON f.id = v.from_visit LEFT JOIN moz_places fp ON fp.id = f.place_id""",
    pages="""
        SELECT id AS row, CAST(last_visit_date AS INTEGER) AS at, IFNULL(url, ''), title,
            CAST(IFNULL(visit_count, 0) AS INTEGER), CAST(IFNULL(typed, 0) AS INTEGER),
            CAST(IFNULL(hidden, 0) AS INTEGER)
        FROM moz_places WHERE last_visit_date BETWEEN 1 AND 253402300799999999""",
    lists=("places.sqlite",),
    bookmarks=firefox_bookmarks,
)
FAMILIES: Final = {"chromium": CHROMIUM, "firefox": FIREFOX}


def first(database: sqlite3.Connection, view: str) -> list[int] | None:
    """Return row and time of the first visit that is left."""
    found = database.execute(f"SELECT row, at FROM ({view}) ORDER BY row LIMIT 1").fetchone()
    return None if found is None else list(found)


def last_row(database: sqlite3.Connection, view: str) -> int:
    """Return the greatest row, or 0."""
    found = database.execute(f"SELECT max(row) FROM ({view})").fetchone()
    return int(found[0] or 0)
