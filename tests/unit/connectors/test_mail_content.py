"""The mail connector on what messages hold: broken headers, nested parts, attachments and their gaps."""

import base64
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

import headwater.connectors
from headwater.manifest.reading import read
from headwater.manifest.schemas import compile_schema
from headwater.sdk.testing import Transcript, collect

CONNECTOR = Path(headwater.connectors.__path__[0]) / "mail"
PDF = b"%PDF-1.7 a document\n" * 20


def run(folder: Path, *messages: bytes, state: Any = None, streams: Any = (), **options: Any) -> Transcript:
    """Write messages to .eml files, collect them, and hold the result to the manifest and to the protocol."""
    for number, message in enumerate(messages):
        (folder / f"{number}.eml").write_bytes(message)
    transcript = collect(CONNECTOR, options={"path": str(folder), **options}, state=state, streams=streams)
    assert transcript.done["status"] == "succeeded", transcript.stderr
    for name, stream in read((CONNECTOR / "manifest.json").read_bytes()).streams.items():
        validator = compile_schema(stream.schema or {})
        for record in transcript.records(name):
            validator.validate(record)
    for report in (m for m in transcript.messages if m["type"] == "DETAIL_COVERAGE"):
        assert set(report["required_keys"]) == {*report["hydrated_keys"], *report.get("gap_keys", ())}
        assert len(report.get("gap_keys", [])) == len(gaps(transcript))
    return transcript


def one(folder: Path, message: bytes, **options: Any) -> dict[str, Any]:
    """Collect one message and return its record."""
    (record,) = run(folder, message, **options).records("messages")
    return record


def gaps(transcript: Transcript) -> list[dict[str, Any]]:
    """Return the gaps that were reported."""
    return [m for m in transcript.messages if m["type"] == "DETAIL_GAP"]


def with_attachment(name: str = "report.pdf", content: bytes = PDF) -> bytes:
    """Make a message with one attachment."""
    message = EmailMessage()
    message["Subject"] = "attached"
    message["Date"] = "Tue, 01 Oct 2024 10:00:00 +0000"
    message.set_content("see the report\n")
    message.add_attachment(content, maintype="application", subtype="pdf", filename=name)
    return message.as_bytes()


def multipart(*parts: bytes, closed: bool = True) -> bytes:
    """Make a multipart message from raw parts."""
    body = b"".join(b"--edge\n" + part + b"\n" for part in parts)
    return b'Subject: s\nContent-Type: multipart/mixed; boundary="edge"\n\n' + body + (b"--edge--\n" if closed else b"")


def test_addresses_and_encoded_words(tmp_path: Path) -> None:
    """Names and subjects are decoded, and a comma inside a name divides nothing."""
    record = one(
        tmp_path,
        b'From: =?utf-8?Q?M=C3=BCller=2C_Zo=C3=AB?= <zoe@example.org>\nTo: a@b.c,\n  "X, Y" <x@y.z>\n'
        b"Cc: undisclosed-recipients:;\n"
        b"Subject: =?utf-8?B?R3LDvA==?=\n =?utf-8?B?w59l?= from =?gb2312?B?xOO6ww==?=\n\nhi\n",
    )
    assert record["from"] == [{"name": "Müller, Zoë", "address": "zoe@example.org"}]
    assert record["to"] == [{"name": "", "address": "a@b.c"}, {"name": "X, Y", "address": "x@y.z"}]
    assert (record["subject"], record["lossy"]) == ("Grüße from 你好", False)


def test_a_character_split_over_two_encoded_words(tmp_path: Path) -> None:
    """Neighbouring words of one charset are joined before they are decoded."""
    assert one(tmp_path, b"Subject: =?utf-8?B?w?= =?utf-8?Q?=C3?= =?utf-8?Q?=BC?=\n\nhi\n")["subject"].endswith("ü")


@pytest.mark.parametrize(
    ("raw", "subject", "lossy"),
    [
        ("Grüße".encode(), "Grüße", False),
        ("Grüße".encode("latin-1"), "Grüße", True),
        (b"a\0b", "a\ufffdb", True),
        (b"=?x-unknown?Q?=C3=BC?=", "ü", True),
        (b"=?utf-8?B?abcde?=", "=?utf-8?B?abcde?=", True),
        (b"=?utf-7?Q?+2AA-?=", "\ufffd", True),
        (b"=?punycode?Q?abc?=", "abc", True),
        (b"=?base64?Q?abc?=", "abc", True),
    ],
)
def test_subjects_that_are_broken(tmp_path: Path, raw: bytes, subject: str, lossy: bool) -> None:
    """Eight-bit, wrong and unknown charsets give text that JSON can hold, and `lossy` says what was guessed."""
    record = one(tmp_path, b"Subject: " + raw + b"\n\nhi\n")
    assert (record["subject"], record["lossy"]) == (subject, lossy)


