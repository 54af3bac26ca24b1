"""The files of messages: their bytes, and the gaps that they leave."""

from typing import Any

import pytest
from connectors.matrix.people import Account, deleted

PICTURE = bytes(range(256)) * 64


def sent(account: Account, content: bytes = PICTURE, **more: Any) -> tuple[str, str]:
    """Send a picture, and return room and event."""
    room = account.user.make_room("Kitchen")
    url = account.user.upload(content, "image/png", "cup.png")
    info = {"mimetype": "image/png", "size": len(content)}
    said = {"msgtype": "m.image", "body": "cup.png", "url": url, "info": info, **more}
    return room, account.user.send(room, said)


def gaps(transcript: Any) -> list[tuple[str, bool]]:
    return [(m["reason"], m["retryable"]) for m in transcript.messages if m["type"] == "DETAIL_GAP"]


def test_a_file_comes_with_its_bytes_once(account: Account) -> None:
    """The second run does not fetch it again."""
    room, event = sent(account)
    first = account.succeed()
    (record,) = first.records("files")
    assert (record["room_id"], record["event_id"], record["filename"]) == (room, event, "cup.png")
    assert record["size_bytes"] == record["blob_ref"]["size_bytes"] == len(PICTURE)
    account.succeed(first.state)
    assert account.relay.paths("/media/") == []


def test_a_run_without_files_fetches_none(account: Account) -> None:
    sent(account)
    first = account.succeed(streams=["messages"])
    assert account.relay.paths("/media/") == []
    assert len(account.succeed(first.state).records("files")) == 1


def test_a_redaction_takes_the_file_too(account: Account) -> None:
    room, event = sent(account)
    first = account.succeed()
    account.user.redact(room, event)
    second = account.succeed(first.state)
    assert deleted(second, "files") == [[room, event]]


@pytest.mark.parametrize("declared", [None, 10])
def test_a_file_over_the_limit_is_a_gap_that_lasts(account: Account, declared: int | None) -> None:
    """Whatever its message says of its size: what comes is counted."""
    sent(account, info={"mimetype": "image/png", **({"size": declared} if declared else {})})
    assert gaps(account.succeed(options={"media_bytes": 1000})) == [("too_large", False)]


def test_a_file_of_exactly_the_limit_comes(account: Account) -> None:
    sent(account)
    assert gaps(account.succeed(options={"media_bytes": len(PICTURE)})) == []


@pytest.mark.parametrize(
    "url", ["mxc://localhost/none", "https://example.org/x", "mxc://../../etc", "mxc://../etc", "mxc://a/b/c"]
)
def test_an_address_that_leads_nowhere_is_a_gap(account: Account, url: str) -> None:
    """Nothing but an mxc: address is asked for, and of the homeserver only."""
    sent(account, url=url)
    ((_, retryable),) = gaps(account.succeed())
    assert not retryable
    assert all("etc" not in target for target in account.relay.seen)


def test_a_file_that_the_homeserver_cannot_get_now_is_tried_again_by_name(account: Account) -> None:
    """The gap is a key, and the key is enough to ask again."""
    room, event = sent(account)
    account.relay.meddle = lambda target: (502, {"errcode": "M_UNKNOWN"}) if "/media/" in target else None
    first = account.succeed()
    assert gaps(first) == [("temporarily_unavailable", True)]
    account.relay.meddle = lambda target: None
    key = f'["{room}","{event}"]'
    again = account.succeed(streams=[{"name": "files", "resources": [key, "no key", '["!r:b"]', "[1,2]"]}])
    assert [record["size_bytes"] for record in again.records("files")] == [len(PICTURE)]


def test_a_file_that_the_homeserver_gives_out_at_is_known_to_be_missing(account: Account) -> None:
    """The walk of history ends there in good order; the next run walks the page again, and the file comes."""
    account.shorten()
    room, _ = sent(account)
    for number in range(15):
        account.user.send(room, f"Number {number}")
    account.relay.meddle = lambda target: (429, {"retry_after_ms": 60_001}) if "/media/" in target else None
    first = account.succeed()
    assert gaps(first) == [("temporarily_unavailable", True)]
    account.relay.meddle = lambda target: None
    assert len(account.succeed(first.state).records("files")) == 1
