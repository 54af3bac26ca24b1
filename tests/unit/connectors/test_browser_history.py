"""The browser history connector on real SQLite files with the browsers' own schemas."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import headwater.connectors
from headwater.manifest.reading import read
from headwater.manifest.schemas import compile_schema
from headwater.sdk.testing import Transcript, collect

CONNECTOR = Path(headwater.connectors.__path__[0]) / "browser_history"
SINCE_1601 = 11_644_473_600_000_000
NOON = 1_700_000_000_000_000  # microseconds since 1970: 2023-11-14T22:13:20Z
DAY = 86_400_000_000
CHROMIUM_SCHEMA = """
CREATE TABLE meta(key LONGVARCHAR NOT NULL UNIQUE PRIMARY KEY, value LONGVARCHAR);
CREATE TABLE urls(id INTEGER PRIMARY KEY AUTOINCREMENT,url LONGVARCHAR,title LONGVARCHAR,
  visit_count INTEGER DEFAULT 0 NOT NULL,typed_count INTEGER DEFAULT 0 NOT NULL,last_visit_time INTEGER NOT NULL,
  hidden INTEGER DEFAULT 0 NOT NULL);
CREATE TABLE visits(id INTEGER PRIMARY KEY AUTOINCREMENT,url INTEGER NOT NULL,visit_time INTEGER NOT NULL,
  from_visit INTEGER,external_referrer_url TEXT,transition INTEGER DEFAULT 0 NOT NULL,segment_id INTEGER,
  visit_duration INTEGER DEFAULT 0 NOT NULL,incremented_omnibox_typed_score BOOLEAN DEFAULT FALSE NOT NULL,
  opener_visit INTEGER,originator_cache_guid TEXT,originator_visit_id INTEGER,originator_from_visit INTEGER,
  originator_opener_visit INTEGER,is_known_to_sync BOOLEAN DEFAULT FALSE NOT NULL,
  consider_for_ntp_most_visited BOOLEAN DEFAULT FALSE NOT NULL,visited_link_id INTEGER DEFAULT 0 NOT NULL,app_id TEXT);
CREATE INDEX visits_time_index ON visits (visit_time);
"""
FIREFOX_SCHEMA = """
CREATE TABLE moz_places(id INTEGER PRIMARY KEY, url LONGVARCHAR, title LONGVARCHAR, rev_host LONGVARCHAR,
  visit_count INTEGER DEFAULT 0, hidden INTEGER DEFAULT 0 NOT NULL, typed INTEGER DEFAULT 0 NOT NULL,
  frecency INTEGER DEFAULT -1 NOT NULL, last_visit_date INTEGER, guid TEXT, foreign_count INTEGER DEFAULT 0 NOT NULL,
  url_hash INTEGER DEFAULT 0 NOT NULL, description TEXT, preview_image_url TEXT, site_name TEXT, origin_id INTEGER,
  recalc_frecency INTEGER NOT NULL DEFAULT 0, alt_frecency INTEGER, recalc_alt_frecency INTEGER NOT NULL DEFAULT 0);
CREATE TABLE moz_historyvisits(id INTEGER PRIMARY KEY, from_visit INTEGER, place_id INTEGER, visit_date INTEGER,
  visit_type INTEGER, session INTEGER, source INTEGER DEFAULT 0 NOT NULL, triggeringPlaceId INTEGER);
CREATE TABLE moz_bookmarks(id INTEGER PRIMARY KEY, type INTEGER, fk INTEGER DEFAULT NULL, parent INTEGER,
  position INTEGER, title LONGVARCHAR, keyword_id INTEGER, folder_type TEXT, dateAdded INTEGER, lastModified INTEGER,
  guid TEXT, syncStatus INTEGER NOT NULL DEFAULT 0, syncChangeCounter INTEGER NOT NULL DEFAULT 1);
INSERT INTO moz_bookmarks(id, type, parent, title, guid) VALUES (1, 2, 0, '', 'root________'),
  (2, 2, 1, 'menu', 'menu________'), (3, 2, 1, 'toolbar', 'toolbar_____'), (4, 2, 1, 'tags', 'tags________'),
  (5, 2, 3, 'Work', 'folderguid01'), (6, 2, 4, 'a tag', 'folderguid02');
