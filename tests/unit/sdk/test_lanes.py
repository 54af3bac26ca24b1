"""The detail lane: every key accounted for, one report a parent, and nothing after it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.sdk.testing import collect

# A connector whose walk is its options: for each parent, the keys it requires and what becomes of each.
SCRIPTED = """
@stream("inbox")
def inbox(s):
    walk(s)
@stream("archive")
def archive(s):
    walk(s)
def walk(s):
    with s.details("bodies") as lane:
        for key, outcome in s.run.options["walk"].get(s.name, []):
            if outcome != "unannounced":
                lane.require(key)
            if outcome in ("fetched", "unannounced"):
                lane.emit({"id": key})
            elif outcome == "unwritable":
                try:
                    lane.emit({"id": key, "x": object()})
                except TypeError:
                    lane.gap(key, "unwritable")
            elif outcome == "gap":
                lane.gap(key, "temporary_unavailable", locator={"id": key})
            elif outcome == "abort":
                raise ValueError
"""
MEMBERS = {"type", "reference_only", "stream", "state_stream", "required_keys", "hydrated_keys", "gap_keys"}
OUTCOMES = st.sampled_from(["fetched", "fetched", "gap", "unannounced", "unwritable", "left"])


def of_type(transcript: Any, kind: str) -> list[dict[str, Any]]:
    """Return the messages of one type."""
    return [message for message in transcript.messages if message["type"] == kind]


def walked(folder: Path, streams: Any = (), **walk: list[tuple[str, str]]) -> Any:
    """Run the scripted connector."""
    return collect(folder, options={"walk": walk}, streams=streams)


@pytest.mark.clause("CP-515", "CP-516", "CP-546", "CP-555")
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    walk=st.fixed_dictionaries(
        {name: st.dictionaries(st.sampled_from("abcdefgh"), OUTCOMES, max_size=6) for name in ("inbox", "archive")}
    )
)
def test_every_report_says_what_the_wire_says(written: Callable[..., Path], walk: dict[str, dict[str, str]]) -> None:
    """Whatever is fetched or fails, hydrated keys are the records sent, gap keys the gaps, and the rest is the left."""
    folder = written(SCRIPTED, "MIX")
    transcript = walked(folder, **{name: list(keys.items()) for name, keys in walk.items()})
    assert transcript.exit_status == 0, transcript.stderr
    seen: dict[str, set[str]] = {"RECORD": set(), "DETAIL_GAP": set()}
    reports = []
    for message in transcript.messages:
        if message["type"] in seen:
            parent = ("inbox", "archive")[len(reports)]
            assert message.get("parent_stream", parent) == parent
            seen[message["type"]].add(message.get("key") or message["record_key"])
        elif message["type"] == "DETAIL_COVERAGE":
            keys = walk[message["state_stream"]]
            assert set(message["required_keys"]) == set(keys)
            assert set(message["hydrated_keys"]) == seen["RECORD"]
            assert set(message.get("gap_keys", [])) == seen["DETAIL_GAP"]
            left = set(keys) - seen["RECORD"] - seen["DETAIL_GAP"]
            assert left == {key for key, outcome in keys.items() if outcome == "left"}
            reports.append(message["state_stream"])
            seen = {"RECORD": set(), "DETAIL_GAP": set()}
            assert set(message) <= MEMBERS
    assert reports == ["inbox", "archive"]


@pytest.mark.clause("CP-516")
def test_one_report_stands_behind_the_last_line_of_its_parent(written: Any) -> None:
    """Records and gaps of a boundary come first, then its one report."""
    walk = [("a", "fetched"), ("b", "gap"), ("c", "fetched")]
    transcript = walked(written(SCRIPTED, "MIX"), inbox=walk, archive=walk)
    kinds = [message["type"] for message in transcript.messages]
    assert kinds == ["RECORD", "DETAIL_GAP", "RECORD", "DETAIL_COVERAGE"] * 2 + ["DONE"]
    assert [report["state_stream"] for report in of_type(transcript, "DETAIL_COVERAGE")] == ["inbox", "archive"]


@pytest.mark.clause("CP-546")
def test_every_gap_names_the_parent_that_reports_it(written: Any) -> None:
    """With failures in both lanes, each gap belongs to just one report."""
    transcript = walked(written(SCRIPTED, "MIX"), inbox=[("m", "gap")], archive=[("m", "gap"), ("n", "gap")])
    gaps = [(gap["parent_stream"], gap["record_key"]) for gap in of_type(transcript, "DETAIL_GAP")]
    assert gaps == [("inbox", "m"), ("archive", "m"), ("archive", "n")]
    assert of_type(transcript, "DETAIL_GAP")[0] == {
        "type": "DETAIL_GAP",
        "stream": "bodies",
        "parent_stream": "inbox",
        "record_key": "m",
        "reason": "temporary_unavailable",
        "retryable": True,
        "detail_locator": {"id": "m"},
    }


@pytest.mark.clause("CP-515")
def test_a_lane_that_is_left_by_an_error_reports_nothing(written: Any) -> None:
    """The parent did not settle: its stream is named as failed, and the other parent reports."""
    transcript = walked(written(SCRIPTED, "MIX"), inbox=[("a", "fetched"), ("b", "abort")], archive=[("a", "fetched")])
    assert [report["state_stream"] for report in of_type(transcript, "DETAIL_COVERAGE")] == ["archive"]
    assert [skip["stream"] for skip in of_type(transcript, "SKIP_RESULT")] == ["inbox"]


@pytest.mark.clause("CP-515")
def test_a_detail_outside_the_scope_is_not_required(written: Any) -> None:
    """It is neither hydrated without a record, nor left to withhold the parent for ever."""
    scope = ["inbox", {"name": "bodies", "resources": ["a"]}]
    transcript = walked(written(SCRIPTED, "MIX"), scope, inbox=[("a", "fetched"), ("b", "fetched"), ("c", "left")])
    (report,) = of_type(transcript, "DETAIL_COVERAGE")
    assert (report["required_keys"], report["hydrated_keys"]) == (["a", "c"], ["a"])
    assert [record["key"] for record in of_type(transcript, "RECORD")] == ["a"]


@pytest.mark.clause("CP-530")
@pytest.mark.parametrize(
    ("manifest", "parent", "child"),
    [
        ("RIDER", "threads", "stamps"),
        ("RIDER", "notes", "stamps"),
        ("MIX", "people", "bodies"),
        ("MIX", "inbox", "labels"),
    ],
)
def test_a_lane_needs_a_declared_parent(written: Any, manifest: str, parent: str, child: str) -> None:
    """No coverage is sent for a state_stream child, nor for a parent that the manifest does not name."""
    transcript = collect(written(f"@stream({parent!r})\ndef f(s):\n    s.details({child!r}).close()", manifest))
    assert [message["type"] for message in transcript.messages] == ["SKIP_RESULT", "DONE"]
    assert "does not declare" in transcript.stderr


@pytest.mark.clause("CP-516")
@pytest.mark.parametrize(
    "call",
    ["s.details('bodies')", "lane.require('x')", "lane.emit({'id': 'x'})", "lane.gap('x', 'y')"],
)
def test_nothing_follows_the_report(written: Any, call: str) -> None:
    """A lane opened for each page, or used after its end, would contradict the report: the SDK raises instead."""
    code = f"@stream('inbox')\ndef f(s):\n    with s.details('bodies') as lane: pass\n    lane.close()\n    {call}"
    transcript = collect(written(code, "MIX"))
    assert [message["type"] for message in transcript.messages] == ["DETAIL_COVERAGE", "SKIP_RESULT", "DONE"]
    assert "coverage" in transcript.stderr


@pytest.mark.clause("CP-515")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("lane.gap('x', 'y')", "lane.emit({'id': 'x'})"),
        ("lane.emit({'id': 'x'})", "lane.gap('x', 'y')"),
    ],
)
def test_a_key_has_one_outcome(written: Any, first: str, second: str) -> None:
    """A detail is not both there and missing; the first word stands."""
    code = f"@stream('inbox')\ndef f(s):\n    with s.details('bodies') as lane:\n        {first}\n        {second}"
    transcript = collect(written(code, "MIX"))
    assert "Misuse" in transcript.stderr
    assert of_type(transcript, "DETAIL_COVERAGE") == []
    assert len(of_type(transcript, "RECORD") + of_type(transcript, "DETAIL_GAP")) <= 1


def test_a_compound_key_is_reported_in_its_canonical_form(written: Any) -> None:
    """A record's array and a report's text name one detail."""
    rows = [
        {"name": "inbox"},
        {
            "name": "bodies",
            "primary_key": ["u", "n"],
            "parent_streams": ["inbox"],
            "coverage_strategy": "parent_detail_accounting",
        },
    ]
    code = """
