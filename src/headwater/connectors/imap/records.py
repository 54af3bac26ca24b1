"""A message's bytes and what the server says of it, made into records."""

from typing import Any, Final

from headwater.connectors.imap.responses import Fetched
from headwater.connectors.mail import mailparse

HEADERS: Final = 200
HEADER_CHARACTERS: Final = 2_000
_SYSTEM_FLAGS = {"\\answered", "\\deleted", "\\draft", "\\flagged", "\\seen"}
_OF_MAIL: Final = (
    "message_id",
    "in_reply_to",
    "from",
    "to",
    "cc",
    "subject",
    "text",
    "text_source",
    "text_truncated",
)


def message_record(mailbox: str, validity: int, row: Fetched, mail: mailparse.Mail) -> dict[str, Any]:
    """Make a message's record. Of one that is too large only the header came: it has no text and no attachments."""
    reading = mailparse.Reading()
    headers = [
        {"name": reading.words(name)[:HEADER_CHARACTERS], "value": reading.words(str(value))[:HEADER_CHARACTERS]}
        for name, value in mail.headers.items()[:HEADERS]
    ]
    flags = row.flags or ()
    system = {flag.lower() for flag in flags} & _SYSTEM_FLAGS
    return {
        "mailbox": mailbox,
        "uidvalidity": validity,
        "uid": row.uid,
        "source_created_at": mail.date or row.received_at or "1970-01-01T00:00:00Z",
        "date_source": "date_header" if mail.date else "internal_date" if row.received_at else "unknown",
        "received_at": row.received_at,
        **{name: mail.fields[name] for name in _OF_MAIL},
        "headers": headers,
        "flags": sorted(flag.removeprefix("\\") for flag in system),
        "keywords": sorted({mailparse.Reading().fit(flag) for flag in flags if not flag.startswith("\\")}),
        "size_bytes": row.size_bytes or 0,
        "attachment_count": len(mail.attachments),
        "header_only": False,
        "lossy": mail.fields["lossy"] or reading.lossy,
    }


def without_body(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record of a message of which the header alone was read."""
    return {**record, "text": None, "text_source": None, "attachment_count": 0, "header_only": True}


def attachment_record(
    message: dict[str, Any], attachment: mailparse.Attachment, blob: dict[str, Any]
) -> dict[str, Any]:
    """Make an attachment's record."""
    return {
        "mailbox": message["mailbox"],
        "uidvalidity": message["uidvalidity"],
        "uid": message["uid"],
        "part": attachment.part.number,
        "source_created_at": message["source_created_at"],
        "filename": attachment.filename,
        "mime_type": attachment.mime_type,
        "size_bytes": blob["size_bytes"],
        "content_id": attachment.content_id,
        "inline": attachment.inline,
        "blob_ref": blob,
    }