"""


def chromium(folder: Path) -> Path:
    """Make an empty profile of Chromium, and return its database."""
    return made(folder / "History", CHROMIUM_SCHEMA)


def firefox(folder: Path) -> Path:
    """Make an empty profile of Firefox, and return its database."""
    return made(folder / "places.sqlite", FIREFOX_SCHEMA)


def made(path: Path, schema: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with changing(path) as database:
        database.executescript(schema)
    return path


@contextmanager
def changing(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database, commit, and close it."""
    with closing(sqlite3.connect(path)) as database, database:
        yield database


def visit(database: sqlite3.Connection, url: str, at: int = NOON, transition: int = 0, **more: Any) -> None:
    """Visit a page in Chromium, at microseconds since 1970."""
    found = database.execute("SELECT id FROM urls WHERE url = ?", (url,)).fetchone()
    if found is None:
        asked = "INSERT INTO urls(url, title, last_visit_time) VALUES (?, ?, 0) RETURNING id"
        found = database.execute(asked, (url, f"Title of {url}")).fetchone()
    asked = "UPDATE urls SET visit_count = visit_count + 1, last_visit_time = max(last_visit_time, ?) WHERE id = ?"
    database.execute(asked, (at + SINCE_1601, found[0]))
    row = {"url": found[0], "visit_time": at + SINCE_1601, "transition": transition, **more}
    database.execute(f"INSERT INTO visits({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", (*row.values(),))


def run(profile: Path, state: dict[str, Any] | None = None) -> Transcript:
    """Run the connector, which must succeed, and hold what it emits to its manifest."""
    transcript = collect(CONNECTOR, options={"profile": str(profile)}, state=state)
    assert transcript.done["status"] == "succeeded", transcript.done
    for name, stream in read((CONNECTOR / "manifest.json").read_bytes()).streams.items():
        validator = compile_schema(stream.schema or {})
        for message in transcript.messages:
            if message["type"] == "RECORD" and message["stream"] == name and message.get("op") != "delete":
                validator.validate(message["data"])
    return transcript


def urls(transcript: Transcript, stream: str = "visits") -> list[str]:
    """Return the URLs of a stream's records, in order."""
    return [record["url"] for record in transcript.records(stream) if "url" in record]


def bookmarks_file(profile: Path, *children: dict[str, Any], name: str = "Bookmarks") -> None:
    """Write a file of bookmarks as Chromium does, with these in the bar."""
    bar = {"type": "folder", "name": "Bookmarks bar", "guid": "g-bar", "children": list(children)}
    (profile / name).write_text(json.dumps({"version": 1, "roots": {"bookmark_bar": bar}}))


def bookmark(name: str) -> dict[str, Any]:
    """Make a node of that file."""
    url = f"https://{name}.example/"
    return {"type": "url", "name": name, "url": url, "guid": f"g-{name}", "date_added": str(NOON + SINCE_1601)}


def deletes(transcript: Transcript) -> int:
    """Count the records that were deleted."""
    return sum(1 for message in transcript.messages if message.get("op") == "delete")


def test_a_visit_of_chromium(tmp_path: Path) -> None:
    """Time, title, transition, redirect, referrer and duration are read from the row."""
    with changing(chromium(tmp_path)) as database:
        visit(database, "https://a.example/", transition=1, visit_duration=2_500_000)
        visit(database, "https://b.example/", NOON + 1, transition=0x80000000 | 8, from_visit=1)
    transcript = run(tmp_path)
    first, second = transcript.records("visits")
    assert [page["id"] for page in transcript.records("pages")] == [first["page"], second["page"]]
    assert {k: v for k, v in first.items() if k not in ("id", "page", "profile")} == {
        "family": "chromium",
        "visited_at": "2023-11-14T22:13:20.000000Z",
        "url": "https://a.example/",
        "title": "Title of https://a.example/",
        "transition": "typed",
        "redirect": False,
        "from_visit": None,
        "duration_ms": 2_500,
    }
    assert (second["from_visit"], second["transition"], second["redirect"]) == (first["id"], "reload", True)


