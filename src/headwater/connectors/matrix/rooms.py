"""The rooms of the account and who is in them: whole at first, then what a sync says has changed."""

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from headwater.sdk import Fail, StreamRun

if TYPE_CHECKING:
    from headwater.connectors.matrix import events
    from headwater.connectors.matrix.homeserver import Refused, homeserver_of
else:
    import events
    from homeserver import Refused, homeserver_of

CURSOR_VERSION: Final = 1
ROOMS_AT_ONCE: Final = 100
MEMBERS: Final = 20_000

# Of each room that has anything new, its newest event and what changed in its state before that.
_NEWEST: Final = {"timeline": {"limit": 1}}
_CHANGES: Final = {**_NEWEST, "state": {"types": [*events.STATE, events.MEMBER]}}
# Members are listed room by room: no answer may hold those of every room, or of one that is too large.
_NAMES: Final = {**_NEWEST, "state": {"types": []}}
_WHOLE: Final = {**_NEWEST, "state": {"types": events.STATE, "lazy_load_members": True}}


class Rooms:
    """One pass over what has changed since the cursor's token.

    The cursor also has the rooms that the account was in by then, and what is still to be read again: each of these
    rooms with whether its members are to be listed.
    """

    def __init__(self, stream: StreamRun) -> None:
        self._stream, run = stream, stream.run
        self._server = homeserver_of(run)
        self._members = run.stream("members") if run.wants("members") else None
        self._limit = int(run.options.get("members_per_room", MEMBERS))
        self._basis = {
            "version": CURSOR_VERSION,
            "account": self._server.account,
            "members": self._members is not None,
        }
        cursor = stream.cursor
        if any(cursor.get(name) != value for name, value in self._basis.items()):
            cursor = {}
        self._since: str = cursor.get("since", "")
        self._rooms: set[str] = set(cursor.get("rooms", ()))
        self._due: dict[str, bool] = dict(cursor.get("due", {}))
        self._read = 0

    def walk(self) -> None:
        """See what has changed, then read those rooms again."""
        self._changes()
        while self._due:
            chosen = list(self._due)[:ROOMS_AT_ONCE]
            self._renew(chosen)
            for room in chosen:
                del self._due[room]
            self._save()

    def _changes(self) -> None:
        """See which rooms there are and what has changed in those that are known, and note what has to be read."""
        try:
            answer = self._sync()
        except Refused as refusal:
            if not self._since or refusal.status != 400:
                raise Fail(f"The homeserver refuses to sync: {refusal}.") from refusal
            self._stream.progress("The homeserver does not know where the last run came to; this one begins anew")
            self._since, self._rooms, self._due = "", set(), {}
            answer = self._sync()
        sections = events.mapping(answer, "rooms")
        for room, entry in events.mapping(sections, "leave").items():
            self._changed(room, entry)
            self._due[room] = False
            self._rooms.discard(room)
        for room, entry in events.mapping(sections, "join").items():
            self._changed(room, entry)
            self._rooms.add(room)
        for room, entry in events.mapping(sections, "invite").items():
            stripped = events.mapping(entry, "invite_state").get("events")
            self._stream.emit(events.room(room, "invite", filter(events.is_mapping, stripped or ())))
        self._since = answer["next_batch"]
        self._save()

    def _sync(self) -> dict[str, Any]:
        if not self._since:
            return self._server.sync(_NAMES)
        joined = self._server.get("/joined_rooms").get("joined_rooms")
        fresh = {room for room in joined if isinstance(room, str)} - self._rooms if isinstance(joined, list) else set()
        self._due.update(dict.fromkeys(fresh, True))
        self._rooms |= fresh
        return self._server.sync({**_CHANGES, "not_rooms": sorted(fresh)}, self._since)

    def _changed(self, room: str, entry: Any) -> None:
        """Take the members that changed, and note whether the room has to be read again."""
        if room not in self._rooms:
            self._due[room] = True
            return
        found = _state(entry)
        self._take(room, found)
        if any(event["type"] in events.STATE for event in found):
            self._due.setdefault(room, False)

    def _take(self, room: str, found: list[dict[str, Any]]) -> None:
        """Emit the members among events."""
        if self._members is None:
            return
        for event in found:
            if record := events.member(room, event):
                self._members.emit(record)

    def _renew(self, chosen: list[str]) -> None:
        """Read the state of rooms, and of some the members."""
        answer = self._server.sync({**_WHOLE, "rooms": chosen})
        sections = events.mapping(answer, "rooms")
        for membership in ("join", "leave"):
            for room, entry in events.mapping(sections, membership).items():
                if room in self._due:
                    self._room(room, membership, entry)

    def _room(self, room: str, membership: str, entry: dict[str, Any]) -> None:
        state = _state(entry)
        self._stream.emit(events.room(room, membership, [*state, *self._created(room, state)]))
        self._read += 1
        count = events.mapping(entry, "summary").get("m.joined_member_count")
        if self._due[room] and self._members is not None and membership == "join":
            self._list(room, count if isinstance(count, int) else 0)

    def _created(self, room: str, state: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the event that made the room, which a sync leaves out where it is the room's very name."""
        if any(event["type"] == "m.room.create" for event in state):
            return []
        try:
            content = self._server.get(f"/rooms/{quote(room, safe='')}/state/m.room.create/")
        except Refused:
            return []
        return [{"type": "m.room.create", "state_key": "", "content": content}]

    def _list(self, room: str, count: int) -> None:
        """List the members of a room, unless there are too many to be held at once."""
        if count > self._limit:
            self._stream.run.stream("members").skip("too_many_members", f"A room has {count:,} members.")
            return
        try:
            answer = self._server.get(f"/rooms/{quote(room, safe='')}/members")
        except Refused as refusal:
            if refusal.status not in (403, 404):
                raise Fail(f"The homeserver refuses the members of a room: {refusal}.") from refusal
            return
        self._take(room, events.listed(answer.get("chunk")))

    def _save(self) -> None:
        rooms = sorted(self._rooms)
        self._stream.save({**self._basis, "since": self._since, "rooms": rooms, "due": self._due})
        self._stream.progress(f"{self._read:,} rooms read", count=self._read)


def _state(entry: Any) -> list[dict[str, Any]]:
    """Return the state that a sync tells of a room, and what came after it, which may be state as well."""
    before, after = (events.mapping(entry, name).get("events") for name in ("state", "timeline"))
    return [*events.listed(before), *events.listed(after)]