@stream("inbox")
def inbox(s):
    with s.details("bodies") as lane:
        lane.require(["u1", "7"], ["u1", "8"])
        lane.emit({"u": "u1", "n": 7})
        lane.gap(["u1", "8"], "gone")
"""
    transcript = collect(written(code, rows))
    (report,) = of_type(transcript, "DETAIL_COVERAGE")
    assert report["required_keys"] == ['["u1","7"]', '["u1","8"]']
    assert (report["hydrated_keys"], report["gap_keys"]) == (['["u1","7"]'], ['["u1","8"]'])
    assert json.loads(report["hydrated_keys"][0]) == of_type(transcript, "RECORD")[0]["key"]


def test_a_lane_counts_what_it_requires(written: Any) -> None:
    """A key counts once however often it is named, one that the scope leaves out not at all, and no lane is false."""
    code = """
@stream("inbox")
def inbox(s):
    with s.details("bodies") as lane:
        counts = [len(lane), bool(lane)]
        for step in (
            lambda: lane.require("a", "a", "b"),
            lambda: lane.emit({"id": "a"}),
            lambda: lane.emit({"id": "out"}),
            lambda: lane.require("out"),
            lambda: lane.emit({"id": "out"}),
            lambda: lane.gap("c", "gone"),
            lambda: lane.require("d"),
        ):
            step()
            counts.append(len(lane))
    s.progress(str([*counts, len(lane)]))
"""
    scope = ["inbox", {"name": "bodies", "resources": ["a", "b", "c", "d"]}]
    transcript = collect(written(code, "MIX"), streams=scope)
    (progress,) = of_type(transcript, "PROGRESS")
    assert progress["message"] == str([0, True, 2, 2, 2, 3, 2, 3, 4, 4])
    (report,) = of_type(transcript, "DETAIL_COVERAGE")
    assert report["required_keys"] == ["a", "b", "c", "d"]


@pytest.mark.clause("CP-515")
def test_an_unannounced_detail_outside_the_scope_is_not_required(written: Any) -> None:
    """`emit` alone names a key only when its record stands on the wire."""
    scope = ["inbox", {"name": "bodies", "resources": ["a"]}]
    walk = [("a", "unannounced"), ("b", "unannounced")]
    (report,) = of_type(walked(written(SCRIPTED, "MIX"), scope, inbox=walk), "DETAIL_COVERAGE")
    assert (report["required_keys"], report["hydrated_keys"]) == (["a"], ["a"])
