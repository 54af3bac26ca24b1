"""A sync of an integration that lists: a collection run, whoever starts it."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from listing.conftest import ANSWER, EXAMPLE, event


@pytest.mark.clause("INT-154", "INT-330", "INT-335")
def test_an_account_is_synchronised(ada, service):
    """`connections refresh` is what `collect` is; the credential is used and not renewed."""
    first = ada.refresh()
    assert {row["stream"]: row["accepted"] for row in first["streams"]} == {
        "groups": 2,
        "events": 5,
        "ticket_inventory": 1,
    }
    assert first["checkpoints"]["committed"] == ["groups", "events", "ticket_inventory"]
    second = ada.type("collect", "acme-tickets/me")
    assert second.keys() == first.keys()
    assert [row["unchanged"] for row in second["streams"]] == [2, 5, 1]
    del service.lists["events"][0]
    assert [row["deleted"] for row in ada.refresh()["streams"]] == [0, 1, 0]
    assert ada.stored() == ["e2", "e3", "e4", "e5"]
    assert [row["status"] for row in ada.type("runs", "list")["items"]] == ["succeeded"] * 3


@pytest.mark.clause("INT-331")
def test_the_concurrency_that_counts_is_recorded(ada):
    """It is held to the ceiling, and the operator is told."""
    ada.manifest(sync={"resourceConcurrency": 50})
    rows = ada.type("connectors", "integrations")["integrations"]
    (row,) = [one for one in rows if one["key"] == "acme-tickets"]
    assert row["resource_concurrency"] == 10
    assert "sync.resourceConcurrency is held to 10." in row["warnings"]


@pytest.mark.clause("INT-335", "INT-452", "INT-456")
def test_an_item_that_is_no_record_is_kept_aside(ada):
    """One in a thousand; and a name that drives terminals drives none."""
    items = f"[{{**{event('e')!r}, 'id': f'e{{n}}'}} for n in range(999)]"
    escape = "items[0]['name'] = '\\x1b]0;owned\\x07<script>'"
    ada.events(f"items = {items} + [{{'id': 'bad'}}]\n{escape}\nreturn Page(items, None, True)")
    (row,) = [row for row in ada.refresh()["streams"] if row["stream"] == "events"]
    assert (row["accepted"], row["rejected"]) == (999, 1)
    words = ada.words("records", "get", "acme-tickets/me", "events", "e0")
    words[words.index("json")] = "human"
    shown = subprocess.run(words, capture_output=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    assert b"owned" in shown.stdout
    assert b"\x1b" not in shown.stdout + shown.stderr
    assert b"\x07" not in shown.stdout + shown.stderr


@pytest.mark.clause("INT-333")
def test_an_instance_is_synchronised_once_at_a_time(ada):
    """A second start is told which one runs; when the holder is killed, the next works."""
    code = (ada.code / "integration.py").read_text()
    ada.events("import time; time.sleep(60)")
    with subprocess.Popen(
        ada.words("connections", "refresh", "acme-tickets/me"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as holder:
        end = time.monotonic() + 30
        while not (live := list((ada.state / "live").glob("run_*.sock"))):
            assert time.monotonic() < end
            time.sleep(0.02)
        failure = ada.refresh(status=1)
        assert (failure["code"], failure["run_id"]) == ("run_active", live[0].stem)
        os.kill(holder.pid, signal.SIGKILL)
    (ada.code / "integration.py").write_text(code)
    assert ada.refresh()["status"] == "succeeded"


@pytest.mark.clause("INT-334")
def test_a_list_without_an_end_is_told_by_its_reason(ada):
    """The run fails for that list alone; the cursors of the others commit."""
    ada.events(f"return Page([{event('e1')}], cursor or 'a')")
    failure = ada.refresh(status=1)
    assert failure["code"] == "run_failed"
    assert failure["checkpoints"]["committed"] == ["groups", "ticket_inventory"]
    assert ada.stored() == ["e1"]
    told = ada.type("runs", "explain", failure["run_id"])
    assert "repeated_cursor" in str(told)


@pytest.mark.clause("INT-335")
def test_the_example_conforms(service, tmp_path):
    """As any connector has to: killed at drawn lines it loses nothing, and goes on from its cursors."""
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps({"answers": [{"kind": "credentials", "data": ANSWER}]}))
    answers.chmod(0o600)
    told = ["--set", f"endpoint={service.endpoint}", "--answer-file", str(answers), "--output", "json"]
    packs = ["--pack", "kill", "--pack", "resumed"]
    words = [sys.executable, "-m", "headwater", "connectors", "check", str(EXAMPLE), *told, *packs]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=100)
    assert ended.returncode == 0, ended.stderr
    verdicts = {row["clause"]: row["verdict"] for row in json.loads(ended.stdout)["result"]["clauses"]}
    assert (verdicts["CP-410"], verdicts["CP-447"], verdicts["CP-405"]) == ("pass", "pass", "pass")
