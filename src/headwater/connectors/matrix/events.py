"""Events of a room, read into records: nothing in them may be trusted to have the form that it should."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

MESSAGES: Final = ("m.room.message", "m.room.encrypted", "m.sticker")
REACTION: Final = "m.reaction"
REDACTION: Final = "m.room.redaction"
MEMBER: Final = "m.room.member"
TIMELINE: Final = [*MESSAGES, REACTION, REDACTION]
STATE: Final = [
    "m.room.avatar",
    "m.room.canonical_alias",
    "m.room.create",
    "m.room.encryption",
    "m.room.history_visibility",
    "m.room.join_rules",
    "m.room.name",
    "m.room.tombstone",
    "m.room.topic",
]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS: Final = 253_402_300_799_999

Event = Mapping[str, Any]


def listed(value: Any) -> list[dict[str, Any]]:
    """Return the events of a list that have a type, a sender and an id."""
    entries = value if isinstance(value, list) else []
    return [entry for entry in entries if isinstance(entry, dict) and is_event(entry)]


def is_event(event: Event) -> bool:
    """Whether an event has what every event has."""
    return all(isinstance(event.get(name), str) and event[name] for name in ("type", "sender", "event_id"))


def target_of(event: Event) -> str | None:
    """Return the id of the event that an edit or a redaction changes; None for any other event."""
    if event["type"] == REDACTION:
        return text(event, "redacts") or text(mapping(event, "content"), "redacts")
    relation = _relation(mapping(event, "content"))
    replaces = event["type"] in MESSAGES and relation.get("rel_type") == "m.replace"
    return text(relation, "event_id") if replaces else None


def is_redacted(event: Event) -> bool:
    """Whether the homeserver took the content out."""
    return bool(mapping(event, "unsigned").get("redacted_because"))


def message(room: str, event: Event) -> dict[str, Any]:
    """Return the record of a message as it is by now: its newest edit, or what a redaction left of it."""
    edit, content = _edited(event)
    relation = _relation(content)
    redaction = mapping(mapping(event, "unsigned"), "redacted_because")
    return {
        "event_id": event["event_id"],
        "room_id": room,
        "sender": event["sender"],
        "type": event["type"],
        "msgtype": text(content, "msgtype"),
        "body": text(content, "body"),
        "content": content,
        "encrypted": event["type"] == "m.room.encrypted",
        "reply_to": text(mapping(relation, "m.in_reply_to"), "event_id"),
        "thread_id": text(relation, "event_id") if relation.get("rel_type") == "m.thread" else None,
        "source_created_at": moment(event) or _written(_EPOCH),
        "edited_at": moment(edit),
        "redacted": bool(redaction),
        "redacted_at": moment(redaction),
        "redacted_by": text(redaction, "sender"),
        "redaction_reason": text(mapping(redaction, "content"), "reason"),
    }


def reaction(room: str, event: Event) -> dict[str, Any] | None:
    """Return the record of a reaction; None where it is about nothing."""
    relation = _relation(mapping(event, "content"))
    target, key = text(relation, "event_id"), text(relation, "key")
    if not target or key is None:
        return None
    return {
        "event_id": event["event_id"],
        "room_id": room,
        "message_id": target,
        "sender": event["sender"],
        "key": key,
        "source_created_at": moment(event) or _written(_EPOCH),
    }


def member(room: str, event: Event) -> dict[str, Any] | None:
    """Return the record of a membership; None where it is nobody's."""
    content = mapping(event, "content")
    user, membership = text(event, "state_key"), text(content, "membership")
    if event["type"] != MEMBER or not user or not membership:
        return None
    return {
        "room_id": room,
        "user_id": user,
        "membership": membership,
        "display_name": text(content, "displayname"),
        "avatar_url": text(content, "avatar_url"),
        "reason": text(content, "reason"),
        "changed_by": event["sender"],
        "source_updated_at": moment(event),
    }


def room(room_id: str, membership: str, state: Iterable[Event]) -> dict[str, Any]:
    """Return the record of a room from its state events; stripped ones of an invitation will do."""
    # An event with the name of a state's, and no state key, is somebody's message.
    said = {str(event.get("type")): mapping(event, "content") for event in state if event.get("state_key") == ""}
    created, encryption = said.get("m.room.create", {}), said.get("m.room.encryption", {})
    return {
        "room_id": room_id,
        "membership": membership,
        "name": text(said.get("m.room.name", {}), "name"),
        "topic": text(said.get("m.room.topic", {}), "topic"),
        "canonical_alias": text(said.get("m.room.canonical_alias", {}), "alias"),
        "avatar_url": text(said.get("m.room.avatar", {}), "url"),
        "room_type": text(created, "type"),
        "room_version": text(created, "room_version"),
        "predecessor": text(mapping(created, "predecessor"), "room_id"),
        "replaced_by": text(said.get("m.room.tombstone", {}), "replacement_room"),
        "encrypted": text(encryption, "algorithm") is not None,
        "join_rule": text(said.get("m.room.join_rules", {}), "join_rule"),
        "history_visibility": text(said.get("m.room.history_visibility", {}), "history_visibility"),
    }


def file(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a message's record says of the file that it carries; None where it carries none."""
    content = record["content"]
    url, info = text(content, "url"), mapping(content, "info")
    if url is None or record["encrypted"]:
        return None
    size = info.get("size")
    return {
        "event_id": record["event_id"],
        "room_id": record["room_id"],
        "url": url,
        "filename": text(content, "filename") or record["body"],
        "mime_type": text(info, "mimetype"),
        "declared_bytes": size if isinstance(size, int) and 0 <= size < 1 << 53 else None,
        "source_created_at": record["source_created_at"],
    }


def is_mapping(value: Any) -> bool:
    """Whether a value is a JSON object."""
    return isinstance(value, dict)


def mapping(value: Any, name: str) -> dict[str, Any]:
    """Return a member that is an object, an empty one where it is none."""
    member = value.get(name) if isinstance(value, Mapping) else None
    return member if isinstance(member, dict) else {}


def text(value: Mapping[str, Any], name: str) -> str | None:
    """Return a member that is text."""
    member = value.get(name)
    return member if isinstance(member, str) else None


def moment(event: Event) -> str | None:
    """Return when an event was sent, as its sender's server says, in UTC."""
    sent = event.get("origin_server_ts")
    if not isinstance(sent, int) or isinstance(sent, bool) or not 0 <= sent <= _LAST_MS:
        return None
    return _written(_EPOCH + timedelta(milliseconds=sent))


def _written(when: datetime) -> str:
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _edited(event: Event) -> tuple[Event, dict[str, Any]]:
    """Return the newest edit of an event, if any, and the content that holds by now.

    What a message replies to is said by its first text only (Matrix, "Event replacements").
    """
    content = mapping(event, "content")
    relations = mapping(mapping(event, "unsigned"), "m.relations")
    edit = mapping(relations, "m.replace")
    new = mapping(edit, "content")
    if event["type"] != "m.room.encrypted":
        new = mapping(new, "m.new_content")
    if not new or is_redacted(event):
        return {}, content
    kept = {name: content[name] for name in ("m.relates_to",) if name in content}
    return edit, {**{name: item for name, item in new.items() if name != "m.relates_to"}, **kept}


def _relation(content: Mapping[str, Any]) -> dict[str, Any]:
    return mapping(content, "m.relates_to")
