"""The mail connector on mbox files: what it splits, what it reads again, and what it survives."""

import mailbox
import os
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

import headwater.connectors
from headwater.manifest.reading import read
from headwater.manifest.schemas import compile_schema
from headwater.sdk.testing import Transcript, collect

CONNECTOR = Path(headwater.connectors.__path__[0]) / "mail"
FROM = b"From a@example.org Tue Oct  1 10:00:00 2024\n"


def run(path: Path, state: dict[str, Any] | None = None, **options: Any) -> Transcript:
    """Run the connector, and hold what it emits to its manifest and its coverage to the protocol."""
    transcript = collect(CONNECTOR, options={"path": str(path), **options}, state=state)
    assert transcript.done["status"] == "succeeded", transcript.stderr
    for name, stream in read((CONNECTOR / "manifest.json").read_bytes()).streams.items():
        validator = compile_schema(stream.schema or {})
        for message in transcript.messages:
            if message["type"] == "RECORD" and message["stream"] == name and message.get("op") != "delete":
                validator.validate(message["data"])
    for report in (m for m in transcript.messages if m["type"] == "DETAIL_COVERAGE"):
        assert set(report["required_keys"]) == {*report["hydrated_keys"], *report.get("gap_keys", ())}
    return transcript


def letter(subject: str, body: str = "hello\n") -> EmailMessage:
    """Make a plain message."""
    message = EmailMessage()
    message["From"] = "Ann <ann@example.org>"
    message["Date"] = "Tue, 01 Oct 2024 10:00:00 +0200"
    message["Subject"] = subject
    message.set_content(body)
    return message


def add(path: Path, *messages: EmailMessage) -> Path:
    """Append messages to an mbox, as a mail program does."""
    box = mailbox.mbox(path)
    for message in messages:
        box.add(message)
    box.close()
    return path


def subjects(transcript: Transcript) -> list[str]:
    """Return the subjects of the messages, in order."""
    return [record["subject"] for record in transcript.records("messages")]


def skips(transcript: Transcript) -> dict[str, str]:
    """Return the last message of each reason to skip."""
    return {m["reason"]: m["message"] for m in transcript.messages if m["type"] == "SKIP_RESULT"}


def test_reads_every_message(tmp_path: Path) -> None:
    """An mbox is one folder, and each of its messages a record."""
    transcript = run(add(tmp_path / "inbox", letter("one"), letter("two")))
    assert subjects(transcript) == ["one", "two"]
    assert transcript.records("folders") == [{"path": "inbox", "name": "inbox", "kind": "mbox", "message_count": 2}]


def test_the_date_is_utc(tmp_path: Path) -> None:
    """The Date header becomes RFC 3339 text in UTC."""
    record = run(add(tmp_path / "inbox", letter("one"))).records("messages")[0]
    assert (record["source_created_at"], record["date_source"]) == ("2024-10-01T08:00:00Z", "date_header")


def test_an_unchanged_mbox_is_not_read_again(tmp_path: Path) -> None:
    """A second run over the same file emits no message."""
    path = add(tmp_path / "inbox", letter("one"))
    assert run(path, run(path).state).records("messages") == []


def test_an_append_is_read_from_the_last_message(tmp_path: Path) -> None:
    """After an append only the last known message and the new ones are read."""
    path = add(tmp_path / "inbox", letter("one"), letter("two"))
    state = run(path).state
    assert subjects(run(add(path, letter("three")), state)) == ["two", "three"]


def test_a_message_that_was_being_delivered_is_read_whole(tmp_path: Path) -> None:
    """A message whose end came after the first run is emitted again with its whole text."""
    path = tmp_path / "inbox"
    path.write_bytes(FROM + b"Subject: one\n\nhalf")
    state = run(path).state
    with path.open("ab") as file:
        file.write(b" and half\n")
    assert [record["text"] for record in run(path, state).records("messages")] == ["half and half"]


def test_a_rewrite_is_read_from_the_start(tmp_path: Path) -> None:
    """A longer file whose beginning differs is no append."""
    path = add(tmp_path / "inbox", letter("one"), letter("two"))
    state = run(path).state
    path.unlink()
    add(path, letter("two"), letter("three"), letter("four"))
    assert subjects(run(path, state)) == ["two", "three", "four"]


