"""Running a connector in a test: START in, messages out, no host."""

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from headwater import clock
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
    answers: Sequence[Mapping[str, Any]] = (),
) -> Transcript:
    """Run the connector in a folder, over all its streams or those named, and return what it wrote.

    `revision` is what it is told that the runtime understands. `program` is what runs its connector.py. `answers` are
    what it is answered, question by question; one too many is `cancelled`.
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
    with (
        tempfile.TemporaryDirectory() as spool,
        tempfile.TemporaryFile() as stderr,
        subprocess.Popen(
            [*program, str(folder / "connector.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={"PATH": "/usr/bin:/bin", SPOOL_VARIABLE: spool, **told},
        ) as process,
    ):
        begun, overdue = clock.monotonic(), threading.Timer(timeout_seconds, process.kill)
        overdue.start()
        try:
            messages = list(_conversation(process, start, list(answers)))
            status = process.wait()
        finally:
            overdue.cancel()
            process.kill()
        if clock.monotonic() - begun >= timeout_seconds:
            raise subprocess.TimeoutExpired(process.args, timeout_seconds)
        stderr.seek(0)
        return Transcript(messages, status, stderr.read().decode("utf-8", "replace"))


def _conversation(
    process: "subprocess.Popen[bytes]", start: Mapping[str, Any], answers: list[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Say START, yield what comes, and answer the questions in it."""
    assert process.stdin is not None
    assert process.stdout is not None
    _say(process.stdin, start)
    if not answers:
        process.stdin.close()
    for line in process.stdout:
        message = json.loads(line)
        yield message
        if message["type"] == "INTERACTION" and not process.stdin.closed:
            data = {"status": "success", "data": dict(answers.pop(0))} if answers else {"status": "cancelled"}
            _say(process.stdin, {"type": "INTERACTION_RESPONSE", "request_id": message["request_id"], **data})


def _say(stdin: IO[bytes], message: Mapping[str, Any]) -> None:
    with suppress(BrokenPipeError):
        stdin.write(json.dumps(message).encode() + b"\n")
        stdin.flush()