@pytest.mark.parametrize(
    ("head", "body", "text", "lossy"),
    [
        (b"Content-Type: text/plain; charset=utf-8", b"na\xc3\xafve", "naïve", False),
        (b"Content-Type: text/plain; charset=utf-8", b"na\xefve", "na\ufffdve", True),
        (b"Content-Type: text/plain; charset=us-ascii", b"na\xefve", "naïve", True),
        (b"Content-Type: text/plain; charset=iso-8859-1", b"\x93so\x94", "“so”", False),
        (b"Content-Type: text/plain; charset=nonsense", b"na\xc3\xafve", "naïve", True),
        (b"Content-Type: text/plain\nContent-Transfer-Encoding: base64", b"aGVsbG8\n!!", "hel", True),
        (b"Content-Type: text/plain\nContent-Transfer-Encoding: x-uuencode", b"hello", "hello", True),
        (b"Content-Type: text/plain\nContent-Transfer-Encoding: quoted-printable", b"a=C3=BC=\nb", "aüb", False),
        (b"Content-Type: ;;;=", b"hello", "hello", False),
        (b"Content-Type: text/plain; charset*=x'y'%ff; charset*1=z", b"hello", "hello", True),
    ],
)
def test_bodies_that_are_broken(tmp_path: Path, head: bytes, body: bytes, text: str, lossy: bool) -> None:
    """Whatever encoding a body claims, its text is as near to it as can be."""
    record = one(tmp_path, b"Subject: s\n" + head + b"\n\n" + body)
    assert (record["text"], record["lossy"]) == (text, lossy)


def test_html_is_stripped(tmp_path: Path) -> None:
    """A message in HTML alone has its text without markup, scripts and styles."""
    record = one(
        tmp_path,
        b"Subject: s\nContent-Type: text/html\n\n<head><title>t</title></head><style>p{}</style><!-- <p>no -->"
        b"<p>Fish &amp; <b>chips</b></p><br>2 &lt; 3<script>if (a < b) x()</script>",
    )
    assert (record["text"], record["text_source"]) == ("Fish & chips\n\n2 < 3", "html")


@pytest.mark.parametrize("piece", [b"<!--", b"<script", b"<", b"</", b"&", b"<a "])
def test_hostile_html_takes_no_time(tmp_path: Path, piece: bytes) -> None:
    """A megabyte of markup that never closes is read in one pass."""
    run(tmp_path, b"Subject: s\nContent-Type: text/html\n\n" + piece * (1_000_000 // len(piece)))


def test_plain_text_is_preferred(tmp_path: Path) -> None:
    """Of two alternatives the plain one is the text."""
    message = EmailMessage()
    message["Subject"] = "s"
    message.set_content("plain\n")
    message.add_alternative("<p>html</p>", subtype="html")
    record = one(tmp_path, message.as_bytes())
    assert (record["text"], record["text_source"], record["attachment_count"]) == ("plain", "plain", 0)


def test_an_attachment_is_handed_over(tmp_path: Path) -> None:
    """An attachment's record has its name, its type and its bytes, and its key is accounted for."""
    transcript = run(tmp_path, with_attachment("Prüfung.pdf"))
    (record,) = transcript.records("attachments")
    (message,) = transcript.records("messages")
    assert (record["filename"], record["mime_type"], record["size_bytes"]) == ("Prüfung.pdf", "application/pdf", 400)
    assert (record["message"], record["blob_ref"]["size_bytes"]) == (message["id"], len(PDF))
    (report,) = [m for m in transcript.messages if m["type"] == "DETAIL_COVERAGE"]
    assert report["hydrated_keys"] == [record["id"]]


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (b"Content-Transfer-Encoding: base64\n\nQUJDR", "broken_base64"),
        (b"Content-Transfer-Encoding: base64\n\nQU<<JD", "broken_base64"),
        (b"Content-Transfer-Encoding: x-unheard\n\nQUJD", "unknown_transfer_encoding"),
    ],
)
def test_an_attachment_that_cannot_be_decoded_is_a_gap(tmp_path: Path, part: bytes, reason: str) -> None:
    """A broken attachment leaves a gap that says where it lies; the others are fetched."""
    whole = b"Content-Disposition: attachment; filename=b.bin\n\nfine"
    transcript = run(tmp_path, multipart(b"Content-Disposition: attachment; filename=a.bin\n" + part, whole))
    (gap,) = gaps(transcript)
    assert (gap["reason"], gap["detail_locator"]["file"], gap["detail_locator"]["part"]) == (reason, "0.eml", "1")
    assert [record["filename"] for record in transcript.records("attachments")] == ["b.bin"]


