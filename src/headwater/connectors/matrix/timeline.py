"""The timelines of the rooms: what is new by one sync, and what lies before it page by page, to the beginning."""

import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from headwater.sdk import DetailLane, Fail, StreamRun

if TYPE_CHECKING:
    from headwater.connectors.matrix import events
    from headwater.connectors.matrix.files import Files
    from headwater.connectors.matrix.homeserver import Refused, homeserver_of
else:
    import events
    from files import Files
    from homeserver import Refused, homeserver_of

CURSOR_VERSION: Final = 1
NEW_EVENTS: Final = 100
PAGE_EVENTS: Final = 500
EMPTY_PAGES: Final = 1_000
EVENTS_PER_RUN: Final = 100_000

# A sync is not asked for types: Synapse looks for them among the newest events only, and would leave out a room where
# others came after them. A page of history looks for them all the way.
_SYNC: Final = {"state": {"types": []}, "timeline": {"limit": NEW_EVENTS}}
_TYPES: Final = {"types": events.TIMELINE}


class Timeline:
    """One pass over the timelines, from where the cursor says that the last one came to.

    The cursor has the token of the last sync, the rooms that the account was in by then, and the gaps: stretches of a
    room's timeline that are still to be walked, backwards from a token to another one, or to the room's beginning.
    """

    def __init__(self, stream: StreamRun, lane: DetailLane | None) -> None:
        self._stream, run = stream, stream.run
        self._server = homeserver_of(run)
        self._files = Files(run, self._server, lane) if lane is not None else None
        self._reactions = run.stream("reactions") if run.wants("reactions") else None
        self._basis = {
            "version": CURSOR_VERSION,
            "account": self._server.account,
            "reactions": self._reactions is not None,
            "files": lane is not None,
        }
        cursor = stream.cursor
        if any(cursor.get(name) != value for name, value in self._basis.items()):
            cursor = {}
        self._since: str = cursor.get("since", "")
        self._rooms: set[str] = set(cursor.get("rooms", ()))
        self._gaps: list[dict[str, str]] = list(cursor.get("gaps", ()))
        self._most = int(run.options.get("events_per_run", EVENTS_PER_RUN))
        self._taken = self._unsaved = 0

    def walk(self) -> None:
        """Take what is new, then walk the gaps as far as one run goes: what is left of them stands in the cursor."""
        self._new()
        try:
            self._back()
        except Fail as failure:
            if failure.hint != "retry_by_runtime":
                raise
            self._stream.skip(failure.code or "interrupted", failure.message, hint="retry_by_runtime")
        self._save()

    def _back(self) -> None:
        empty = 0
        while self._gaps:
            if self._taken >= self._most:
                self._stream.skip("run_bounded", "The run has as many events as one may have; the next one goes on.")
                return
            empty = 0 if self._page(self._gaps[-1]) else empty + 1
            if empty > EMPTY_PAGES:
                raise Fail("The homeserver has page after page without events.", code="upstream_failed")
            # A cursor over very many rooms is long: it is saved as seldom as it is long.
            if self._unsaved >= len(self._rooms) + len(self._gaps):
                self._save()

    def _new(self) -> None:
        """Take the events that the sync has of each room, and note the gap that lies before them."""
        try:
            answer = self._server.sync(_SYNC, self._since)
        except Refused as refusal:
            if not self._since or refusal.status != 400:
                raise Fail(f"The homeserver refuses to sync: {refusal}.") from refusal
            self._stream.progress("The homeserver does not know where the last run came to; this one begins anew")
            self._since, self._rooms, self._gaps = "", set(), []
            answer = self._server.sync(_SYNC)
        sections = events.mapping(answer, "rooms")
        for room, entry in events.mapping(sections, "leave").items():
            self._room(room, entry)
            self._rooms.discard(room)
        for room, entry in events.mapping(sections, "join").items():
            self._room(room, entry)
            self._rooms.add(room)
        self._since = answer["next_batch"]
        self._save()

    def _room(self, room: str, entry: Any) -> None:
        timeline = events.mapping(entry, "timeline")
        known = room in self._rooms
        before = events.text(timeline, "prev_batch")
        # In a room that was joined since, the gap goes to the beginning: all of it is new to the account.
        if before and (timeline.get("limited") or (self._since and not known)):
            self._gaps.append({"room": room, "from": before, "to": self._since if known else ""})
        found = events.listed(timeline.get("events"))
        changed = self._take(room, found)
        # A sync may show a message and its edit, each for itself; what lies before a new room's events is in its gap.
        self._again(room, changed if known else changed & _ids(found))

    def _page(self, gap: dict[str, str]) -> bool:
        """Walk one page of a gap, and return whether there was anything in it."""
        query = {"dir": "b", "from": gap["from"], "limit": str(PAGE_EVENTS), "filter": json.dumps(_TYPES)}
        if gap["to"]:
            query["to"] = gap["to"]
        try:
            page = self._server.get(f"/rooms/{quote(gap['room'], safe='')}/messages", **query)
        except Refused as refusal:
            if refusal.status not in (403, 404):
                raise Fail(f"The homeserver refuses the history of a room: {refusal}.") from refusal
            self._stream.skip("not_visible", "The homeserver does not show the history of a room to this account.")
            self._gaps.remove(gap)
            return True
        found = events.listed(page.get("chunk"))
        changed = self._take(gap["room"], found)
        # A page shows its messages with their newest edits, and so will a page before it that is still to come.
        if gap["to"]:
            self._again(gap["room"], changed - _ids(found))
        end = events.text(page, "end")
        if end and end != gap["from"]:
            gap["from"] = end
        else:
            self._gaps.remove(gap)
        return bool(found)

    def _take(self, room: str, found: list[dict[str, Any]]) -> set[str]:
        """Emit events, and return the ids of those that they change."""
        self._taken += len(found)
        self._unsaved += max(1, len(found))
        return {target for event in found if (target := self._one(room, event))}

    def _again(self, room: str, changed: set[str]) -> None:
        """Emit events that were edited or redacted, as they are by now."""
        for name in sorted(changed):
            event = self._server.event(room, name)
            if event is not None and events.is_event(event):
                self._one(room, event)

    def _one(self, room: str, event: dict[str, Any]) -> str | None:
        """Emit an event, or return the id of the one that it changes."""
        if target := events.target_of(event):
            return target
        if event["type"] == events.REACTION:
            self._reaction(room, event)
        elif event["type"] in events.MESSAGES:
            record = events.message(room, event)
            if self._stream.emit(record) and self._files is not None:
                self._files.fetch(record)
        return None

    def _reaction(self, room: str, event: dict[str, Any]) -> None:
        if self._reactions is None:
            return
        if events.is_redacted(event):
            self._reactions.delete({"event_id": event["event_id"], "source_created_at": events.moment(event)})
        elif record := events.reaction(room, event):
            self._reactions.emit(record)

    def _save(self) -> None:
        self._unsaved = 0
        rooms = sorted(self._rooms)
        self._stream.save({**self._basis, "since": self._since, "rooms": rooms, "gaps": self._gaps})
        self._stream.progress(f"{self._taken:,} events read", count=self._taken)


def _ids(found: list[dict[str, Any]]) -> set[str]:
    return {event["event_id"] for event in found}
