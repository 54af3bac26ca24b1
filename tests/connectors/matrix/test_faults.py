"""What the Matrix connector does when the homeserver says no, says it late, or says nonsense."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from connectors.matrix.people import CONNECTOR, Account, bodies
from servers.synapse import User

IMPATIENT = """
import os, runpy, sys
sys.argv.pop(0)
sys.path.insert(0, os.path.dirname(sys.argv[0]))
import homeserver
homeserver.PATIENCE_SECONDS = 1.1
runpy.run_path(sys.argv[0], run_name="__main__")
"""

EXPIRED = 401, {"errcode": "M_UNKNOWN_TOKEN", "soft_logout": True}


def filled(account: Account, count: int = 3) -> str:
    """Make a room with messages in it."""
    room = account.user.make_room("Kitchen")
    for number in range(count):
        account.user.send(room, f"Number {number}")
    return room


def hint(transcript: Any) -> Any:
    assert transcript.done["status"] == "failed"
    return transcript.done["error"].get("recovery_hint")


def test_a_token_that_is_revoked_between_runs_asks_for_another(account: Account) -> None:
    """Nothing is sent, and no cursor moves."""
    filled(account)
    first = account.succeed()
    account.user.log_out()
    second = account.collect(first.state)
    assert hint(second) == "refresh_credentials"
    assert second.done["error"]["retryable"] is False
    assert second.state == {}


def test_a_token_that_is_revoked_in_the_midst_loses_nothing(account: Account, friend: User) -> None:
    """The homeserver ends the session while history is walked; with another token the walk goes on."""
    account.shorten()
    room = filled(account, 35)
    friend.join(room)
    seen = []

    def revoke(target: str) -> None:
        if "/messages" in target:
            seen.append(target)
            if len(seen) == 2:
                account.user.log_out()

    account.relay.meddle = revoke
    first = account.collect()
    assert hint(first) == "refresh_credentials"
    assert 10 < len(first.records("messages")) < 35
    account.relay.meddle = lambda target: None
    token = account.log_in_again()
    second = account.succeed(first.state, answers=[{"access_token": token}])
    assert sorted({*bodies(first), *bodies(second)}) == sorted(f"Number {number}" for number in range(35))
    assert len(second.records("messages")) < 35


def expires(target_part: str) -> Any:
    """Say once of a session that its token expired."""
    said: list[str] = []

    def meddle(target: str) -> tuple[int, Any] | None:
        if said or target_part not in target:
            return None
        said.append(target)
        return EXPIRED

    return meddle


def test_a_homeserver_that_gives_out_in_the_midst_of_history_costs_nothing_that_came(account: Account) -> None:
    """The run ends in good order and says so; the next one goes on in the gap."""
    account.shorten()
    filled(account, 45)
    account.relay.meddle = lambda target: (503, {}) if len(account.relay.paths("/messages")) > 2 else None
    first = account.succeed()
    assert [m["reason"] for m in first.messages if m["type"] == "SKIP_RESULT"] == ["upstream_failed"]
    assert len(first.records("messages")) == 30
    account.relay.meddle = lambda target: None
    second = account.succeed(first.state)
    assert len(second.records("messages")) == 15


def test_a_run_stops_at_its_bound_and_the_next_one_goes_on(account: Account) -> None:
    account.shorten()
    filled(account, 45)
    first = account.succeed(options={"events_per_run": 20})
    assert [m["reason"] for m in first.messages if m["type"] == "SKIP_RESULT"] == ["run_bounded"]
    assert len(first.records("messages")) == 20
    second = account.succeed(first.state)
    assert len(second.records("messages")) == 25
    assert second.state["messages"]["gaps"] == []


def test_a_token_that_expires_in_the_midst_is_asked_for_again(account: Account) -> None:
    """Where it can be renewed, a walk that takes longer than a token lives comes to its end."""
    account.shorten()
    filled(account, 25)
    account.relay.meddle = expires("/messages")
    first = account.succeed(answers=[account.answer, {"access_token": account.log_in_again()}])
    assert len(first.records("messages")) == 25
    assert len([m for m in first.messages if m["type"] == "INTERACTION"]) == 2


def test_an_expired_token_that_is_answered_again_is_refused(account: Account) -> None:
    """The same token would be asked for for ever."""
    filled(account)
    account.relay.meddle = expires("/sync")
    first = account.collect(answers=[account.answer, account.answer])
    assert hint(first) == "refresh_credentials"
    assert len([m for m in first.messages if m["type"] == "INTERACTION"]) == 2


def test_tokens_that_expire_at_once_are_not_asked_for_without_end(account: Account) -> None:
    """A homeserver that lets every new token expire would be asked as long as there is another one."""
    account.relay.meddle = lambda target: EXPIRED if "/sync" in target else None
    tokens = [account.answer, *({"access_token": account.log_in_again()} for _ in range(5))]
    run = account.collect(answers=tokens)
    assert hint(run) == "refresh_credentials"
    assert len([m for m in run.messages if m["type"] == "INTERACTION"]) == 1 + 3


@pytest.mark.parametrize("token", ["", "two words", "wrong", "x\r\nX-More: 1", "é"])
def test_what_is_no_token_is_never_sent_or_is_refused(account: Account, token: str) -> None:
    """Nothing that is answered can become another header."""
    assert hint(account.collect(answers=[{"access_token": token}])) == "refresh_credentials"


def limits(times: int, said: dict[str, Any]) -> Any:
    """Refuse the first requests over the rate."""
    left = [times]

    def meddle(target: str) -> tuple[int, Any] | None:
        left[0] -= 1
        return (429, {"errcode": "M_LIMIT_EXCEEDED", **said}) if left[0] >= 0 else None

    return meddle


def test_a_limit_of_rate_is_waited_for_as_long_as_it_asks(account: Account) -> None:
    filled(account)
    account.relay.meddle = limits(3, {"retry_after_ms": 300})
    begun = time.monotonic()
    assert len(account.succeed().records("messages")) == 3
    assert time.monotonic() - begun >= 0.9


@pytest.mark.parametrize("asked", [60_001, 10**400, 1e300])
def test_a_limit_that_asks_for_more_than_a_minute_ends_the_run(account: Account, asked: Any) -> None:
    account.relay.meddle = limits(10**9, {"retry_after_ms": asked})
    assert hint(account.collect()) == "retry_by_runtime"
    assert len(account.relay.seen) == 1


def test_limits_that_never_end_are_waited_for_only_so_long(account: Account) -> None:
    """Each asks for little; together they are more than a run waits, which is a second here and five minutes else."""
    account.relay.meddle = limits(10**9, {"retry_after_ms": 0})
    assert hint(account.collect(program=(sys.executable, "-c", IMPATIENT))) == "retry_by_runtime"
    assert len(account.relay.seen) == 6


def test_a_passing_fault_passes(account: Account) -> None:
    filled(account)
    failed = []

    def meddle(target: str) -> tuple[int, Any] | None:
        if "/sync" in target and not failed:
            failed.append(target)
            return 502, b"<html>"
        return None

    account.relay.meddle = meddle
    assert len(account.succeed().records("messages")) == 3


def test_a_fault_that_stays_fails_the_run(account: Account) -> None:
    account.relay.meddle = lambda target: (503, {}) if "/sync" in target else None
    assert hint(account.collect()) == "retry_by_runtime"
    assert len(account.relay.paths("/sync")) == 3


def test_a_homeserver_that_is_not_there_fails_the_run(account: Account) -> None:
    assert hint(account.collect(options={"endpoint": "http://127.0.0.1:9"})) == "retry_by_runtime"


@pytest.mark.parametrize(
    "said",
    [b"", b"<html>", b"[]", b"null", b'{"next_batch":7}', b'{"next_batch":NaN}', b"[" * 100_000, b'{"rooms":{}}'],
)
def test_an_answer_that_is_none_is_not_taken_for_an_empty_one(account: Account, said: bytes) -> None:
    """Absent is not empty: the cursor stays where it was."""
    filled(account)
    first = account.succeed()
    account.relay.meddle = lambda target: (200, said) if "/sync" in target else None
    second = account.collect(first.state)
    assert hint(second) == "retry_by_runtime"
    assert second.state == {}


def strange(event: dict[str, Any]) -> bytes:
    """Return a sync with one event in one room."""
    whole = {
        "type": "m.room.message",
        "sender": "@a:b",
        "event_id": "$e",
        "origin_server_ts": 1,
        "content": {},
        **event,
    }
    timeline = {"events": [whole], "limited": False, "prev_batch": "t1"}
    said = json.dumps({"next_batch": "s1", "rooms": {"join": {"!r:b": {"timeline": timeline}}}})
    return said.replace("Infinity", "1e999").encode()


@pytest.mark.parametrize(
    ("event", "records"),
    [
        ({"content": None}, 1),
        ({"content": {"body": 7, "m.relates_to": [], "msgtype": {}}}, 1),
        ({"content": {"body": "\ud800 and \0"}}, 1),
        ({"origin_server_ts": "yesterday"}, 1),
        ({"origin_server_ts": 10**30}, 1),
        ({"origin_server_ts": -1}, 1),
        ({"content": {"body": "x", "far": float("inf")}}, 1),
        ({"unsigned": {"m.relations": {"m.replace": 7}, "redacted_because": 7}}, 1),
        ({"unsigned": {"m.relations": {"m.replace": {"content": {"m.new_content": {"body": 1}}}}}}, 1),
        ({"event_id": 7}, 0),
        ({"sender": None}, 0),
        ({"type": ["m.room.message"]}, 0),
    ],
)
def test_a_strange_event_costs_nothing_but_itself(account: Account, event: dict[str, Any], records: int) -> None:
    """What senders and their servers may have written is read as what it is, or not at all."""
    account.relay.meddle = lambda target: (200, strange(event)) if "/sync" in target else None
    first = account.succeed(streams=["messages", "reactions", "files"])
    assert len(first.records("messages")) == records


def test_a_message_that_only_looks_like_a_name_renames_no_room(account: Account) -> None:
    """A homeserver that lets a member send an event of a state's type, without a state key."""
    told = strange({"type": "m.room.name", "content": {"name": "Renamed"}})
    account.relay.meddle = lambda target: (200, told) if "/sync" in target else None
    (record,) = account.succeed(streams=["rooms", "members"]).records("rooms")
    assert record["name"] is None


