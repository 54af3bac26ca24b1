"""What a second run of the Matrix connector asks for and sends: what is new, edited or redacted, and nothing else."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from connectors.matrix.people import Account, bodies, deleted
from servers.synapse import Synapse, User

_QUIET = ["whoami", "joined_rooms", "sync", "sync"]


def filled(account: Account, *others: User, count: int = 3, **settings: Any) -> tuple[str, list[str]]:
    """Make a room with messages in it."""
    room = account.user.make_room("Kitchen", *others, **settings)
    return room, [account.user.send(room, f"Number {number}") for number in range(count)]


def test_a_second_run_asks_four_times_and_sends_nothing(account: Account) -> None:
    """Whose token it is, which rooms there are, what changed in them, and what was said: nothing is read again."""
    filled(account)
    first = account.succeed()
    assert bodies(first) == ["Number 0", "Number 1", "Number 2"]
    second = account.succeed(first.state)
    assert [target.partition("?")[0].rpartition("/")[2] for target in account.relay.seen] == _QUIET
    assert all("set_presence=offline" in target for target in account.relay.paths("/sync"))
    assert [m for m in second.messages if m["type"] == "RECORD"] == []
    assert second.state == first.state


def test_a_new_message_comes_alone(account: Account, friend: User) -> None:
    """A quiet timeline needs no page of history."""
    room, _ = filled(account, friend)
    first = account.succeed()
    friend.send(room, "Tea?")
    second = account.succeed(first.state)
    assert bodies(second) == ["Tea?"]
    assert account.relay.paths("/messages") == []


def test_history_is_walked_to_the_beginning(account: Account) -> None:
    """More than one page, each message once."""
    account.shorten()
    _, sent = filled(account, count=35)
    first = account.succeed()
    assert [record["event_id"] for record in sorted(first.records("messages"), key=_number)] == sent
    assert len(account.relay.paths("/messages")) == 4
    assert first.state["messages"]["gaps"] == []


def _number(record: dict[str, Any]) -> int:
    return int(record["body"].split()[1])


def test_a_limited_timeline_is_filled_back_to_the_last_run_and_no_further(account: Account, friend: User) -> None:
    """The rest of what came lies between what the sync holds and the last token."""
    account.shorten()
    room, _ = filled(account, friend, count=15)
    first = account.succeed()
    fresh = [friend.send(room, f"New {number}") for number in range(25)]
    second = account.succeed(first.state)
    assert len(second.records("messages")) == 25
    assert {record["event_id"] for record in second.records("messages")} == set(fresh)
    assert len(account.relay.paths("/messages")) == 3
    assert second.state["messages"]["gaps"] == []


def test_an_edit_is_a_version_of_its_message(account: Account) -> None:
    """It was said before the last run, and edited twice after: it comes once, as it is by now."""
    room, sent = filled(account)
    first = account.succeed()
    account.user.edit(room, sent[1], "First edit")
    account.user.edit(room, sent[1], "Second edit")
    second = account.succeed(first.state)
    (record,) = second.records("messages")
    assert (record["event_id"], record["body"]) == (sent[1], "Second edit")
    assert record["edited_at"] > record["source_created_at"]
    assert record["source_created_at"] in [old["source_created_at"] for old in first.records("messages")]
    assert len(account.relay.paths("/event/")) == 1


def test_a_page_of_history_shows_the_newest_edit(account: Account, friend: User) -> None:
    """The edit, the message and the end of the last run lie on different pages of a gap."""
    account.shorten()
    room, sent = filled(account, friend)
    first = account.succeed()
    middle = account.user.send(room, "Middle")
    for number in range(25):
        friend.send(room, f"New {number}")
    account.user.edit(room, sent[0], "Edited, of before")
    account.user.edit(room, middle, "Edited, of the gap")
    for number in range(15):
        friend.send(room, f"Last {number}")
    second = account.succeed(first.state)
    newest = {record["event_id"]: record["body"] for record in second.records("messages")}
    assert (newest[sent[0]], newest[middle]) == ("Edited, of before", "Edited, of the gap")
    assert len(newest) == 42


def test_a_first_run_has_edits_and_redactions_in_place(account: Account) -> None:
    """A walk to the beginning meets what was changed, changed already: it asks for no event alone."""
    account.shorten()
    room, sent = filled(account)
    account.user.edit(room, sent[0], "Edited")
    account.user.redact(room, sent[1], "private")
    for number in range(3, 15):
        account.user.send(room, f"Number {number}")
    first = account.succeed()
    assert bodies(first)[:4] == ["Edited", None, "Number 2", "Number 3"]
    assert account.relay.paths("/event/") == []


def test_a_message_and_its_edit_in_one_sync_end_as_the_edit(account: Account) -> None:
    """There the homeserver shows each for itself."""
    room, sent = filled(account)
    account.user.edit(room, sent[0], "Edited")
    first = account.succeed()
    newest = {record["event_id"]: record["body"] for record in first.records("messages")}
    assert list(newest.values()) == ["Edited", "Number 1", "Number 2"]


def test_a_redaction_takes_the_content_and_leaves_who_and_when(account: Account) -> None:
    """The homeserver still has the event, without its content: so has the record."""
    room, sent = filled(account)
    first = account.succeed()
    account.user.redact(room, sent[2], "private")
    second = account.succeed(first.state)
    (record,) = second.records("messages")
    assert (record["event_id"], record["content"], record["body"]) == (sent[2], {}, None)
    assert (record["redacted"], record["redacted_by"]) == (True, account.user.user_id)
    assert record["redaction_reason"] == "private"
    again = account.succeed()
    assert record in again.records("messages")


def test_a_reaction_that_is_taken_back_is_deleted(account: Account, friend: User) -> None:
    """Reactions ride on the cursor of the messages."""
    room, sent = filled(account, friend)
    reaction = friend.react(room, sent[0], "👍")
    first = account.succeed()
    (record,) = first.records("reactions")
    assert (record["event_id"], record["message_id"], record["key"]) == (reaction, sent[0], "👍")
    friend.redact(room, reaction)
    second = account.succeed(first.state)
    assert deleted(second, "reactions") == [reaction]
    assert second.records("messages") == []


def test_a_room_that_is_joined_later_is_read_from_its_beginning(account: Account, friend: User) -> None:
    """What was said there before the last run is new to the account."""
    filled(account)
    room = friend.make_room("Garden")
    for number in range(3):
        friend.send(room, f"Old {number}")
    first = account.succeed()
    account.user.join(room)
    friend.send(room, "Welcome")
    second = account.succeed(first.state)
    assert list(dict.fromkeys(bodies(second))) == ["Old 0", "Old 1", "Old 2", "Welcome"]
    # Its members are listed for themselves: however many they are, the sync does not bring them.
    assert quote(json.dumps({"not_rooms": [room]}, separators=(",", ":"))[1:-1]) in account.relay.paths("/sync")[0]


def test_a_room_that_is_left_and_joined_again_has_all_of_it(account: Account, friend: User) -> None:
    """What was said in between lies before the token of the run in between."""
    room = friend.make_room("Garden", account.user)
    first = account.succeed()
    account.user.call("POST", f"/_matrix/client/v3/rooms/{room}/leave", {})
    friend.send(room, "While away")
    second = account.succeed(first.state)
    assert [record["membership"] for record in second.records("rooms")] == ["leave"]
    assert bodies(second) == []
    account.shorten()
    account.user.join(room)
    for number in range(15):
        friend.send(room, f"Back {number}")
    third = account.succeed(second.state)
    assert "While away" in bodies(third)
    assert [record["membership"] for record in third.records("rooms")] == ["join"]


def test_rooms_and_members_come_when_they_change(account: Account, friend: User, synapse: Synapse) -> None:
    """A topic renews its room, and somebody who leaves their membership: the rest is left alone."""
    room, _ = filled(account, friend, topic="Tea")
    other = account.user.make_room("Garden")
    first = account.succeed()
    assert {(record["name"], record["topic"]) for record in first.records("rooms")} == {
        ("Kitchen", "Tea"),
        ("Garden", None),
    }
    members = {(record["room_id"], record["user_id"]) for record in first.records("members")}
    assert members == {(room, account.user.user_id), (room, friend.user_id), (other, account.user.user_id)}
    account.user.call("PUT", f"/_matrix/client/v3/rooms/{room}/state/m.room.topic/", {"topic": "Coffee"})
    friend.call("POST", f"/_matrix/client/v3/rooms/{room}/leave", {"reason": "late"})
    second = account.succeed(first.state)
    assert [record["topic"] for record in second.records("rooms")] == ["Coffee"]
    (record,) = second.records("members")
    assert (record["user_id"], record["membership"], record["reason"]) == (friend.user_id, "leave", "late")


def test_what_changed_before_much_else_is_not_missed(account: Account, friend: User) -> None:
    """A topic, somebody who came and a message lie behind so many events of other kinds that a sync leaves them out."""
    account.shorten(4)
    room, _ = filled(account, topic="Tea")
    first = account.succeed()
    account.user.call("PUT", f"/_matrix/client/v3/rooms/{room}/state/m.room.topic/", {"topic": "Coffee"})
    friend.join(room)
    friend.send(room, "Hello")
    for number in range(60):
        friend.send(room, {"number": number}, "org.example.number")
    for state in ({}, first.state):
        second = account.succeed(state)
        assert [record["topic"] for record in second.records("rooms")] == ["Coffee"]
        assert friend.user_id in [record["user_id"] for record in second.records("members")]
        assert bodies(second)[-1] == "Hello"


def test_an_invitation_is_a_room_too(account: Account, friend: User) -> None:
    """It shows what the invitation shows."""
    first = account.succeed()
    friend.call("POST", "/_matrix/client/v3/createRoom", {"name": "Party", "invite": [account.user.user_id]})
    (record,) = account.succeed(first.state).records("rooms")
    assert (record["membership"], record["name"]) == ("invite", "Party")


def test_encrypted_messages_are_kept_as_they_come(account: Account) -> None:
    """There is no key here: ciphertext is what the account holds on the server."""
    room = account.user.make_room("Vault")
    algorithm = {"algorithm": "m.megolm.v1.aes-sha2"}
    account.user.call("PUT", f"/_matrix/client/v3/rooms/{room}/state/m.room.encryption/", algorithm)
    content = {**algorithm, "ciphertext": "AwgAEnACgAkLmt6qF84IK", "session_id": "s", "device_id": "d"}
    account.user.send(room, content, "m.room.encrypted")
    first = account.succeed()
    (record,) = first.records("messages")
    assert (record["encrypted"], record["body"], record["content"]) == (True, None, content)
    assert first.records("rooms")[0]["encrypted"] is True


@pytest.mark.parametrize("stream", ["rooms", "messages"])
def test_a_token_that_the_homeserver_does_not_know_begins_anew(account: Account, stream: str) -> None:
    """It was set up again, or restored from a backup."""
    filled(account)
    first = account.succeed()
    state = {**first.state, stream: {**first.state[stream], "since": "no token at all"}}
    second = account.succeed(state)
    assert len(second.records(stream)) == len(first.records(stream))


def test_the_cursor_of_another_account_is_not_used(account: Account, friend: User, synapse: Synapse) -> None:
    """Tokens of a sync are the server's, and would hide from one account what only the other had seen."""
    filled(account, friend)
    first = account.succeed()
    second = account.succeed(first.state, answers=[{"access_token": friend.access_token}])
    assert bodies(second) == ["Number 0", "Number 1", "Number 2"]
