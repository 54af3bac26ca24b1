"""What is made of a message: read whole from a real Dovecot, however broken it is."""

import base64
from typing import Any

from connectors.imap.people import Person, attached, message, subjects

NESTED = b"".join(
    b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (depth, depth) for depth in range(500)
)
HOSTILE = {
    "no header": b"\r\n\r\njust text\r\n",
    "bad charset": b"Subject: =?x-unknown?q?=FF?=\r\nContent-Type: text/plain; charset=klingon\r\n\r\n\xff\xfe\r\n",
    "a codec that is none": b"Subject: a\r\nContent-Type: text/plain; charset=hex\r\n\r\nzz\r\n",
    "raw bytes in headers": b"Subject: caf\xe9 \xff\r\nFrom: \xe9\xe9\xe9\r\n\r\nx\r\n",
    "deep nesting": b"Subject: deep\r\n" + NESTED + b"\r\nbottom\r\n",
    "no last delimiter": b"Content-Type: multipart/mixed; boundary=q\r\n\r\n--q\r\n\r\nopen",
    "broken base64": b"Content-Transfer-Encoding: base64\r\n\r\n!!!!====\r\n",
    "a date of no calendar": b"Date: Fri, 99 Foo 99999 99:99:99 +9999\r\nSubject: when\r\n\r\nx\r\n",
    "a very long header": b"Subject: " + b"x" * 300_000 + b"\r\n\r\nx\r\n",
    "many headers": b"".join(b"X-%d: y\r\n" % n for n in range(5_000)) + b"\r\nx\r\n",
    "an IMAP answer": b"Subject: a) UID 7 FLAGS (\\Seen) {5}\r\n\r\n* 1 FETCH (UID 9 BODY[] {3}\r\nabc)\r\n",
    "surrogates": b"Content-Type: text/plain; charset=utf-7\r\n\r\n+2AA-\r\n",
}


def test_a_message_is_read_whole(person: Person) -> None:
    """Envelope, flags, text, headers and times; the text is found again by a search of its words."""
    raw = (
        "From: =?utf-8?q?J=C3=BCrgen?= <j@example.org>\r\nTo: a@example.org, Bee <b@example.org>\r\n"
        "Subject: =?iso-8859-1?q?Gr=FC=DFe?=\r\nMessage-ID: <1@example.org>\r\nIn-Reply-To: <0@example.org>\r\n"
        "Date: Tue, 1 Oct 2024 12:00:00 +0200\r\nList-Id: <list.example.org>\r\n\r\nHello there\r\n"
    )
    person.put(raw.encode(), flags="(\\Seen $Forwarded)")
    (record,) = person.succeed().records("messages")
    received = record.pop("received_at")
    assert received.endswith("Z")
    assert record.pop("uidvalidity") > 0
    assert record.pop("headers")[-1] == {"name": "List-Id", "value": "<list.example.org>"}
    assert record == {
        "mailbox": "INBOX",
        "uid": 1,
        "source_created_at": "2024-10-01T10:00:00Z",
        "date_source": "date_header",
        "message_id": "1@example.org",
        "in_reply_to": "0@example.org",
        "from": [{"name": "Jürgen", "address": "j@example.org"}],
        "to": [{"name": "", "address": "a@example.org"}, {"name": "Bee", "address": "b@example.org"}],
        "cc": [],
        "subject": "Grüße",
        "text": "Hello there",
        "text_source": "plain",
        "text_truncated": False,
        "flags": ["seen"],
        "keywords": ["$Forwarded"],
        "size_bytes": len(raw),
        "attachment_count": 0,
        "header_only": False,
        "lossy": False,
    }


def test_broken_messages_are_records_and_cost_nothing_else(person: Person) -> None:
    """Each comes, and so do the ones around them."""
    person.put(message("Before"), *(raw for one in HOSTILE.values() for raw in (one, message("Between"))))
    transcript = person.succeed()
    assert [record["uid"] for record in transcript.records("messages")] == list(range(1, 2 * len(HOSTILE) + 2))
    assert subjects(transcript)[::2] == ["Before", *["Between"] * len(HOSTILE)]


def test_what_is_broken_is_flagged(person: Person) -> None:
    """`lossy` says so; the time is the server's where the message has none."""
    person.put(HOSTILE["bad charset"], HOSTILE["a date of no calendar"])
    first, second = person.succeed().records("messages")
    assert first["lossy"]
    assert second["date_source"] == "internal_date"
    assert second["source_created_at"] == second["received_at"]


