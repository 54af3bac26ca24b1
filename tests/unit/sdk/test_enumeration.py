"""What a walk found, and what became of it: counted where the source lists it, told once, and never made up."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.sdk.testing import collect

# A walk that is given in the options: windows of keys, and what becomes of each key.
SCRIPTED = """
@stream("threads")
def threads(s):
    plan = s.run.options
    if plan.get("skips"):
        return
    with s.enumeration("stamps") as walk:
        for window in plan["windows"]:
            walk.consider(*[key for key, _ in window])
            for key, outcome in window:
                if outcome == "emitted":
                    walk.emit({"id": key})
                elif outcome == "unchanged":
                    walk.unchanged(key)
                elif outcome == "gapped":
                    walk.gap(key, "later", locator={"id": key})
                elif outcome == "fails":
                    raise ValueError
    s.save({"n": 1})
"""
OUTCOMES = st.sampled_from(["emitted", "unchanged", "gapped", "dropped", "fails"])


def evidence(transcript: Any) -> list[dict[str, Any]]:
    """Return the STREAM_EVIDENCE messages."""
    return [message for message in transcript.messages if message["type"] == "STREAM_EVIDENCE"]


def walked(folder: Path, *windows: list[tuple[str, str]], **how: Any) -> Any:
    """Run the scripted walk."""
    return collect(folder, options={"windows": windows}, **how)


def expected(windows: list[list[tuple[str, str]]]) -> tuple[set[str], dict[str, str], bool]:
    """Say what a walk lists, what becomes of each key, and whether it fails: by itself, or by a second outcome."""
    listed: set[str] = set()
    known: dict[str, str] = {}
    for window in windows:
        listed |= {key for key, _ in window}
        for key, outcome in window:
            if outcome == "fails" or (outcome != "dropped" and known.get(key, outcome) != outcome):
                return listed, known, True
            if outcome != "dropped":
                known[key] = outcome
    return listed, known, False


@pytest.mark.clause("CP-636", "CP-637")
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(windows=st.lists(st.lists(st.tuples(st.sampled_from("abcdefgh"), OUTCOMES), max_size=4), max_size=3))
def test_every_key_has_one_outcome(written: Callable[..., Path], windows: list[list[tuple[str, str]]]) -> None:
    """Whatever happens on the way, each key that was listed is in one count, and the counts are what the wire shows."""
    listed, known, failed = expected(windows)
    transcript = walked(written(SCRIPTED, "RIDER"), *windows)
    if not windows:
        assert evidence(transcript) == []
        return
    (message,) = evidence(transcript)
    counts = Counter(known.values())
    assert message["considered"] == len(listed) == sum(message["outcomes"].values())
    assert message["outcomes"] == {
        **{name: counts[name] for name in ("emitted", "unchanged", "gapped")},
        "unaccounted": len(listed) - len(known),
    }
    kinds = Counter(message["type"] for message in transcript.messages)
    assert kinds["RECORD"] >= counts["emitted"]
    assert kinds["DETAIL_GAP"] >= counts["gapped"]
    assert transcript.exit_status == int(failed)


@pytest.mark.clause("CP-636")
def test_a_key_that_is_lost_on_the_way_is_unaccounted(written: Any) -> None:
    """The count is taken from the list: what is dropped between list and record still stands in it."""
    folder = written(SCRIPTED, "RIDER")
    (message,) = evidence(walked(folder, [("a", "emitted"), ("b", "dropped"), ("c", "emitted")]))
    assert message["considered"] == 3
    assert message["outcomes"] == {"emitted": 2, "unchanged": 0, "gapped": 0, "unaccounted": 1}


@pytest.mark.clause("CP-635")
def test_a_walk_that_never_ran_says_nothing(written: Any) -> None:
    """No line, not one of zeros; neither where the lane was not opened, nor where it was and nothing was listed."""
    folder = written(SCRIPTED, "RIDER")
    assert evidence(collect(folder, options={"skips": True})) == []
    assert evidence(walked(folder)) == []


@pytest.mark.clause("CP-635")
def test_a_list_that_is_empty_is_told(written: Any) -> None:
    """It was walked: one line, and all of it zero."""
    (message,) = evidence(walked(written(SCRIPTED, "RIDER"), []))
    assert message["considered"] == 0
    assert set(message["outcomes"].values()) == {0}


@pytest.mark.clause("CP-638")
def test_evidence_has_its_members_and_no_others(written: Any) -> None:
    """No parent and no keys: what it says is counts."""
    (message,) = evidence(walked(written(SCRIPTED, "RIDER"), [("a", "emitted")]))
    assert message == {
        "type": "STREAM_EVIDENCE",
        "reference_only": True,
        "stream": "stamps",
        "considered": 1,
        "outcomes": {"emitted": 1, "unchanged": 0, "gapped": 0, "unaccounted": 0},
    }


@pytest.mark.clause("CP-634")
@pytest.mark.parametrize("between", ["", "    first.close()\n"])
def test_a_second_enumeration_in_a_run_is_refused(written: Any, between: str) -> None:
    """The second one raises, whether the first was closed or not; at most one line is on stdout."""
    code = f"""
@stream("threads")
def threads(s):
    first = s.enumeration("stamps")
    first.consider("a")
{between}    try:
        s.enumeration("stamps")
    except Misuse:
        s.emit({{"id": "refused"}})
    first.close()
    first.close()
"""
    transcript = collect(written(code, "RIDER"))
    assert len(evidence(transcript)) == 1
    assert transcript.records("threads") == [{"id": "refused"}]


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("walk.emit({'id': 'z'})", "not considered"),
        ("walk.unchanged('z')", "not considered"),
        ("walk.gap('z', 'later')", "not considered"),
        ("walk.emit({'id': 'a'}); walk.unchanged('a')", "fetched before"),
        ("walk.unchanged('a'); walk.gap('a', 'later')", "unchanged before"),
        ("walk.gap('a', 'later'); walk.emit({'id': 'a'})", "a gap before"),
        ("walk.close(); walk.consider('b')", "was sent"),
        ("s.enumeration('notes')", "does not declare threads as its state_stream"),
    ],
)
def test_what_would_make_the_counts_lie_is_refused(written: Any, call: str, why: str) -> None:
    """A key that was not listed, or has its outcome, cannot get one."""
    code = f"""
@stream("threads")
def threads(s):
    walk = s.enumeration("stamps")
    walk.consider("a")
    try:
        {call}
    except Misuse as misuse:
        print(misuse)
"""
    assert why in collect(written(code, "RIDER")).stderr


def test_a_key_that_the_scope_leaves_out_is_not_counted(written: Any) -> None:
    """The run did not ask for it: it is no shortfall."""
    scope = [{"name": "threads"}, {"name": "stamps", "resources": ["a"]}]
    transcript = walked(written(SCRIPTED, "RIDER"), [("a", "emitted"), ("b", "emitted")], streams=scope)
    assert evidence(transcript)[0]["considered"] == 1
