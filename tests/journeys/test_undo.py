"""Undoing a run as a person types it."""

import subprocess
from contextlib import suppress


def test_a_run_is_undone_and_the_next_one_collects_again(headwater):
    """Records and cursors go back; the list of runs and the history tell of it."""
    run = headwater.collect("good.sh").result["run_id"]
    before, keys = headwater.cursors(), headwater.keys()
    said = headwater.type("runs", "undo", run, "--dry-run").result
    assert (said["dry_run"], headwater.keys()) == (True, keys)
    undone = headwater.type("runs", "undo", run).result
    assert (undone["undone"], undone["streams"]) == (run, said["streams"])
    assert (headwater.keys(), headwater.cursors()) == (set(), {})
    newest = headwater.type("runs", "list").result["items"][0]
    assert (newest["run_id"], newest["mode"]) == (undone["run_id"], "undo")
    headwater.collect("good.sh")
    assert (headwater.keys(), headwater.cursors()) == (keys, before)


def test_a_run_on_which_another_built_names_that_one(headwater):
    """It is the next command that is shown."""
    first = headwater.collect("good.sh").result["run_id"]
    second = headwater.collect("good.sh").result["run_id"]
    failure = headwater.type("runs", "undo", first).failure
    assert failure["code"] == "run_superseded"
    assert failure["command"] == f"headwater runs undo {second}"
    headwater.type("runs", "undo", second)
    assert headwater.type("runs", "undo", first).status == 0


def test_nothing_is_undone_while_the_instance_is_collected(headwater):
    """The lock of the instance is held by the run."""
    run = headwater.collect("good.sh").result["run_id"]
    busy = subprocess.Popen(headwater.guest("waits.sh"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        while headwater.type("runs", "list", "--status", "running").result["items"] == []:
            assert busy.poll() is None
        assert headwater.type("runs", "undo", run).failure["code"] == "run_active"
    finally:
        busy.terminate()
        with suppress(subprocess.TimeoutExpired):
            busy.communicate(timeout=20)
