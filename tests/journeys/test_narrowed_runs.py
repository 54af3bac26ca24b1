"""A narrowed run never lets a whole one skip what it left out."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CONNECTOR = """
from headwater.sdk import Connector

connector = Connector()


@connector.stream("notes")
def notes(stream):
    for number in range(stream.cursor.get("next", 0), 3):
        stream.emit({"id": str(number), "at": f"2026-0{number + 1}-01T00:00:00Z"})
    stream.save({"next": 3})


connector.run()
"""
FIELD = {"type": "string"}
NOTES = {
    "name": "notes",
    "primary_key": ["id"],
    "consent_time_field": "at",
    "schema": {"type": "object", "properties": {"id": FIELD, "at": FIELD}, "required": ["id"]},
}


@pytest.fixture
def collect(tmp_path):
    """Collect from a connector that filters by time; return the one stream's counts and the run's state."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "connector.py").write_text(CONNECTOR)
    (folder / "connector.toml").write_text('format = "headwater-connector/1"\ncommand = ["python", "connector.py"]\n')
    (folder / "manifest.json").write_text(json.dumps({"connector_id": "https://x.example/notes", "streams": [NOTES]}))
    where = ["--config", str(tmp_path / "c.toml"), "--state-dir", str(tmp_path / "s"), "--output", "json"]

    def collecting(*words: str) -> int:
        command = [sys.executable, "-m", "headwater", *where, "collect", "notes/me", "--from", str(folder), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["result"]["streams"][0]["accepted"]

    return collecting


def scope(path: Path) -> str:
    window = {"since": "2026-03-01T00:00:00Z"}
    path.write_text(json.dumps({"streams": [{"name": "notes", "time_range": window}]}))
    return str(path)


@pytest.mark.clause("CP-308", "CP-312")
def test_a_whole_run_after_a_narrowed_one_collects_the_rest(collect, tmp_path):
    """The cursor of a window says nothing of what lies before it."""
    assert collect("--scope", scope(tmp_path / "scope.json")) == 1
    assert collect() == 2


def test_a_narrowed_run_goes_on_from_its_own_cursor(collect, tmp_path):
    """Narrowed in the same way, a run is incremental."""
    narrowed = scope(tmp_path / "scope.json")
    assert (collect("--scope", narrowed), collect("--scope", narrowed)) == (1, 0)


def test_a_whole_run_loses_no_ground_to_a_narrowed_one(collect, tmp_path):
    """The global cursor stays where it was."""
    assert collect() == 3
    assert collect("--scope", scope(tmp_path / "scope.json")) == 0
    assert collect() == 0
