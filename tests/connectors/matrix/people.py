"""Somebody with an account at a real Synapse, and the connector run for them through a relay that counts."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servers.relay import Relay
from servers.synapse import Synapse, User

import headwater.connectors
from headwater.manifest.reading import read
from headwater.manifest.schemas import compile_schema
from headwater.sdk.testing import Transcript, collect

CONNECTOR = Path(headwater.connectors.__path__[0]) / "matrix"


@dataclass(frozen=True)
class Account:
    """The account that is collected, and its homeserver."""

    user: User
    relay: Relay

    @property
    def answer(self) -> dict[str, str]:
        """What is answered to the connector's question."""
        return {"access_token": self.user.access_token}

    def collect(self, state: dict[str, Any] | None = None, **how: Any) -> Transcript:
        """Run the connector, whatever comes of it, and hold what it emits to its manifest."""
        self.relay.seen.clear()
        options = {"endpoint": self.relay.base_url, **how.pop("options", {})}
        how.setdefault("answers", [self.answer])
        transcript = collect(CONNECTOR, options=options, state=state, **how)
        for name, stream in read((CONNECTOR / "manifest.json").read_bytes()).streams.items():
            validator = compile_schema(stream.schema or {})
            for said in transcript.messages:
                if said["type"] == "RECORD" and said["stream"] == name and said.get("op") != "delete":
                    validator.validate(said["data"])
        assert self.user.access_token not in json.dumps(transcript.messages) + transcript.stderr
        return transcript

    def succeed(self, state: dict[str, Any] | None = None, **how: Any) -> Transcript:
        """Run the connector, which must succeed."""
        transcript = self.collect(state, **how)
        assert transcript.done["status"] == "succeeded", (transcript.done, transcript.stderr)
        return transcript

    def log_in_again(self) -> str:
        """Make another session, and return its token."""
        return Synapse(self.user.base_url, Path()).log_in(self.user).access_token

    def shorten(self, events: int = 10) -> None:
        """Let the homeserver give a few events where it is asked for many: it may always give fewer."""
        self.relay.rewrite = lambda target: re.sub(r"(limit(?:=|%22%3A))\d{3}", rf"\g<1>{events}", target)


def bodies(transcript: Transcript) -> list[str | None]:
    """Return the texts of the messages that were sent, by time."""
    records = sorted(transcript.records("messages"), key=lambda record: record["source_created_at"])
    return [record["body"] for record in records]


def deleted(transcript: Transcript, stream: str) -> list[Any]:
    """Return the keys that were deleted, in order."""
    return [m["key"] for m in transcript.messages if m.get("op") == "delete" and m["stream"] == stream]
