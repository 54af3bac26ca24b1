"""Collecting an account's GitHub in a test."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servers.github.provider import GitHub
from servers.github.world import World

import headwater.connectors
from headwater.sdk.testing import Transcript, collect

CONNECTOR = Path(headwater.connectors.__path__[0]) / "github"


@dataclass(frozen=True)
class Account:
    """An account at the provider."""

    github: GitHub

    @property
    def world(self) -> World:
        """What it has."""
        return self.github.world

    @property
    def answers(self) -> list[dict[str, Any]]:
        """The one answer that the connector asks for."""
        return [{"token": self.world.token}]

    def answer_file(self, folder: Path) -> str:
        """Write the answer to a file, and return its path."""
        path = folder / "answers.json"
        path.touch(0o600)
        path.write_text(json.dumps({"answers": [{"kind": "credentials", "data": self.answers[0]}]}))
        return str(path)

    def collect(self, state: Any = None, *streams: Any, **options: Any) -> Transcript:
        """Run the connector; what is asked for is noted anew."""
        self.github.asked.clear()
        told = {"endpoint": self.github.url, **options}
        return collect(CONNECTOR, options=told, state=state, streams=streams, answers=self.answers)

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