def test_a_truncated_attachment_is_a_gap(tmp_path: Path) -> None:
    """Where the file ends inside an attachment, its bytes are not taken for whole."""
    message = with_attachment()
    (gap,) = gaps(run(tmp_path, message[: message.index(b"JVBERi") + 77]))
    assert gap["reason"] == "truncated"


def test_a_missing_last_delimiter_alone_is_no_gap(tmp_path: Path) -> None:
    """Base64 that ends in its own padding is whole, even if the message was not closed."""
    part = b"Content-Type: image/png\nContent-Transfer-Encoding: base64\n\n" + base64.b64encode(b"1234")
    transcript = run(tmp_path, multipart(part, closed=False))
    assert transcript.records("attachments")[0]["size_bytes"] == 4
    assert transcript.records("messages")[0]["lossy"] is True


@pytest.mark.parametrize(("levels", "found"), [(100, True), (5_000, False)])
def test_deeply_nested_parts(tmp_path: Path, levels: int, found: bool) -> None:
    """A hundred levels are read to the innermost; thousands are read as far as the bound and end no run."""
    message = b"Subject: deep\n"
    for level in range(levels):
        message += b"Content-Type: multipart/mixed; boundary=e%d\n\n--e%d\n" % (level, level)
    record = one(tmp_path, message + b"Content-Type: text/plain\n\ninnermost\n")
    assert (record["text"] == "innermost", record["lossy"]) == (found, True)


def test_nested_comments_in_an_address(tmp_path: Path) -> None:
    """An address that would exhaust a recursive parser is kept as it is written."""
    record = one(tmp_path, b"From: " + b"(" * 10_000 + b"\nSubject: s\n\nhi\n")
    assert record["from"][0]["name"].startswith("((((")


def test_a_multipart_without_boundary_is_text(tmp_path: Path) -> None:
    """Parts that cannot be told apart are read as the text that they are."""
    record = one(tmp_path, b"Subject: s\nContent-Type: multipart/mixed\n\nhello\n")
    assert (record["text"], record["lossy"]) == ("hello", True)


def test_a_forwarded_message_is_an_attachment(tmp_path: Path) -> None:
    """A message within a message is kept whole."""
    inner = b"Content-Type: message/rfc822\n\nSubject: inner\n\nhello"
    (record,) = run(tmp_path, multipart(b"\nouter", inner)).records("attachments")
    assert (record["mime_type"], record["size_bytes"]) == ("message/rfc822", len(b"Subject: inner\n\nhello"))


def test_a_run_may_stop_at_its_bound_and_the_next_goes_on(tmp_path: Path) -> None:
    """Runs of at most one attachment collect each of them in the end, and then there is nothing left."""
    messages = [with_attachment(content=b"%d" % number) for number in range(3)]
    (tmp_path / "box").write_bytes(b"".join(b"From a@b Tue Oct  1 10:00:00 2024\n" + m + b"\n" for m in messages))
    seen, state = set(), None
    for _ in range(3):
        transcript = run(tmp_path, state=state, attachments_per_run=1)
        seen |= {record["blob_ref"]["sha256"] for record in transcript.records("attachments")}
        state = transcript.state
    assert len(seen) == 3
    assert run(tmp_path, state=state).records("messages") == []


def test_separate_files_go_on_after_the_bound(tmp_path: Path) -> None:
    """The bound holds for messages in files of their own, too."""
    messages = [with_attachment(content=b"%d" % number) for number in range(4)]
    seen, transcript = set(), run(tmp_path, *messages, attachments_per_run=1)
    for _ in range(6):
        seen |= {record["blob_ref"]["sha256"] for record in transcript.records("attachments")}
        transcript = run(tmp_path, state=transcript.state, attachments_per_run=1)
    assert len(seen) == 4
    assert transcript.records("messages") == []


def test_messages_without_their_attachments(tmp_path: Path) -> None:
    """A run that does not want attachments counts them; a later one that does reads everything again."""
    first = run(tmp_path, with_attachment(), streams=["messages"])
    assert first.records("messages")[0]["attachment_count"] == 1
    assert {m["type"] for m in first.messages} == {"RECORD", "STATE", "PROGRESS", "DONE"}
    assert len(run(tmp_path, state=first.state).records("attachments")) == 1


def test_attachments_without_their_messages(tmp_path: Path) -> None:
    """A run over attachments alone emits them and claims no cursor."""
    transcript = run(tmp_path, with_attachment(), streams=["attachments"])
    assert len(transcript.records("attachments")) == 1
    assert transcript.state == {}


def test_a_message_outside_the_scope_takes_its_attachments_along(tmp_path: Path) -> None:
    """Details are not owed for messages that the run does not collect."""
    window = {"name": "messages", "time_range": {"since": "2025-01-01T00:00:00Z"}}
    transcript = run(tmp_path, with_attachment(), streams=[window, "attachments"])
    assert transcript.records("messages") == transcript.records("attachments") == []
