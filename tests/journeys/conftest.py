"""The command line as a person or a program types it: real processes, one private Headwater a test."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from journeys.rules import broken

GUESTS = Path(__file__).parents[1] / "guests"


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit status."""

    status: int
    stdout: str
    stderr: str
    state: Path

    @property
    def result(self) -> Any:
        """The result of a command that succeeded. It keeps the rules that every result has to keep."""
        assert self.status == 0, f"{self.stderr}{self.crash if 'cli_internal' in self.stderr else ''}"
        result = json.loads(self.stdout)["result"]
        assert broken(result) == []
        return result

    @property
    def failure(self) -> Any:
        """What a refusal says of itself. Nothing else was printed."""
        assert self.stdout == ""
        assert "Traceback" not in self.stderr
        (line,) = self.stderr.splitlines()
        error = json.loads(line)["error"]
        assert error["code"] != "cli_internal", self.crash
        return error["data"]

    @property
    def crash(self) -> str:
        """The newest note of what went wrong inside."""
        notes = sorted((self.state / "crashes").glob("*.txt"))
        return notes[-1].read_text() if notes else "Nothing was noted."


@dataclass(frozen=True)
class Headwater:
    """A Headwater in a folder of its own."""

    place: Path
    mode: str = "json"

    @property
    def state(self) -> Path:
        """Its state directory."""
        return self.place / "state"

    def words(self, *words: str) -> list[str]:
        """Return the whole command line of a command."""
        where = ["--config", str(self.place / "config.toml"), "--state-dir", str(self.state), "--output", self.mode]
        return [sys.executable, "-m", "headwater", *where, *words]

    def guest(self, guest: str, *options: str, words: Sequence[str] = (), manifest: Path | None = None) -> list[str]:
        """Return the command line that collects from a guest."""
        program = sys.executable if guest.endswith(".py") else "/bin/sh"
        named = ["--manifest", str(manifest or GUESTS / "manifest.json")]
        return self.words("collect", *named, *options, "--", program, str(GUESTS / guest), *words)

    def type(self, *words: str, stdin: str = "") -> Answer:
        """Type a command, and wait for its end."""
        return self.run(self.words(*words), stdin)

    def collect(self, guest: str, *options: str, words: Sequence[str] = (), manifest: Path | None = None) -> Answer:
        """Collect from a guest, and wait for the end."""
        return self.run(self.guest(guest, *options, words=words, manifest=manifest), "")

    def run(self, words: Sequence[str], stdin: str) -> Answer:
        environment = {"HOME": str(self.place), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        done = subprocess.run(
            words, env=environment, input=stdin.encode(), capture_output=True, timeout=100, start_new_session=True
        )
        return Answer(done.returncode, done.stdout.decode(), done.stderr.decode(), self.state)

    def cursors(self, instance: str = "guest/adhoc") -> dict[str, Any]:
        """Return the committed cursors by stream."""
        return {row["stream"]: row["cursor"] for row in self.type("state", "show", instance).result["cursors"]}

    def keys(self, stream: str = "alpha", instance: str = "guest/adhoc") -> set[str]:
        """Return the keys of the records that a stream holds."""
        page = self.type("records", "list", instance, stream, "--limit", "1000").result
        return {row["key"] for row in page["items"]}

    def file(self, name: str) -> Path:
        """Make an empty file, so that a guest can be handed it on its command line."""
        path = self.place / name
        path.touch()
        return path

    def manifest(self, **members: Any) -> Path:
        """Write a manifest that differs from the guests' own."""
        path = self.place / "manifest.json"
        path.write_text(json.dumps({**json.loads((GUESTS / "manifest.json").read_text()), **members}))
        return path

    def left_behind(self) -> list[str]:
        """Return the connector processes of this Headwater that do not come to an end."""
        mark = f"={self.state}/spool/".encode()
        left = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (entry / "environ").read_bytes():
                    descriptor = os.pidfd_open(int(entry.name))
                    if not select.select([descriptor], [], [], 10)[0]:
                        left.append((entry / "cmdline").read_text())
                    os.close(descriptor)
        return left


@pytest.fixture
def headwater(tmp_path: Path) -> Headwater:
    """A Headwater that has seen nothing yet."""
    return Headwater(tmp_path)
