"""A connector of the first revision: what it may not do, it still may not, with the same effect."""

import sys
from pathlib import Path

import pytest
from faults.machine import Place

GUESTS = Path(__file__).parents[1] / "guests"
STATE = '{"type":"STATE","stream":"alpha","cursor":{"at":2}}\n'
ASK = '{"type":"INTERACTION","request_id":"q","kind":"otp","message":"m"}\n'
START = '{"type":"START","run_id":"r","scope":{"streams":[]},"state":null,"bindings":{}}\n'


def old(tmp_path, hosts, **members):
    """A place whose manifest has the members of the first revision, and no other."""
    schema = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    streams = [{"name": name, "primary_key": ["id"], "schema": schema} for name in ("alpha", "beta")]
    return Place(tmp_path, hosts, streams, version="1.0.0", **members)


def collect(place, tmp_path, written, *options):
    (tmp_path / "bytes").write_text(written)
    program = [sys.executable, "-SE", str(GUESTS / "writes.py"), str(tmp_path / "bytes")]
    place.collect(*program, options=["--stream", "alpha", *options])
    return {"exit": place.hosts.end().status, **place.hosts.said}


@pytest.mark.clause("CP-910")
@pytest.mark.parametrize(("written", "cause"), [(ASK + ASK, "spoke_while_waiting"), (START, "unknown_type")])
def test_a_second_question_or_start_ends_its_run(tmp_path, hosts, written, cause):
    """The process is ended, the run failed, and no cursor of it moves."""
    place = old(tmp_path, hosts)
    said = collect(place, tmp_path, STATE + written + STATE)
    assert (said["exit"], said["cause"], said["checkpoints"]["committed"]) == (1, cause, [])
    assert place.ask("SELECT * FROM checkpoints") == []
    assert place.left_behind() == []


@pytest.mark.clause("CP-910")
def test_a_binding_that_is_missing_starts_nothing(tmp_path, hosts):
    """A required binding that the host does not offer is refused before the spawn."""
    place = old(tmp_path, hosts, runtime_requirements={"bindings": {"example.com/telepathy": {"required": True}}})
    said = collect(place, tmp_path, "")
    assert (said["exit"], said["code"]) == (1, "binding_unavailable")
    assert not place.has("SELECT 1 FROM runs")


@pytest.mark.clause("CP-910")
def test_a_record_out_of_scope_is_not_kept(tmp_path, hosts):
    """It leaves a receipt without its bytes, and its run goes on."""
    place = old(tmp_path, hosts)
    record = '{"type":"RECORD","stream":"beta","key":"b1","data":{"id":"b1"},"emitted_at":"2026-04-01T10:00:00Z"}\n'
    said = collect(place, tmp_path, record)
    assert (said["exit"], said["checkpoints"]["committed"]) == (0, ["alpha"])
    assert place.ask("SELECT stream, reason, line FROM receipts") == [("beta", "out_of_scope", None)]
    assert place.ask("SELECT key FROM records") == [("a1",)]
