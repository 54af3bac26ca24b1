"""Collecting an account's calendars or contacts in a test, through a relay."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servers.dav_relay import Relay
from servers.radicale import Owner, Radicale

import headwater.connectors
from headwater.sdk.testing import Transcript, collect


@dataclass(frozen=True)
class Account:
    """An account on the server, and the connector that collects it."""

    connector: str
    server: Radicale
    owner: Owner
    relay: Relay

    @property
    def folder(self) -> Path:
        """The connector's folder."""
        return Path(headwater.connectors.__path__[0]) / self.connector

    @property
    def answers(self) -> list[dict[str, Any]]:
        """The one answer that the connector asks for."""
        return [{"username": self.owner.name, "password": self.owner.password}]

    def typed(self, folder: Path) -> list[str]:
        """Return options of the command line: where the server is, and the answer in a file."""
        path = folder / "answers.json"
        path.touch(0o600)
        path.write_text(json.dumps({"answers": [{"kind": "credentials", "data": self.answers[0]}]}))
        return ["--set", f"endpoint={self.relay.url}", "--answer-file", str(path)]

    def collect(self, state: Any = None, *streams: Any, **options: Any) -> Transcript:
        """Run the connector; what is asked for is noted anew."""
        self.relay.asked.clear()
        told = {"endpoint": self.relay.url, **options}
        return collect(self.folder, options=told, state=state, streams=streams, answers=self.answers)

    def succeed(self, state: Any = None, *streams: Any, **options: Any) -> Transcript:
        """Run the connector, which has to succeed."""
        run = self.collect(state, *streams, **options)
        assert run.done["status"] == "succeeded", (run.done, run.stderr)
        return run


def said(run: Transcript, kind: str) -> list[dict[str, Any]]:
    """Return the messages of a kind."""
    return [message for message in run.messages if message["type"] == kind]


def deleted(run: Transcript, stream: str) -> list[Any]:
    """Return the keys that a stream deleted."""
    return [m["key"] for m in said(run, "RECORD") if m["stream"] == stream and m.get("op") == "delete"]


def kept(run: Transcript, stream: str) -> list[dict[str, Any]]:
    """Return the records of a stream that are no deletes."""
    return [m["data"] for m in said(run, "RECORD") if m["stream"] == stream and m.get("op") != "delete"]
