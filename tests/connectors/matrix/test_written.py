"""A Matrix account that is written to: a message is in the room once, and a name is changed from what it was."""

from typing import Any

from connectors.connecting import configure, connect
from servers.synapse import Synapse
from writes.by_hand import approve, permit, write


def test_what_is_approved_is_in_the_room_once(synapse: Synapse, headwater: Any) -> None:
    """The approval is spent by the first message; a rename that somebody else was faster with is a conflict."""
    configure(headwater.place)
    user = synapse.register()
    room = user.make_room("Kitchen")
    name = "matrix/me"
    connect(headwater, "matrix", user.base_url, "token", {"access_token": user.access_token})
    permit(headwater, name, "messages.send", "rooms.rename", "events.redact")
    message = {"room_id": room, "txn_id": "tea-1", "body": {"msgtype": "m.text", "body": "Tea is ready"}}
    proof = approve(headwater, name, "messages.send", message)
    sent = write(headwater, name, "messages.send", message, proof).result
    assert sent["mutation"]["classification"] == "applied"
    again = write(headwater, name, "messages.send", message, proof).failure
    assert (again["code"], again["mutation"]["classification"]) == ("approval_replayed", "not_attempted")
    event = sent["result"]["body"]["event_id"]
    assert [one["event_id"] for one in messages(user, room) if one["content"].get("body")] == [event]

    rename = {"room_id": room, "name_now": "Kitchen", "body": {"name": "Cellar"}}
    proof = approve(headwater, name, "rooms.rename", rename)
    user.call("PUT", f"/_matrix/client/v3/rooms/{room}/state/m.room.name", {"name": "Attic"})
    failure = write(headwater, name, "rooms.rename", rename, proof).failure
    assert (failure["service_code"], failure["mutation"]["classification"]) == ("conflict", "not_attempted")
    rename["name_now"] = "Attic"
    assert write(headwater, name, "rooms.rename", rename).result["mutation"]["classification"] == "applied"
    assert user.call("GET", f"/_matrix/client/v3/rooms/{room}/state/m.room.name")["name"] == "Cellar"

    redact = {"room_id": room, "event_id": event, "txn_id": "oh-1", "body": {}}
    assert write(headwater, name, "events.redact", redact).result["mutation"]["classification"] == "applied"
    assert [one for one in messages(user, room) if one["content"].get("body")] == []


def messages(user: Any, room: str) -> list[dict[str, Any]]:
    """Return the messages of a room, as the homeserver has them."""
    found = user.call("GET", f"/_matrix/client/v3/rooms/{room}/messages?dir=b&limit=50")["chunk"]
    return [event for event in found if event["type"] == "m.room.message"]