def test_a_shorter_file_is_read_from_the_start(tmp_path: Path) -> None:
    """A file that was compacted is read again."""
    path = add(tmp_path / "inbox", letter("one"), letter("two", "long\n" * 99))
    state = run(path).state
    path.unlink()
    assert subjects(run(add(path, letter("two")), state)) == ["two"]


def test_flags_that_change_in_place_are_the_same_message(tmp_path: Path) -> None:
    """A status rewritten at the same length is seen, and the record keeps its id."""
    path = tmp_path / "inbox"
    path.write_bytes(FROM + b"X-Mozilla-Status: 0000\nSubject: one\n\nhello\n\n" + FROM + b"Subject: two\n\nhello\n")
    first = run(path)
    path.write_bytes(path.read_bytes().replace(b"Status: 0000", b"Status: 0005"))
    second = run(path, first.state)
    before, after = first.records("messages")[0], second.records("messages")[0]
    assert (before["id"], before["flags"]) == (after["id"], [])
    assert after["flags"] == ["flagged", "seen"]


def test_status_headers_and_labels_are_read(tmp_path: Path) -> None:
    """The status of mutt and the labels of an exported mailbox are kept."""
    path = tmp_path / "inbox"
    path.write_bytes(FROM + b"Status: RO\nX-Status: AF\nX-Gmail-Labels: Inbox,=?UTF-8?Q?B=C3=BCro?=\n\nhello\n")
    record = run(path).records("messages")[0]
    assert record["flags"] == ["answered", "flagged", "seen"]
    assert record["labels"] == ["Büro", "Inbox"]


def test_other_options_begin_anew(tmp_path: Path) -> None:
    """A cursor made with another text bound does not hide what it left out."""
    path = add(tmp_path / "inbox", letter("one", "hello there\n"))
    first = run(path, text_characters=5)
    second = run(path, first.state, text_characters=50)
    assert [first.records("messages")[0][name] for name in ("text", "text_truncated")] == ["hello", True]
    assert second.records("messages")[0]["text"] == "hello there"


def test_saves_on_the_way(tmp_path: Path) -> None:
    """About every thousand messages there is a cursor, and a run goes on from it."""
    path = tmp_path / "inbox"
    path.write_bytes(b"".join(FROM + b"Subject: %d\n\nhello\n\n" % n for n in range(2_500)))
    transcript = run(path)
    saved = [m["cursor"] for m in transcript.messages if m["type"] == "STATE" and m["stream"] == "messages"]
    assert len(saved) == 3
    assert subjects(run(path, {"messages": saved[0]}))[0] == "1000"


def test_from_in_a_body_is_no_boundary(tmp_path: Path) -> None:
    """A quoted From_ line is unquoted, and a sentence that begins with From splits nothing."""
    path = tmp_path / "inbox"
    path.write_bytes(FROM + b"Subject: one\n\n>From you\n>>From me\n\nFrom now on: nothing.\nFrom here\n")
    (record,) = run(path).records("messages")
    assert record["text"] == "From you\n>From me\n\nFrom now on: nothing.\nFrom here"


def test_a_boundary_needs_no_blank_line(tmp_path: Path) -> None:
    """A dated From_ line above a header begins a message even right after text."""
    path = tmp_path / "inbox"
    path.write_bytes(FROM + b"Subject: one\n\nhello\n" + FROM + b"Subject: two\n\nhello\n")
    assert subjects(run(path)) == ["one", "two"]


def test_a_bare_from_line_begins_a_message(tmp_path: Path) -> None:
    """Newer Thunderbird writes From_ lines without sender and date."""
    path = tmp_path / "inbox"
    path.write_bytes(b"From \nSubject: one\n\nhello\n\nFrom - \nSubject: two\n\nhello\n")
    assert subjects(run(path)) == ["one", "two"]


