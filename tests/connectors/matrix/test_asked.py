"""A Matrix account that is asked: a real homeserver's answers, and its pages walked to their end."""

import json
from typing import Any

import pytest
from connectors.connecting import configure, connect
from servers.synapse import Synapse


@pytest.mark.clause("CLI-650", "CLI-653")
def test_the_messages_of_a_room_are_walked(synapse: Synapse, headwater: Any) -> None:
    """Three pages of two; the records are the room's events, the newest first, and nothing twice."""
    configure(headwater.place)
    user = synapse.register()
    room = user.make_room("Kitchen")
    sent = [user.send(room, f"Number {number}") for number in range(3)]
    connect(headwater, "matrix", user.base_url, "token", {"access_token": user.access_token})
    whoami = headwater.type("invoke", "matrix", "account.whoami", "--input-json", "{}").result
    assert whoami["result"]["body"]["user_id"] == user.user_id
    out = headwater.place / "messages"
    given = json.dumps({"room_id": room, "limit": 2})
    told = headwater.type(
        "invoke", "matrix", "messages.list", "--walk", "--out", str(out), "--input-json", given
    ).result
    events = [json.loads(line) for line in out.read_text().splitlines()]
    assert (told["complete"], told["end"], told["records"]) == (True, "no_end", len(events))
    ids = [event["event_id"] for event in events]
    assert (ids[:3], len(set(ids))) == (sent[::-1], len(ids))
    assert events[-1]["type"] == "m.room.create"
