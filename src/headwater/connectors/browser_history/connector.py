"""The history and bookmarks that browsers keep on this machine."""

import sqlite3
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headwater.sdk import Connector, Fail, RunContext, StreamRun

if TYPE_CHECKING:
    from headwater.connectors.browser_history.families import FAMILIES, first, last_row
    from headwater.connectors.browser_history.profiles import Copies, Profile, Unreadable, default_profiles, profiles_in
    from headwater.connectors.browser_history.records import (
        Page,
        Visit,
        bookmark_record,
        digest,
        page_record,
        visit_record,
    )
else:
    from families import FAMILIES, first, last_row
    from profiles import Copies, Profile, Unreadable, default_profiles, profiles_in
    from records import Page, Visit, bookmark_record, digest, page_record, visit_record

SAVE_EVERY: Final = 1_000
# A page's title may come long after the visit: pages of the last day before the cursor are read again.
OVERLAP_MICROSECONDS: Final = 24 * 3600 * 1_000_000

connector = Connector()
copies = Copies()


@cache
def profiles_of(option: str | None) -> list[Profile]:
    """Find the profiles that the run is about, or end it."""
    home = Path.home()
    profiles = profiles_in(Path(option), home) if option else default_profiles(home)
    if not profiles:
        where = Path(option).name if option else "the usual places of the home folder"
        raise Fail(
            f"There is no profile of a browser in {where}: it has neither `History` nor `places.sqlite`.",
            hint="manual_action_required",
        )
    return profiles


class Saving:
    """One stream's cursor: a part for each profile, and those of profiles that are away are kept."""

    def __init__(self, stream: StreamRun) -> None:
        self._stream = stream
        self._parts: dict[str, Any] = dict(stream.cursor.get("profiles", {}))
        self._count = self._unsaved = 0

    def part(self, profile: Profile) -> dict[str, Any]:
        """Return where a profile's stream came to."""
        return dict(self._parts.get(profile.name, {}))

    def took(self) -> bool:
        """Count a record; say whether it is time to save."""
        self._count, self._unsaved = self._count + 1, self._unsaved + 1
        return self._unsaved >= SAVE_EVERY

    def save(self, profile: Profile, part: dict[str, Any]) -> None:
        """Save where a profile's stream came to."""
        self._parts[profile.name] = part
        self._unsaved = 0
        self._stream.save({"profiles": self._parts})
        self._stream.progress(f"{self._count:,} {self._stream.name} read", count=self._count)


def _option(run: RunContext) -> str | None:
    option = run.options.get("profile")
    return option if isinstance(option, str) and option else None


def _each(stream: StreamRun, collect: Callable[[StreamRun, Profile, Saving], None]) -> None:
    """Collect a stream from every profile; one that cannot be read is skipped, and the run fails if all are so."""
    profiles, saving = profiles_of(_option(stream.run)), Saving(stream)
    reasons = []
    for profile in profiles:
        try:
            collect(stream, profile, saving)
        except Unreadable as error:
            reasons.append(f"{profile.name}: {error}")
            stream.skip("unreadable_profile", reasons[-1])
    if len(reasons) == len(profiles):
        raise Fail(f"The {stream.name} of no profile can be read. {reasons[0]}.", hint="manual_action_required")


@connector.stream("visits")
def visits(stream: StreamRun) -> None:
    """Collect the visits that came since."""
    _each(stream, _visits)


def _visits(stream: StreamRun, profile: Profile, saving: Saving) -> None:
    """Emit visits by row, from after the last row or the last time, whichever takes more.

    A browser may give the row of a deleted visit to a new one, whose time is later; and it may store the older
    visits of another device in new rows. Where neither the first nor the last visit known is left, all is new.
    """
    family = FAMILIES[profile.family]
    with copies.opened(profile, family.columns) as database:
        part = saving.part(profile)
        if not any(_still_there(database, family.visits, part.get(end)) for end in ("first", "last")):
            part = {"first": first(database, family.visits)}
        begin = last = part.get("last", [0, 0])
        latest, invalid = part.get("latest", 0), 0
        asked = f"SELECT * FROM ({family.visits}) WHERE row > ? OR at > ? ORDER BY row"
        for visit in map(Visit._make, database.execute(asked, (begin[0], latest))):
            data = visit_record(profile.name, profile.family, visit)
            if data is None:
                invalid += 1
                continue
            stream.emit(data)
            latest = max(latest, visit.at)
            due = saving.took()
            # Rows up to `begin` are here for their time, which is in no order: nothing is claimed until they are done.
            if visit.row > begin[0]:
                last = [visit.row, visit.at]
                if due:
                    saving.save(profile, {**part, "last": last, "latest": latest})
        if invalid:
            stream.skip("no_time", f"{profile.name}: {invalid:,} visits have no time that a calendar knows")
        saving.save(profile, {"first": first(database, family.visits), "last": last, "latest": latest})


