"""What the first revision forbade has the effect that it had: two cases are the host's, two are the connector's."""

import json
from typing import Any

import pytest

from headwater.collect.effects import Abort, Receipt
from headwater.collect.plan import RunPlan, plan_scope
from headwater.collect.session import Session
from headwater.collect.verdict import Exit
from headwater.manifest.reading import read

# Nothing in it is younger than the first revision.
MANIFEST = {
    "protocol_version": "0.1.0",
    "connector_id": "https://registry.pdpp.org/connectors/spotify",
    "version": "2.0.0",
    "display_name": "Spotify",
    "streams": [{"name": "alpha", "incremental": True}, {"name": "beta"}],
}
FIRST = {"HEADWATER_PROFILE": "first"}
ASK = {"type": "INTERACTION", "request_id": "req_1", "kind": "otp", "message": "The code?"}
WAITS = """
@stream("alpha")
def alpha(s):
    s.progress("begun")
    import time
    time.sleep(60)
    yield {"id": "1"}
"""


def begun(*scope: str) -> Session:
    """Start a run of a first-revision connector."""
    declaration = read(json.dumps(MANIFEST).encode())
    session = Session(RunPlan("run_1", declaration, plan_scope(declaration, names=scope)))
    session.start()
    return session


@pytest.mark.clause("CP-910")
def test_a_second_question_ends_the_run() -> None:
    """As CP-702: the process has to go, the run failed, and nothing commits."""
    session = begun("alpha")
    for line in ({"type": "STATE", "stream": "alpha", "cursor": {"n": 1}}, ASK):
        session.receive(json.dumps(line).encode())
    assert isinstance(session.receive(json.dumps(ASK).encode()), Abort)
    verdict, decision = session.end(Exit(signal=15))
    assert (verdict.status, decision.committed) == ("failed", ())


@pytest.mark.clause("CP-910")
def test_a_record_outside_the_scope_is_not_stored() -> None:
    """As CP-320: it is dropped, and the run goes on to succeed."""
    session = begun("alpha")
    record = {"type": "RECORD", "stream": "beta", "key": "1", "data": {}, "emitted_at": "2026-04-06T15:01:00Z"}
    assert isinstance(session.receive(json.dumps(record).encode()), Receipt)
    session.receive(b'{"type":"DONE","status":"succeeded","records_emitted":1}')
    assert session.end(Exit(0))[0].status == "succeeded"


@pytest.mark.clause("CP-910")
def test_a_repeated_start_is_fatal(written: Any, launched: Any) -> None:
    """As CP-202: stderr, a status that is not zero, and no record."""
    child = launched(written(WAITS), FIRST)
    child.start("alpha")
    assert child.line()["type"] == "PROGRESS"
    child.start("alpha")
    messages, errors, status = child.end()
    assert (messages, status) == ([], 70)
    assert "START" in errors


@pytest.mark.clause("CP-910")
def test_a_missing_required_binding_is_fatal(written: Any, launched: Any) -> None:
    """As CP-058: no record, DONE failed, stderr and a status that is not zero."""
    requirements = {"bindings": {"network": {"required": True}}}
    child = launched(
        written("@stream('alpha')\ndef alpha(s):\n    yield {'id': '1'}", runtime_requirements=requirements), FIRST
    )
    child.start("alpha")
    (done,), errors, status = child.end()
    assert (done["type"], done["status"], status) == ("DONE", "failed", 1)
    assert "network" in errors
