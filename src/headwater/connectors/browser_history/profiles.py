"""Where browsers keep their profiles, and how one is read while its browser holds it open."""

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

COPIES: Final = 5
JSON_BYTES: Final = 256 * 1024 * 1024
DATABASES: Final = {"chromium": "History", "firefox": "places.sqlite"}
_BESIDE: Final = ("-wal", "-journal")
_CHROMIUM: Final = {
    ".config": (
        "google-chrome",
        "google-chrome-beta",
        "google-chrome-unstable",
        "chromium",
        "microsoft-edge",
        "BraveSoftware/Brave-Browser",
        "vivaldi",
        "opera",
    ),
    ".var/app": (
        "com.google.Chrome/config/google-chrome",
        "org.chromium.Chromium/config/chromium",
        "com.microsoft.Edge/config/microsoft-edge",
        "com.brave.Browser/config/BraveSoftware/Brave-Browser",
        "com.vivaldi.Vivaldi/config/vivaldi",
        "com.opera.Opera/config/opera",
    ),
    "snap": ("chromium/common/chromium", "brave/current/.config/BraveSoftware/Brave-Browser"),
    "Library/Application Support": (
        "Google/Chrome",
        "Chromium",
        "Microsoft Edge",
        "BraveSoftware/Brave-Browser",
        "Vivaldi",
        "com.operasoftware.Opera",
        "Arc/User Data",
    ),
    "AppData/Local": (
        "Google/Chrome/User Data",
        "Chromium/User Data",
        "Microsoft/Edge/User Data",
        "BraveSoftware/Brave-Browser/User Data",
        "Vivaldi/User Data",
    ),
    "AppData/Roaming": ("Opera Software",),
}
_FIREFOX: Final = {
    ".": (".mozilla/firefox", ".config/mozilla/firefox", ".librewolf", ".waterfox"),
    ".var/app": ("org.mozilla.firefox/.mozilla/firefox", "io.gitlab.librewolf-community/.librewolf"),
    "snap": ("firefox/common/.mozilla/firefox",),
    "Library/Application Support": ("Firefox/Profiles", "librewolf/Profiles", "Waterfox/Profiles"),
    "AppData/Roaming": ("Mozilla/Firefox/Profiles", "librewolf/Profiles", "Waterfox/Profiles"),
}


class Unreadable(Exception):
    """A profile cannot be read now, or is none; the message says why."""


@dataclass(frozen=True)
class Profile:
    """One profile: its folder, the family of its browser, and the name by which records know it."""

    folder: Path
    family: str
    name: str


def default_profiles(home: Path) -> list[Profile]:
    """Find the profiles in the places that browsers use below a home folder."""
    places = [
        home / below / name for table in (_CHROMIUM, _FIREFOX) for below, names in table.items() for name in names
    ]
    return _distinct(profile for place in places for profile in profiles_in(place, home))


def profiles_in(folder: Path, home: Path) -> list[Profile]:
    """Find the profiles that a folder is or holds."""
    try:
        inside = sorted(folder.iterdir())
    except OSError:
        return []
    return _distinct(
        Profile(place, family, _shown(place, home))
        for place in (folder, *inside)
        for family, database in DATABASES.items()
        if os.path.isfile(place / database)
    )


def _distinct(profiles: Iterator[Profile]) -> list[Profile]:
    """Leave out what a symbolic link shows a second time."""
    return list({(profile.folder.resolve(), profile.family): profile for profile in profiles}.values())


def _shown(folder: Path, home: Path) -> str:
    name = f"~/{folder.relative_to(home)}" if folder.is_relative_to(home) else str(folder)
    return clean(name.replace(os.sep, "/"))


class Copies:
    """The run's own copies of the databases: one each, so that all streams see the same moment."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._made: dict[Profile, Path] = {}

    @contextmanager
    def opened(self, profile: Profile, columns: Mapping[str, str]) -> Iterator[sqlite3.Connection]:
        """Open a profile's copy, which must have these tables with these columns; translate SQLite's complaints."""
        try:
            with closing(sqlite3.connect(self._copy_of(profile))) as database:
                database.text_factory = lambda raw: clean(raw.decode("utf-8", "replace"))
                for table, names in columns.items():
                    database.execute(f"SELECT {names} FROM {table} LIMIT 0")
                yield database
        except sqlite3.OperationalError as error:
            raise Unreadable(f"the database is of an unknown kind, or cannot be read now: {error}") from error
        except sqlite3.DatabaseError as error:
            raise Unreadable(f"the database is damaged, or none: {error}") from error

    def _copy_of(self, profile: Profile) -> Path:
        if profile not in self._made:
            try:
                self._made[profile] = self._copy(profile)
            except OSError as error:
                raise Unreadable(f"the database cannot be copied: {error.strerror}") from error
        return self._made[profile]

    def _copy(self, profile: Profile) -> Path:
        """Copy a database with what lies beside it, until nothing changed meanwhile; check it if something did."""
        source = profile.folder / DATABASES[profile.family]
        self._folder = self._folder or tempfile.TemporaryDirectory(prefix="browser-history-")
        target = Path(tempfile.mkdtemp(dir=self._folder.name)) / "database"
        for _ in range(COPIES):
            before = _mark(source)
            shutil.copyfile(source, target)
            for end in _BESIDE:
                _copy_if_there(Path(f"{source}{end}"), Path(f"{target}{end}"))
            if _mark(source) == before:
                return target
        with closing(sqlite3.connect(target)) as database:
            if database.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise Unreadable("the browser wrote all the while that the database was copied; try again later")
        return target


def _mark(source: Path) -> list[tuple[int, int, int] | None]:
    """Return what changes whenever a database, its log or its journal does."""
    marks: list[tuple[int, int, int] | None] = []
    for end in ("", *_BESIDE):
        try:
            info = os.stat(f"{source}{end}")
        except FileNotFoundError:
            marks.append(None)
        else:
            marks.append((info.st_size, info.st_mtime_ns, info.st_ino))
    return marks


def _copy_if_there(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    try:
        shutil.copyfile(source, target)
    except FileNotFoundError:
        target.unlink(missing_ok=True)


def read_json(path: Path) -> Any:
    """Read a JSON file of a profile."""
    try:
        with path.open("rb") as file:
            raw = file.read(JSON_BYTES + 1)
        if len(raw) > JSON_BYTES:
            raise Unreadable(f"{path.name} is larger than {JSON_BYTES:,} bytes")
        return json.loads(raw)
    except OSError as error:
        raise Unreadable(f"{path.name} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{path.name} is no JSON, or only half written") from error


def clean(text: str) -> str:
    """Return text that JSON and every database can hold."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")