def test_no_edit_brings_back_what_was_redacted(account: Account) -> None:
    """A homeserver that still shows the edit of a message whose content it took."""
    edit = {"event_id": "$f", "origin_server_ts": 2, "content": {"m.new_content": {"body": "private"}}}
    unsigned = {"redacted_because": {"sender": "@a:b"}, "m.relations": {"m.replace": edit}}
    account.relay.meddle = lambda target: (200, strange({"unsigned": unsigned})) if "/sync" in target else None
    (record,) = account.succeed(streams=["messages"]).records("messages")
    assert (record["body"], record["edited_at"], record["redacted"]) == (None, None, True)


def test_a_new_room_is_walked_to_its_beginning_whatever_the_sync_says_of_limits(account: Account) -> None:
    """A homeserver may hold that a timeline since the last run is whole: it is not, for who was not there."""
    state = {**account.succeed().state["messages"], "since": "s0"}
    page = (200, {"chunk": []})
    account.relay.meddle = lambda target: (
        (200, strange({})) if "/sync" in target else page if "/messages" in target else None
    )
    account.succeed({"messages": state}, streams=["messages", "reactions", "files"])
    (target,) = account.relay.paths("/messages")
    assert "from=t1" in target
    assert "to=" not in target


def test_a_history_that_is_not_shown_is_said_and_passed(account: Account) -> None:
    account.shorten()
    filled(account, 15)
    account.relay.meddle = lambda target: (403, {"errcode": "M_FORBIDDEN"}) if "/messages" in target else None
    first = account.succeed()
    assert [m["reason"] for m in first.messages if m["type"] == "SKIP_RESULT"] == ["not_visible"]
    assert first.state["messages"]["gaps"] == []