def test_a_visit_of_firefox(tmp_path: Path) -> None:
    """Firefox counts from 1970, names redirects as transitions, and knows no duration."""
    with changing(firefox(tmp_path)) as database:
        database.execute(
            "INSERT INTO moz_places(id, url, last_visit_date) VALUES (7, 'https://a.example/', ?)", (NOON,)
        )
        row = (1, 0, 7, NOON, 5)
        database.execute(
            "INSERT INTO moz_historyvisits(id, from_visit, place_id, visit_date, visit_type) VALUES (?, ?, ?, ?, ?)",
            row,
        )
    (record,) = run(tmp_path).records("visits")
    assert (record["visited_at"], record["title"], record["duration_ms"]) == ("2023-11-14T22:13:20.000000Z", None, None)
    assert (record["transition"], record["redirect"]) == ("redirect_permanent", True)


def test_pages_have_their_counts(tmp_path: Path) -> None:
    """A page that was visited twice is one record."""
    with changing(chromium(tmp_path)) as database:
        visit(database, "https://a.example/")
        visit(database, "https://a.example/", NOON + 1)
    (page,) = run(tmp_path).records("pages")
    assert (page["visit_count"], page["last_visited_at"]) == (2, "2023-11-14T22:13:20.000001Z")


def test_only_new_visits_come_again(tmp_path: Path) -> None:
    """The next run emits what came since, and a visit of another device in a new row with an old time."""
    with changing(chromium(tmp_path)) as database:
        visit(database, "https://a.example/")
    state = run(tmp_path).state
    with changing(tmp_path / "History") as database:
        visit(database, "https://b.example/", NOON + DAY)
        visit(database, "https://c.example/", NOON - 9 * DAY)
    again = run(tmp_path, state)
    assert urls(again) == ["https://b.example/", "https://c.example/"]
    assert sorted(urls(again, "pages")) == ["https://a.example/", "https://b.example/", "https://c.example/"]
    assert urls(run(tmp_path, again.state)) == []


def test_a_profile_that_was_reset(tmp_path: Path) -> None:
    """After a reset rows begin at one: everything is read, and no key of before is used again."""
    with changing(chromium(tmp_path)) as database:
        for n in range(5):
            visit(database, "https://a.example/", NOON + n)
    first = run(tmp_path)
    (tmp_path / "History").unlink()
    with changing(chromium(tmp_path)) as database:
        visit(database, "https://a.example/", NOON - DAY)
    again = run(tmp_path, first.state)
    assert len(again.records("visits")) == 1
    assert not {r["id"] for r in again.records("visits")} & {r["id"] for r in first.records("visits")}


def test_a_row_that_is_given_again(tmp_path: Path) -> None:
    """Where the last visit was deleted and its row given to a new one, the new one comes alone."""
    with changing(chromium(tmp_path)) as database:
        visit(database, "https://a.example/")
        visit(database, "https://b.example/", NOON + 1)
    state = run(tmp_path).state
    with changing(tmp_path / "History") as database:
        database.execute("DELETE FROM visits WHERE id = 2")
        visit(database, "https://c.example/", NOON + 2, id=2)
    assert urls(run(tmp_path, state)) == ["https://c.example/"]


