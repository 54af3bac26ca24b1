"""Databases that releases left behind: each is brought forward with everything that a person had in it."""

import json
import lzma
import subprocess
import sys
from pathlib import Path

import pytest

RELEASES = sorted((Path(__file__).parent / "releases").glob("*.db.xz"))
NOTES = {
    "protocol_version": "0.1.0",
    "connector_id": "https://connectors.example/old",
    "version": "1.0.0",
    "display_name": "Old",
    "streams": [
        {
            "name": "notes",
            "semantics": "mutable_state",
            "primary_key": ["id"],
            "schema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        }
    ],
}
SCRIPT = r"""read start; printf '%s\n' "$start" >&2
echo '{"type":"RECORD","stream":"notes","key":"c","data":{"id":"c"},"emitted_at":"2026-01-01T00:00:00Z"}'
echo '{"type":"STATE","stream":"notes","cursor":{"at":2}}'
echo '{"type":"DONE","status":"succeeded","records_emitted":1}'
"""


@pytest.fixture(params=RELEASES, ids=lambda path: path.name.removesuffix(".db.xz"))
def old(request, tmp_path):
    """A state directory as a release left it: an archive, gaps, a narrowed run, and a run that was cut off."""
    (tmp_path / "headwater.db").write_bytes(lzma.decompress(request.param.read_bytes()))
    (tmp_path / "headwater.db").chmod(0o600)
    (tmp_path / "manifest.json").write_text(json.dumps(NOTES))

    def typing(*words):
        command = [sys.executable, "-m", "headwater", "--state-dir", str(tmp_path), "--output", "json", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return json.loads(done.stdout)["result"] if done.returncode == 0 else json.loads(done.stderr)["error"]["data"]

    typing.collect = lambda: typing("collect", "--manifest", str(tmp_path / "manifest.json"), "--", "sh", "-c", SCRIPT)
    return typing


def test_looking_at_an_old_database_says_what_to_do(old):
    """Looking changes nothing, and so brings nothing forward."""
    assert "collect once" in old("streams", "list")["message"]


def test_the_next_run_brings_it_forward_and_goes_on_from_its_cursor(old):
    """Records, history, cursors and open gaps are all there; the run that was cut off is settled."""
    run = old.collect()
    assert run["status"] == "succeeded"
    counts = {(row["instance"], row["stream"]): row["records"] for row in old("streams", "list")["streams"]}
    assert counts["demo/me", "messages"] == 2196
    assert counts["old/adhoc", "notes"] == 2
    assert {row["status"] for row in old("runs", "list")["items"]} == {"succeeded", "abandoned"}
    gaps = {row["key"]: row["status"] for row in old("gaps", "list", "old/adhoc", "--all")["items"]}
    assert gaps == {"c": "recovered"}
    assert len(old("gaps", "list", "demo/me")["items"]) == 2


def test_what_the_release_did_not_keep_is_not_guessed(old):
    """Its runs cannot be undone; a run of today can, back to what the release had."""
    today = old.collect()["run_id"]
    before = [run for run in old("runs", "list", "old/adhoc")["items"] if run["namespace"] == "global"]
    assert old("runs", "undo", today)["cursors"] == ["notes"]
    (cursor,) = [row["cursor"] for row in old("state", "show", "old/adhoc")["cursors"] if row["namespace"] == "global"]
    assert cursor == {"at": 1}
    refused = [old("runs", "undo", run["run_id"]) for run in before if run["run_id"] != today]
    assert {failure["code"] for failure in refused if "code" in failure} == {"run_superseded"}