def test_crlf_makes_no_other_message(tmp_path: Path) -> None:
    """A message has the same id with either kind of line ending."""
    path, lines = tmp_path / "inbox", FROM + b"Subject: one\n\nhello\n\n" + FROM + b"Subject: two\n\nhello\n"
    path.write_bytes(lines)
    unix = run(path).records("messages")
    path.write_bytes(lines.replace(b"\n", b"\r\n"))
    assert [record["id"] for record in run(path).records("messages")] == [record["id"] for record in unix]


def test_boundaries_at_the_edge_of_a_chunk(tmp_path: Path) -> None:
    """No message is lost or made where the file is cut into chunks."""
    path, chunk = tmp_path / "inbox", 1 << 20
    filling = chunk - 2_048 - len(FROM) - len(b"Subject: n\n\n\n\n")
    for shift in (-3, 0, 3, 2_040, 2_048, 2_053):
        body = b"x" * 70 + b"\n"
        text = (body * (chunk // 71 + 1))[: filling + shift]
        path.write_bytes(FROM + b"Subject: 0\n\n" + text + b"\n\n" + FROM + b"Subject: 1\n\nhello\n")
        assert subjects(run(path, text_characters=10)) == ["0", "1"], shift


def test_a_message_without_date_takes_that_of_its_from_line(tmp_path: Path) -> None:
    """The From_ line stands in for a Date that is missing or absurd, and the record says so."""
    path = tmp_path / "inbox"
    path.write_bytes(FROM + b"Subject: one\nDate: yesterday\n\nhello\n")
    record = run(path).records("messages")[0]
    assert (record["source_created_at"], record["date_source"]) == ("2024-10-01T10:00:00Z", "from_line")


def test_a_message_without_any_date_takes_that_of_the_file(tmp_path: Path) -> None:
    """The file's time is the last resort, and the record says so."""
    path = tmp_path / "inbox"
    path.write_bytes(b"From \nSubject: one\n\nhello\n")
    os.utime(path, (0, 86_400))
    record = run(path).records("messages")[0]
    assert (record["source_created_at"], record["date_source"]) == ("1970-01-02T00:00:00Z", "file_time")


def test_a_message_id_used_twice_is_two_messages(tmp_path: Path) -> None:
    """A record's identity is its content, not what a mail program wrote for one."""
    path = tmp_path / "inbox"
    path.write_bytes(b"".join(FROM + b"Message-ID: <1@x>\nSubject: %d\n\nhello\n\n" % n for n in range(2)))
    records = run(path).records("messages")
    assert [record["message_id"] for record in records] == ["1@x", "1@x"]
    assert len({record["id"] for record in records}) == 2


def test_a_message_beyond_the_bound_is_skipped(tmp_path: Path) -> None:
    """A huge message is named and passed over; the next one is read."""
    path = tmp_path / "inbox"
    with path.open("wb") as file:
        file.write(FROM + b"Subject: huge\n\n")
        file.seek(65 * 1024 * 1024)
        file.write(b"\n\n" + FROM + b"Subject: small\n\nhello\n")
    transcript = run(path)
    assert subjects(transcript) == ["small"]
    assert "inbox, at byte 0" in skips(transcript)["too_large"]


def test_an_empty_mbox_has_no_messages(tmp_path: Path) -> None:
    """A file of no bytes that was asked for is an empty folder."""
    path = tmp_path / "inbox"
    path.touch()
    assert run(path).records("folders")[0]["message_count"] == 0


def test_the_message_as_it_came_is_kept_on_request(tmp_path: Path) -> None:
    """With `keep_raw` the record refers to the message's own bytes."""
    path = tmp_path / "inbox"
    path.write_bytes(FROM + b"Subject: one\n\n>From you\n\n")
    record = run(path, keep_raw=True).records("messages")[0]
    assert record["blob_ref"]["size_bytes"] == len(b"Subject: one\n\nFrom you\n")


@pytest.mark.parametrize("content", [b"From here on\nnothing is mail\n", b"\0\1\2", b"Dear diary,\n"])
def test_a_file_that_is_no_mail_fails_the_run(tmp_path: Path, content: bytes) -> None:
    """A path without mail ends the run with a sentence and no cursor."""
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    transcript = collect(CONNECTOR, options={"path": str(path)})
    assert transcript.done["error"]["code"] == "no_mail"
    assert transcript.state == {}
