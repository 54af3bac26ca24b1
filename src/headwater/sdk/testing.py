"""Running a connector in a test: START in, messages out, no host."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.sdk.revision import Revision
from headwater.wire.messages import CollectionMode
from headwater.wire.surroundings import OPTIONS_VARIABLE, PROFILE_VARIABLE, SPOOL_VARIABLE


@dataclass(frozen=True)
class Transcript:
    """What a connector wrote, and how it ended."""

    messages: list[dict[str, Any]]
    exit_status: int
    stderr: str

    def records(self, stream: str) -> list[dict[str, Any]]:
        """Return the data of a stream's records, in order."""
        return [m["data"] for m in self.messages if m["type"] == "RECORD" and m["stream"] == stream]

    @property
    def state(self) -> dict[str, Any]:
        """The last cursor of each stream: pass it to the next run."""
        return {m["stream"]: m["cursor"] for m in self.messages if m["type"] == "STATE"}

    @property
    def done(self) -> dict[str, Any]:
        """The DONE message."""
        return self.messages[-1]


def collect(
    folder: Path,
    *,
    options: Mapping[str, Any] | None = None,
    state: Mapping[str, Any] | None = None,
    streams: Sequence[Mapping[str, Any] | str] = (),
    mode: CollectionMode = "incremental",
    revision: Revision = "current",
    timeout_seconds: float = 60,
    program: Sequence[str] = (sys.executable,),
) -> Transcript:
    """Run the connector in a folder, over all its streams or those named, and return what it wrote.

    `revision` is what it is told that the runtime understands. `program` is what runs its connector.py.
    """
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    named = streams or [stream["name"] for stream in manifest["streams"]]
    start: dict[str, Any] = {
        "type": "START",
        "run_id": "run_test",
        "collection_mode": mode,
        "scope": {"streams": [{"name": entry} if isinstance(entry, str) else dict(entry) for entry in named]},
        "state": state,
        "bindings": {name: {} for name in manifest.get("runtime_requirements", {}).get("bindings", {})},
    }
    told = {OPTIONS_VARIABLE: json.dumps(dict(options or {})), PROFILE_VARIABLE: revision}
    with tempfile.TemporaryDirectory() as spool:
        finished = subprocess.run(
            [*program, str(folder / "connector.py")],
            input=json.dumps(start).encode() + b"\n",
            capture_output=True,
            timeout=timeout_seconds,
            check=False,
            env={"PATH": "/usr/bin:/bin", SPOOL_VARIABLE: spool, **told},
        )
    messages = [json.loads(line) for line in finished.stdout.splitlines()]
    return Transcript(messages, finished.returncode, finished.stderr.decode("utf-8", "replace"))