def test_attachments_come_with_their_bytes_and_broken_ones_are_gaps(person: Person) -> None:
    """What decodes is a blob; what does not is a gap that says where it lies."""
    person.put(attached("Good", base64.b64encode(b"\0" * 100)), attached("Bad", b"!!!"))
    transcript = person.succeed()
    (record,) = transcript.records("attachments")
    assert (record["filename"], record["mime_type"], record["size_bytes"]) == ("a.png", "image/png", 100)
    (gap,) = [m for m in transcript.messages if m["type"] == "DETAIL_GAP"]
    assert gap["detail_locator"]["part"] == "2"
    (coverage,) = [m for m in transcript.messages if m["type"] == "DETAIL_COVERAGE"]
    assert len(coverage["required_keys"]) == 2
    assert len(coverage["hydrated_keys"]) == len(coverage["gap_keys"]) == 1


def test_a_large_attachment_is_read_whole(person: Person) -> None:
    """30 MB in one message, between two small ones."""
    content = base64.encodebytes(bytes(range(256)) * 90_000).replace(b"\n", b"\r\n")
    person.put(message("Before"), attached("Large", content), message("After"))
    transcript = person.succeed()
    assert subjects(transcript) == ["Before", "Large", "After"]
    assert [record["size_bytes"] for record in transcript.records("attachments")] == [256 * 90_000]


def test_a_message_that_is_too_large_is_its_header(person: Person) -> None:
    """It is flagged, and it is not read again."""
    person.put(message("Too large", "x" * 76 + "\r\n" + ("y" * 76 + "\r\n") * 870_000), message("After"))
    transcript = person.succeed()
    large, after = transcript.records("messages")
    assert (large["subject"], large["header_only"], large["text"]) == ("Too large", True, None)
    assert large["size_bytes"] > 64 * 1024 * 1024
    assert (after["subject"], after["header_only"]) == ("After", False)
    assert person.succeed(transcript.state).done["records_emitted"] == 0


def names(person: Person, *mailboxes: str) -> dict[str, dict[str, Any]]:
    """Make mailboxes, and return those that are collected by name."""
    with person.server.client(person.name) as client:
        for name in mailboxes:
            assert client.create(name)[0] == "OK"
    return {record["name"]: record for record in person.succeed().records("mailboxes")}


def test_names_of_mailboxes_are_read_from_modified_utf7(person: Person) -> None:
    """Letters beyond ASCII, an ampersand, spaces, quotes, and folders in folders."""
    found = names(person, '"Entw&APw-rfe"', '"A &- B"', '"&ZeVnLIqe-"', '"&ZeVnLIqe-/&U,BTFw-"', '"say \\"hi\\""')
    assert found.keys() == {"INBOX", "Entwürfe", "A & B", "日本語", "日本語/台北", 'say "hi"'}
    assert found["日本語/台北"]["delimiter"] == "/"


def test_mail_in_such_a_mailbox_is_read(person: Person) -> None:
    """The name goes back to the server as it came."""
    person.put(message("There"), mailbox='"Entw&APw-rfe \\"1\\""')
    (record,) = person.succeed().records("messages")
    assert record["mailbox"] == 'Entwürfe "1"'


def test_a_mailbox_says_what_it_is_for(person: Person) -> None:
    """Special use and numbers."""
    person.put(message("One"), message("Two"), mailbox="Sent", flags="(\\Seen)")
    found = {record["name"]: record for record in person.succeed().records("mailboxes")}
    assert found["Sent"]["special_use"] == "sent"
    assert (found["Sent"]["messages"], found["Sent"]["unseen"], found["Sent"]["uidnext"]) == (2, 0, 3)
    assert found["Sent"]["selectable"]


def test_only_what_is_asked_for_is_read(person: Person) -> None:
    """One message by its key, one attachment by its own, and nothing else is fetched."""
    person.put(*(attached(f"Number {n}", b"QUJD" * 20_000) for n in range(5)))
    key = [m["key"] for m in person.succeed().messages if m["type"] == "RECORD" and m["stream"] == "attachments"][2]
    named = '["' + '","'.join(key) + '"]'
    one = person.succeed(streams=[{"name": "attachments", "resources": [named]}])
    assert [record["uid"] for record in one.records("attachments")] == [3]
    assert person.server.sent_bytes(person.name, 3)[-1] < 2 * 80_000
    message_key = '["' + '","'.join(key[:3]) + '"]'
    one = person.succeed(streams=[{"name": "messages", "resources": [message_key]}])
    assert [record["uid"] for record in one.records("messages")] == [3]