def _still_there(database: sqlite3.Connection, view: str, end: list[int] | None) -> bool:
    asked = f"SELECT 1 FROM ({view}) WHERE row = ? AND at = ?"
    return end is not None and database.execute(asked, (end[0], end[1])).fetchone() is not None


@connector.stream("pages")
def pages(stream: StreamRun) -> None:
    """Collect the pages that are new or were visited since."""
    _each(stream, _pages)


def _pages(stream: StreamRun, profile: Profile, saving: Saving) -> None:
    """Emit first the new rows with an old time, by row; then all with a time since the last run, by time.

    The first are pages that came from another device or an import. Each half is saved by what it is sorted by, while
    the other half's mark stays where it was.
    """
    family = FAMILIES[profile.family]
    with copies.opened(profile, family.columns) as database:
        part = saving.part(profile)
        newest = last_row(database, family.pages)
        row, latest = part.get("row", 0), part.get("latest", 0)
        row = row if row <= newest else 0
        since = latest - OVERLAP_MICROSECONDS
        old = f"SELECT * FROM ({family.pages}) WHERE row > ? AND at < ? ORDER BY row"
        for page in map(Page._make, database.execute(old, (row, since))):
            stream.emit(page_record(profile.name, profile.family, page))
            if saving.took():
                saving.save(profile, {"row": page.row, "latest": latest})
        recent = f"SELECT * FROM ({family.pages}) WHERE at >= ? ORDER BY at"
        for page in map(Page._make, database.execute(recent, (since,))):
            stream.emit(page_record(profile.name, profile.family, page))
            latest = max(latest, page.at)
            if saving.took():
                saving.save(profile, {"row": newest, "latest": latest})
        saving.save(profile, {"row": newest, "latest": latest})


@connector.stream("bookmarks")
def bookmarks(stream: StreamRun) -> None:
    """Collect the bookmarks, and delete those that are gone from a list that was read to its end."""
    _each(stream, _bookmarks)


def _bookmarks(stream: StreamRun, profile: Profile, saving: Saving) -> None:
    """Emit the bookmarks that are new or changed, list by list; a list that is away says nothing of its own."""
    family = FAMILIES[profile.family]
    known: dict[str, dict[str, str]] = saving.part(profile)
    marks = {name: dict(known.get(name, {})) for name in family.lists if known.get(name)}
    present: dict[str, dict[str, str]] = {}
    for name in family.lists:
        if not (profile.folder / name).exists():
            if known.get(name):
                stream.skip("no_bookmarks", f"{profile.name}: {name} is away; the bookmarks known from it are kept")
            continue
        present[name] = {}
        for bookmark in family.bookmarks(copies, profile, name):
            data = bookmark_record(profile.name, profile.family, bookmark)
            mark = present[name][data["id"]] = digest(*bookmark)[:16]
            if marks.get(name, {}).get(data["id"]) != mark:
                stream.emit(data)
                marks.setdefault(name, {})[data["id"]] = mark
                if saving.took():
                    saving.save(profile, marks)
    _delete_gone(stream, known, present)
    if marks or present:
        saving.save(profile, marks | present)


def _delete_gone(stream: StreamRun, known: dict[str, dict[str, str]], present: dict[str, dict[str, str]]) -> None:
    """Delete what the lists that were read to their ends lack; it may have moved to another of the lists."""
    still = {key for name, keys in (known | present).items() for key in keys}
    for key in sorted({key for name in present for key in known.get(name, {})} - still):
        stream.delete({"id": key})


if __name__ == "__main__":
    connector.run()
