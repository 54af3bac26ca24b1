"""Connectors as real child processes: written into a folder, run to their end or talked to line by line."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

PROLOGUE = "from headwater.sdk import *\nconnector = Connector()\nstream = connector.stream\n"
EPILOGUE = "\nconnector.run()\n"
CURRENT = {"HEADWATER_PROFILE": "current"}
WINDOW, DETAIL = "checkpoint_window", "parent_detail_accounting"

ID = {"properties": {"id": {"type": "string"}}, "required": ["id"]}
KEYED = {"schema": ID, "primary_key": ["id"]}
MANIFESTS: dict[str, list[dict[str, Any]]] = {
    "FLAT": [{"name": name, **KEYED} for name in ("alpha", "beta", "gamma")],
    "RIDER": [
        {"name": "threads", **KEYED},
        {"name": "notes", **KEYED},
        {"name": "stamps", "state_stream": "threads", "coverage_strategy": WINDOW, **KEYED},
    ],
    "MIX": [
        *({"name": name, **KEYED} for name in ("inbox", "archive", "people")),
        {"name": "bodies", "parent_streams": ["inbox", "archive"], "coverage_strategy": DETAIL, **KEYED},
        {"name": "labels", "state_stream": "inbox", "coverage_strategy": WINDOW, **KEYED},
    ],
}


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Write a connector's folder: the code of its streams, and its manifest by name or by rows."""

    def write(code: str, streams: str | Sequence[Mapping[str, Any]] = "FLAT", **members: Any) -> Path:
        rows = MANIFESTS[streams] if isinstance(streams, str) else streams
        manifest = {"connector_id": "example", "streams": rows, **members}
        (tmp_path / "manifest.json").write_text(json.dumps(manifest), "utf-8")
        (tmp_path / "connector.py").write_text(PROLOGUE + code + EPILOGUE, "utf-8")
        return tmp_path

    return write


class Child:
    """A connector that runs while the test talks to it."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(folder / "connector.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": os.defpath, **environment},
        )
        self.rest = b""

    def send(self, message: Mapping[str, Any] | bytes) -> None:
        """Write one line to its stdin."""
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        os.write(self.process.stdin.fileno(), line + b"\n")

    def start(self, *streams: str, **members: Any) -> None:
        """Send START for some streams."""
        scope = {"streams": [{"name": name} for name in streams]}
        message = {"run_id": "r", "collection_mode": "incremental", "scope": scope, "state": None, "bindings": {}}
        self.send({"type": "START", **message, **members})

    def says_within(self, seconds: float) -> bool:
        """Say whether more output came within a time."""
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def line(self) -> dict[str, Any]:
        """Return the next message; fail where none comes."""
        while b"\n" not in self.rest:
            assert self.says_within(30), "the connector is silent"
            chunk = os.read(self.process.stdout.fileno(), 1 << 16)
            assert chunk, "the connector has ended"
            self.rest += chunk
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)

    def end(self) -> tuple[list[dict[str, Any]], str, int]:
        """Close its stdin and return what it still said, its stderr and its exit status."""
        out, err = self.process.communicate(timeout=30)
        return [json.loads(line) for line in (self.rest + out).splitlines()], err.decode(), self.process.returncode


@pytest.fixture
def launched() -> Iterator[Callable[..., Child]]:
    """Start a connector, and leave no process behind."""
    children: list[Child] = []

    def launch(folder: Path, environment: Mapping[str, str] = CURRENT) -> Child:
        children.append(Child(folder, environment))
        return children[-1]

    yield launch
    for child in children:
        child.process.kill()
        child.process.communicate()