@pytest.mark.parametrize("mode", ["WAL", "TRUNCATE"])
def test_a_browser_that_holds_the_database(tmp_path: Path, mode: str) -> None:
    """What a running browser committed is read, its log included, and what it has not committed is not."""
    path = chromium(tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as browser:
        browser.execute(f"PRAGMA journal_mode = {mode}")
        browser.execute("PRAGMA locking_mode = EXCLUSIVE")
        visit(browser, "https://a.example/")
        browser.execute("BEGIN EXCLUSIVE")
        visit(browser, "https://b.example/", NOON + 1)
        assert urls(run(tmp_path)) == ["https://a.example/"]
        browser.execute("COMMIT")
        assert urls(run(tmp_path)) == ["https://a.example/", "https://b.example/"]


def test_the_profile_is_left_as_it_was(tmp_path: Path) -> None:
    """Reading adds no file to the profile and changes none."""
    chromium(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    run(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("content", [b"no database at all, " * 99, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_damaged_database_fails(tmp_path: Path, content: bytes) -> None:
    """Where the only profile is damaged the run fails and says which."""
    (tmp_path / "History").write_bytes(content)
    transcript = collect(CONNECTOR, options={"profile": str(tmp_path)})
    assert transcript.done["status"] == "failed"
    assert "damaged" in transcript.done["error"]["message"]


def test_a_foreign_database_is_skipped(tmp_path: Path) -> None:
    """Beside a profile that can be read, one that is none is skipped with the reason."""
    made(tmp_path / "Other" / "History", "CREATE TABLE visits(id INTEGER)")
    with changing(chromium(tmp_path / "Default")) as database:
        visit(database, "https://a.example/")
    transcript = run(tmp_path)
    assert urls(transcript) == ["https://a.example/"]
    assert {m["reason"] for m in transcript.messages if m["type"] == "SKIP_RESULT"} == {"unreadable_profile"}


def test_a_folder_without_a_profile_fails(tmp_path: Path) -> None:
    """Absent is not empty: the run fails in a sentence."""
    transcript = collect(CONNECTOR, options={"profile": str(tmp_path)})
    assert "There is no profile" in transcript.done["error"]["message"]


def test_the_usual_places_are_searched(tmp_path: Path) -> None:
    """Profiles of both families are found below a home folder, and named by their place in it."""
    from headwater.connectors.browser_history.profiles import default_profiles

    chromium(tmp_path / ".config" / "google-chrome" / "Profile 1")
    firefox(tmp_path / ".mozilla" / "firefox" / "x.default-release")
    assert [(profile.family, profile.name) for profile in default_profiles(tmp_path)] == [
        ("chromium", "~/.config/google-chrome/Profile 1"),
        ("firefox", "~/.mozilla/firefox/x.default-release"),
    ]


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    """Bytes that do not fit in a title are replaced."""
    with changing(chromium(tmp_path)) as database:
        visit(database, "https://a.example/")
        database.execute("UPDATE urls SET title = CAST(x'6ee9' AS TEXT)")
    assert run(tmp_path).records("pages")[0]["title"] == "n\ufffd"


def test_a_visit_without_a_time_is_skipped(tmp_path: Path) -> None:
    """A time that no calendar has makes no record, and is told of."""
    with changing(chromium(tmp_path)) as database:
        visit(database, "https://a.example/", 9_000_000_000_000_000_000 - SINCE_1601)
    transcript = run(tmp_path)
    assert transcript.records("visits") == []
    assert [m["reason"] for m in transcript.messages if m["type"] == "SKIP_RESULT"] == ["no_time"]


def test_a_row_of_firefox_without_a_time(tmp_path: Path) -> None:
    """A visit whose time is null is told of and costs nothing else; a count that is no number counts nothing."""
    with changing(firefox(tmp_path)) as database:
        database.execute(
            "INSERT INTO moz_places(id, url, visit_count, last_visit_date) VALUES (7, 'https://a/', 'x', ?)", (NOON,)
        )
        database.execute("INSERT INTO moz_historyvisits(place_id, visit_date) VALUES (7, NULL), (7, ?)", (NOON,))
    transcript = run(tmp_path)
    assert urls(transcript) == ["https://a/"]
    assert transcript.records("pages")[0]["visit_count"] == 0
    assert [m["reason"] for m in transcript.messages if m["type"] == "SKIP_RESULT"] == ["no_time"]


@pytest.mark.parametrize("stream", ["visits", "pages"])
def test_every_cursor_of_a_walk_is_true(tmp_path: Path, stream: str) -> None:
    """From each cursor of a long walk, a run emits at least what came after it, and less than everything."""
    with changing(chromium(tmp_path)) as database:
        for n in range(2_500):
            visit(database, f"https://example/{n}", NOON + (n * 7 % 2_500) * DAY // 10)
    messages = run(tmp_path).messages
    places = [i for i, m in enumerate(messages) if m["type"] == "STATE" and m["stream"] == stream]
    assert len(places) == 3
    for place in places:
        later = {m["key"] for m in messages[place:] if m["type"] == "RECORD" and m["stream"] == stream}
        again = run(tmp_path, {stream: messages[place]["cursor"]})
        assert later <= {record["id"] for record in again.records(stream)}
        assert len(again.records(stream)) < 2_000


def test_bookmarks_of_chromium(tmp_path: Path) -> None:
    """A bookmark has the names of the folders around it, and is emitted again only if it changed."""
    chromium(tmp_path)
    bookmarks_file(tmp_path, {"type": "folder", "name": "Work/Home", "children": [bookmark("a")]}, bookmark("b"))
    first = run(tmp_path)
    found = [(r["title"], r["folder"], r["added_at"]) for r in first.records("bookmarks")]
    assert found == [
        ("a", ["Bookmarks bar", "Work/Home"], "2023-11-14T22:13:20.000000Z"),
        ("b", ["Bookmarks bar"], "2023-11-14T22:13:20.000000Z"),
    ]
    assert run(tmp_path, first.state).records("bookmarks") == []


def test_a_bookmark_that_is_gone_is_deleted(tmp_path: Path) -> None:
    """A whole list that lacks a bookmark says that it is gone."""
    chromium(tmp_path)
    bookmarks_file(tmp_path, bookmark("a"), bookmark("b"))
    state = run(tmp_path).state
    bookmarks_file(tmp_path, bookmark("a"))
    assert deletes(run(tmp_path, state)) == 1


@pytest.mark.parametrize("content", [None, '{"roots": {"bookmark_bar": {"chi', "[]"])
def test_a_broken_list_deletes_nothing(tmp_path: Path, content: str | None) -> None:
    """A file of bookmarks that is away, half written or something else deletes no bookmark."""
    chromium(tmp_path)
    bookmarks_file(tmp_path, bookmark("a"))
    state = run(tmp_path).state
    (tmp_path / "Bookmarks").unlink()
    if content is not None:
        (tmp_path / "Bookmarks").write_text(content)
    again = collect(CONNECTOR, options={"profile": str(tmp_path)}, state=state)
    assert deletes(again) == 0
    assert [m["stream"] for m in again.messages if m["type"] == "SKIP_RESULT"] == ["bookmarks"]


def test_one_of_two_lists_that_is_away(tmp_path: Path) -> None:
    """A list that is away deletes nothing of its own, whatever the other list says."""
    chromium(tmp_path)
    bookmarks_file(tmp_path, bookmark("a"))
    bookmarks_file(tmp_path, bookmark("b"), bookmark("c"), name="AccountBookmarks")
    state = run(tmp_path).state
    (tmp_path / "Bookmarks").unlink()
    bookmarks_file(tmp_path, bookmark("b"), name="AccountBookmarks")
    again = run(tmp_path, state)
    assert (deletes(again), urls(again, "bookmarks")) == (1, [])
    assert deletes(run(tmp_path, again.state)) == 0


@pytest.mark.parametrize(("source", "target"), [("Bookmarks", "AccountBookmarks"), ("AccountBookmarks", "Bookmarks")])
def test_a_bookmark_that_moves_between_lists_stays(tmp_path: Path, source: str, target: str) -> None:
    """What leaves one list for the other is not deleted."""
    chromium(tmp_path)
    bookmarks_file(tmp_path, bookmark("a"), name=source)
    bookmarks_file(tmp_path, name=target)
    state = run(tmp_path).state
    bookmarks_file(tmp_path, name=source)
    bookmarks_file(tmp_path, bookmark("a"), name=target)
    assert deletes(run(tmp_path, state)) == 0


def test_bookmarks_of_firefox(tmp_path: Path) -> None:
    """Bookmarks are read from the history's database, and a tag is no bookmark."""
    with changing(firefox(tmp_path)) as database:
        database.execute("INSERT INTO moz_places(id, url) VALUES (7, 'https://a.example/')")
        rows = [(1, 7, 5, "A", "bookmark0001"), (1, 7, 6, None, "bookmark0002")]
        database.executemany("INSERT INTO moz_bookmarks(type, fk, parent, title, guid) VALUES (?, ?, ?, ?, ?)", rows)
    (record,) = run(tmp_path).records("bookmarks")
    assert (record["title"], record["folder"], record["added_at"]) == ("A", ["toolbar", "Work"], None)
