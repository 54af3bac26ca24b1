"""Somebody with mail on a Dovecot: it is put there, changed and collected."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servers.dovecot import PASSWORD, Dovecot

import headwater.connectors
from headwater.manifest.reading import read
from headwater.manifest.schemas import compile_schema
from headwater.sdk.testing import Transcript, collect

CONNECTOR = Path(headwater.connectors.__path__[0]) / "imap"


def message(
    subject: str = "Number 1", body: str = "Hello\r\n", *, date: str = "Tue, 1 Oct 2024 10:00:00 +0000"
) -> bytes:
    """Write a plain message."""
    return f"From: Ann <ann@example.org>\r\nSubject: {subject}\r\nDate: {date}\r\n\r\n{body}".encode()


def attached(subject: str, content: bytes = b"aGVsbG8=") -> bytes:
    """Write a message with an attachment; `content` is what stands there as base64."""
    return (
        (
            f"From: ann@example.org\r\nSubject: {subject}\r\nDate: Tue, 1 Oct 2024 10:00:00 +0000\r\n"
            "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=cut\r\n\r\n--cut\r\n\r\nHello\r\n"
            "--cut\r\nContent-Type: image/png; name=a.png\r\nContent-Transfer-Encoding: base64\r\n\r\n"
        ).encode()
        + content
        + b"\r\n--cut--\r\n"
    )


@dataclass(frozen=True)
class Person:
    """A user of a server, and the connector run for her."""

    server: Dovecot
    name: str

    @property
    def options(self) -> dict[str, Any]:
        """The connector's options for the server."""
        return {"host": "127.0.0.1", "port": self.server.tls_port, "ca": self.server.ca}

    @property
    def answer(self) -> dict[str, str]:
        """What she answers."""
        return {"username": self.name, "password": PASSWORD}

    def put(self, *messages: bytes, mailbox: str = "INBOX", flags: str = "") -> None:
        """Deliver messages."""
        with self.server.client(self.name) as client:
            client.create(mailbox)
            for one in messages:
                assert client.append(mailbox, flags, "", one)[0] == "OK"

    def fill(self, count: int) -> None:
        """Let there be many messages in the inbox at once, by writing their files."""
        with self.server.client(self.name) as client:
            client.select("INBOX")
        inbox = self.server.home(self.name) / "Maildir" / "cur"
        owner = inbox.stat()
        for number in range(1, count + 1):
            path = inbox / f"{1_700_000_000 + number}.M{number}.test:2,"
            path.write_bytes(message(f"Number {number}"))
            os.chown(path, owner.st_uid, owner.st_gid)

    def do(self, *commands: Sequence[str], mailbox: str = "INBOX") -> None:
        """Change something in a mailbox: each command is a method of the client and its words."""
        with self.server.client(self.name) as client:
            client.select(mailbox)
            for name, *words in commands:
                assert getattr(client, name)(*words)[0] == "OK"

    def collect(self, state: dict[str, Any] | None = None, **how: Any) -> Transcript:
        """Run the connector, whatever comes of it, and hold what it emits to its manifest."""
        options = {**self.options, **how.pop("options", {})}
        how.setdefault("answers", [self.answer])
        transcript = collect(CONNECTOR, options=options, state=state, **how)
        for name, stream in read((CONNECTOR / "manifest.json").read_bytes()).streams.items():
            validator = compile_schema(stream.schema or {})
            for said in transcript.messages:
                if said["type"] == "RECORD" and said["stream"] == name and said.get("op") != "delete":
                    validator.validate(said["data"])
        assert PASSWORD not in json.dumps(transcript.messages) + transcript.stderr
        return transcript

    def succeed(self, state: dict[str, Any] | None = None, **how: Any) -> Transcript:
        """Run the connector, which must succeed."""
        transcript = self.collect(state, **how)
        assert transcript.done["status"] == "succeeded", (transcript.done, transcript.stderr)
        return transcript


def subjects(transcript: Transcript) -> list[str]:
    """Return the subjects of the messages that were sent, in order."""
    return [
        m["data"]["subject"]
        for m in transcript.messages
        if m.get("stream") == "messages" and "subject" in m.get("data", {})
    ]


def deleted(transcript: Transcript, stream: str = "messages") -> list[Any]:
    """Return the keys that were deleted, in order."""
    return [m["key"] for m in transcript.messages if m.get("op") == "delete" and m["stream"] == stream]
