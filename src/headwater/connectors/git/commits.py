"""A commit object's bytes, read into a record: nothing in them may be trusted to be text, or a time."""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

MESSAGE_BYTES: Final = 1024 * 1024
LINE_BYTES: Final = 4 * 1024
_LAST_SECOND: Final = 253_402_300_799
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_WHEN = re.compile(rb"(-?[0-9]{1,20})(?: ([+-])([0-9]{2})([0-9]{2}))?")


class Text:
    """Decodes one commit's text by the encoding that it names, and remembers whether anything was lost."""

    def __init__(self, encoding: bytes) -> None:
        self._encoding = encoding.decode("ascii", "replace") or "utf-8"
        self.lossy = False

    def decode(self, raw: bytes, limit_bytes: int) -> str:
        """Return bytes as text that JSON and every database can hold."""
        kept = raw[:limit_bytes]
        try:
            text = kept.decode(self._encoding)
            text.encode("utf-8")
        except (LookupError, ValueError):
            text = kept.decode("utf-8", "replace")
            self.lossy = True
        self.lossy |= len(raw) > limit_bytes or "\0" in text
        return text.replace("\0", "\ufffd")


def record(sha: str, raw: bytes) -> dict[str, Any]:
    """Read a commit object."""
    head, _, body = raw.partition(b"\n\n")
    headers = _headers(head)
    text = Text(headers.get(b"encoding", [b""])[0])
    author, _ = _person(headers.get(b"author", [b""])[0], text)
    committer, created = _person(headers.get(b"committer", [b""])[0], text)
    message = text.decode(body, MESSAGE_BYTES)
    return {
        "sha": sha,
        "tree": headers[b"tree"][0].decode("ascii", "replace"),
        "parents": [parent.decode("ascii", "replace") for parent in headers.get(b"parent", ())],
        "author": author,
        "committer": committer,
        "source_created_at": f"{created.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z",
        "subject": _subject(message),
        "message": message,
        "lossy": text.lossy,
    }


def _headers(head: bytes) -> dict[bytes, list[bytes]]:
    """Read the lines before the message; those that begin with a space go on with a signature, and are left out."""
    headers: dict[bytes, list[bytes]] = {}
    for line in head.split(b"\n"):
        if not line.startswith(b" "):
            name, _, value = line.partition(b" ")
            headers.setdefault(name, []).append(value)
    return headers


def _person(line: bytes, text: Text) -> tuple[dict[str, Any], datetime]:
    """Read `name <email> seconds offset`; where the time is broken it is null, and the epoch where one must be."""
    before, bracket, after = line.rpartition(b">")
    name, _, email = (before if bracket else line).partition(b"<")
    moment = _moment(after.strip() if bracket else b"")
    text.lossy |= moment is None
    person = {
        "name": text.decode(name.strip(), LINE_BYTES),
        "email": text.decode(email.strip(), LINE_BYTES),
        "at": moment and moment.isoformat().replace("+00:00", "Z"),
    }
    return person, moment or _EPOCH


def _moment(when: bytes) -> datetime | None:
    found = _WHEN.fullmatch(when)
    if found is None or not 0 <= (seconds := int(found[1])) <= _LAST_SECOND:
        return None
    minutes = int(found[3] or 0) * 60 + int(found[4] or 0)
    offset = timedelta(minutes=-minutes if found[2] == b"-" else minutes)
    try:
        return (_EPOCH + timedelta(seconds=seconds)).astimezone(timezone(offset))
    except (ValueError, OverflowError):
        return _EPOCH + timedelta(seconds=seconds)


def _subject(message: str) -> str:
    """Join the lines of the first paragraph, as git does."""
    paragraph, lines = [], message.strip().split("\n")
    for line in lines:
        if not line.strip():
            break
        paragraph.append(line.strip())
    return " ".join(paragraph)
