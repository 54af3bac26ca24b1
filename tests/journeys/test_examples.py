"""The example connectors, run for real: checked as the host checks, and compared with what they say they write."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headwater.sdk.testing import Transcript, collect

EXAMPLES = Path(__file__).parents[2] / "examples" / "connectors"
MANIFESTS = {path.parent.name: path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*/manifest.json")}
# An example that needs a browser also needs a site: see test_browser.py.
NAMES = sorted(name for name, manifest in MANIFESTS.items() if "browser_automation" not in manifest)


def run(name: str, **more: Any) -> Transcript:
    """Run an example bare: START in, messages out."""
    folder = EXAMPLES / name
    fixture = folder / "fixtures" / "options.json"
    options = json.loads(fixture.read_text()) if fixture.exists() else {}
    if "path" in options:
        options["path"] = str(folder / options["path"])
    return collect(folder, **{"options": options, **more})


def timeless(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out the only member that differs from run to run."""
    return [{name: value for name, value in message.items() if name != "emitted_at"} for message in messages]


def test_there_are_examples():
    """An empty folder would pass every other test."""
    assert {"files", "hello"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_writes_what_it_says(name):
    """`expected.jsonl` is the whole of stdout, but for the time of each record."""
    expected = (EXAMPLES / name / "expected.jsonl").read_text(encoding="utf-8").splitlines()
    assert timeless(run(name).messages) == [json.loads(line) for line in expected]


@pytest.mark.parametrize("name", NAMES)
def test_an_example_conforms(name, tmp_path):
    """`connectors check` finds nothing that fails."""
    paths = ["--config", str(tmp_path / "config.toml"), "--state-dir", str(tmp_path / "state")]
    words = [sys.executable, "-m", "headwater", *paths, "--output", "json", "connectors", "check", str(EXAMPLES / name)]
    environment = {"HOME": str(tmp_path), "PATH": os.defpath}
    result = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=100)
    assert result.returncode == 0, result.stderr
    clauses = json.loads(result.stdout)["result"]["clauses"]
    assert "fail" not in {row["verdict"] for row in clauses}


@pytest.mark.parametrize("name", NAMES)
def test_a_second_run_has_nothing_new(name):
    """An example resumes from its own cursor."""
    again = run(name, state=run(name).state)
    assert [message["type"] for message in again.messages if message["type"] == "RECORD"] == []


@pytest.mark.parametrize("name", sorted(MANIFESTS))
def test_an_example_is_short_and_explained(name):
    """An example that needs a second screen is no example."""
    folder = EXAMPLES / name
    assert len((folder / "connector.py").read_text().splitlines()) <= 40
    assert (folder / "README.md").is_file()


def test_files_sends_a_delete_for_a_file_that_is_gone(tmp_path):
    """A complete listing that lacks a file is the only proof that it is gone."""
    (tmp_path / "a.txt").write_text("a")
    first = run("files", options={"path": str(tmp_path)})
    (tmp_path / "a.txt").unlink()
    second = run("files", options={"path": str(tmp_path)}, state=first.state)
    assert [(m["key"], m["op"]) for m in second.messages if m["type"] == "RECORD"] == [("a.txt", "delete")]
    assert second.state == {"files": {"sent": {}}}


def test_files_does_not_take_a_missing_folder_for_an_empty_one(tmp_path):
    """Absent is not empty: nothing is deleted, no cursor moves, and the run fails."""
    known = {"files": {"sent": {"a.txt": "0"}}}
    result = run("files", options={"path": str(tmp_path / "unmounted")}, state=known)
    assert [message["type"] for message in result.messages] == ["DONE"]
    assert result.done["status"] == "failed"