def test_a_history_that_never_ends_ends(account: Account) -> None:
    """Each page is empty, and names another one."""
    account.shorten()
    filled(account, 15)
    pages = iter(range(10**9))
    account.relay.meddle = lambda target: (
        (200, {"chunk": [], "end": f"t{next(pages)}"}) if "/messages" in target else None
    )
    first = account.collect()
    assert first.done["status"] == "failed"
    assert len(account.relay.paths("/messages")) == 1001


def test_a_room_with_too_many_members_is_said_and_not_listed(account: Account, friend: User) -> None:
    room = filled(account)
    friend.join(room)
    first = account.succeed(options={"members_per_room": 1})
    assert [m["reason"] for m in first.messages if m["type"] == "SKIP_RESULT"] == ["too_many_members"]
    assert first.records("members") == []
    assert account.relay.paths("/members") == []


@pytest.mark.parametrize(
    "endpoint",
    ["http://matrix.example.org", "https://", "https://me:secret@example.org", "ftp://127.0.0.1", "http://127.0.0.1:x"],
)
def test_a_token_goes_to_https_or_this_machine_only(account: Account, endpoint: str) -> None:
    """It is refused before the token is asked for."""
    first = account.collect(options={"endpoint": endpoint}, answers=())
    assert hint(first) == "manual_action_required"
    assert [m for m in first.messages if m["type"] == "INTERACTION"] == []


def test_a_redirect_is_not_followed(account: Account) -> None:
    """It could lead the token anywhere."""
    account.relay.meddle = lambda target: (302, {}) if "/whoami" in target else None
    assert account.collect().done["status"] == "failed"
    assert len(account.relay.seen) == 1


def test_the_connector_conforms(account: Account, headwater: Any, tmp_path: Path) -> None:
    """Through the packs that show what it can break: kills in the midst, a resumed run, a narrowed one, no network."""
    filled(account, 4)
    picture = account.user.upload(b"cup", "image/png")
    room = account.user.make_room("Garden")
    sent = account.user.send(room, {"msgtype": "m.image", "body": "cup.png", "url": picture})
    account.user.react(room, sent, "👍")
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps({"answers": [{"kind": "credentials", "data": account.answer}]}))
    packs = [
        word for pack in ("start", "resumed", "kill", "narrowed", "otp", "no-network") for word in ("--pack", pack)
    ]
    words = ["connectors", "check", str(CONNECTOR), "--set", f"endpoint={account.relay.base_url}"]
    result = headwater.type(*words, "--answer-file", str(answers), *packs).result
    verdicts = {row["clause"]: row for row in result["clauses"]}
    assert [row for row in verdicts.values() if row["verdict"] == "fail"] == []
    assert (result["conforms"], result["left_out"]) == (True, {})
    shown = ("CP-410", "CP-447", "CP-515", "CP-516", "CP-405", "CP-312")
    assert {clause: verdicts[clause]["verdict"] for clause in shown} == dict.fromkeys(shown, "pass")
