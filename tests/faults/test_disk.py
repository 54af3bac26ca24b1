"""A disk that is full in the midst of a run: the run fails with a reason, and the next one makes it whole."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

GUESTS = Path(__file__).parents[1] / "guests"
MIB = 1 << 20


def collect(folder, guest, *words, file_bytes=resource.RLIM_INFINITY):
    """Collect from a guest on a machine where no file grows beyond a size."""
    where = ["--config", str(folder / "c.toml"), "--state-dir", str(folder / "s"), "--output", "json"]
    program = [sys.executable, str(GUESTS / guest), *words]
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "headwater",
            *where,
            "collect",
            "--manifest",
            str(GUESTS / "manifest.json"),
            "--",
            *program,
        ],
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes)),
    )


@pytest.mark.clause("CP-411")
@pytest.mark.parametrize("file_bytes", [MIB // 2, MIB, 2 * MIB])
def test_a_full_disk_fails_the_run_and_the_next_one_makes_it_whole(tmp_path, file_bytes):
    """Nothing is claimed that is not kept, nobody sees a traceback, and nothing has to be repaired."""
    full = collect(tmp_path, "speaks_early.py", file_bytes=file_bytes)
    failure = json.loads(full.stderr)["error"]["data"]
    assert (full.returncode, full.stdout) == (1, "")
    assert "storage_failed" in (failure["code"], failure.get("cause"))
    assert failure.get("checkpoints", {"committed": []})["committed"] == []
    again = collect(tmp_path, "speaks_early.py")
    assert again.returncode == 0, again.stderr
    (alpha, _) = json.loads(again.stdout)["result"]["streams"]
    assert alpha["accepted"] + alpha["unchanged"] == 50_000
    assert alpha["rejected"] == 0


def test_a_disk_that_is_full_from_the_start_starts_nothing(tmp_path):
    """Where not even the beginning of a run can be noted, no connector is started."""
    (tmp_path / "notes").touch()
    result = collect(tmp_path, "notes_start.py", str(tmp_path / "notes"), "{}", file_bytes=8192)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert json.loads(result.stderr)["error"]["data"]["code"] in ("metadata_unavailable", "storage_failed")
    assert (tmp_path / "notes").read_text() == ""


def test_a_state_directory_that_cannot_be_made_starts_nothing(tmp_path):
    """A file where a folder should be is a sentence, and no accident inside."""
    (tmp_path / "s").write_text("a file")
    (tmp_path / "notes").touch()
    result = collect(tmp_path, "notes_start.py", str(tmp_path / "notes"), "{}")
    data = json.loads(result.stderr)["error"]["data"]
    assert (result.returncode, data["code"], data["safe"]) == (1, "metadata_unavailable", "Nothing was started.")
    assert (tmp_path / "notes").read_text() == ""
