"""A scope that cannot be kept is skipped aloud; one that can is kept, whatever the source gives."""

from typing import Any

import pytest

from headwater.sdk.testing import collect

TIMED = [
    {
        "name": "timed",
        "primary_key": ["id"],
        "consent_time_field": "at",
        "schema": {"properties": {"id": {"type": "string"}, "at": {"type": "string"}}},
    },
    {"name": "timeless", "primary_key": ["id"], "schema": {"properties": {"id": {"type": "string"}}}},
]
BOTH = """
@stream("timed")
def timed(s):
    for n in range(1, 6):
        s.emit({"id": str(n), "at": f"2026-04-0{n}"})
    s.save({"n": 5})
@stream("timeless")
def timeless(s):
    yield {"id": "1"}
    s.save({"n": 1})
"""
WINDOW = {"since": "2026-04-02T00:00:00Z", "until": "2026-04-04T00:00:00Z"}


@pytest.mark.clause("CP-317")
def test_a_window_over_a_stream_without_time_is_skipped_aloud(written: Any) -> None:
    """That skip, no record and no cursor of it; the other stream goes on."""
    scope = [{"name": "timeless", "time_range": WINDOW}, {"name": "timed"}]
    transcript = collect(written(BOTH, TIMED), streams=scope)
    skips = [m for m in transcript.messages if m["type"] == "SKIP_RESULT"]
    assert [(skip["stream"], skip["reason"]) for skip in skips] == [("timeless", "scope_not_supported")]
    assert transcript.records("timeless") == []
    assert transcript.state.keys() == {"timed"}
    assert len(transcript.records("timed")) == 5


@pytest.mark.clause("CP-319")
def test_more_may_be_fetched_than_is_asked_for(written: Any) -> None:
    """The source gives five, and what comes is what was asked for."""
    transcript = collect(written(BOTH, TIMED), streams=[{"name": "timed", "time_range": WINDOW}])
    assert [record["id"] for record in transcript.records("timed")] == ["2", "3"]


@pytest.mark.clause("CP-317")
@pytest.mark.parametrize("edge", ["yesterday", "2026-13-01T00:00:00Z"])
def test_a_window_that_is_no_time_fails_the_run(written: Any, edge: str) -> None:
    """It is not taken for no window."""
    transcript = collect(written(BOTH, TIMED), streams=[{"name": "timed", "time_range": {"since": edge}}])
    assert (transcript.done["status"], transcript.records("timed")) == ("failed", [])


@pytest.mark.clause("CP-317")
def test_a_child_that_is_asked_for_alone_is_skipped_aloud(written: Any) -> None:
    """Its records come with its parent's, which this run does not collect."""
    code = "@stream('inbox')\ndef inbox(s):\n    s.run.stream('labels').emit({'id': '1'})"
    folder = written(code, "MIX")
    alone = collect(folder, streams=["labels"])
    assert [(m["type"], m.get("reason")) for m in alone.messages] == [
        ("SKIP_RESULT", "scope_not_supported"),
        ("DONE", None),
    ]
    assert collect(folder, streams=["inbox", "labels"]).records("labels") == [{"id": "1"}]


@pytest.mark.clause("CP-317")
def test_a_stream_that_the_connector_does_not_have_is_skipped_aloud(written: Any) -> None:
    """A host with a newer manifest is told, and the rest is collected."""
    transcript = collect(written(BOTH, TIMED), streams=["ghost", "timeless"])
    assert transcript.messages[0]["reason"] == "scope_not_supported"
    assert transcript.records("timeless") == [{"id": "1"}]
