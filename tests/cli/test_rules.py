"""The rules over results bite, and the examples of the pages keep them."""

import json
import re
from pathlib import Path

import pytest
from journeys.rules import broken

DOCS = Path(__file__).parents[2] / "docs"
ACQUISITION = {"acquisition": "a", "expires_at_ms": 2}
WALK = {"pages": 1, "records": 1, "out": "-"}


@pytest.mark.clause("CLI-965")
@pytest.mark.parametrize(
    "result",
    [
        {"operations": [], "source": "cached", "stale": False},
        {"deep": [{"source": "cached"}]},
        {**ACQUISITION, "state": "failed"},
        {**ACQUISITION, "state": "pending", "reason": "expired"},
        {**ACQUISITION, "state": "completed"},
        {**ACQUISITION, "state": "failed", "reason": "expired", "connection": "c"},
        {"connections": [], "observed_at_ms": 5, "stale": False},
        {"connections": [], "observed_at_ms": 5, "valid_until_ms": 5, "stale": False},
        {**WALK, "complete": True},
        {**WALK, "complete": True, "end": "e", "stopped": "status"},
        {**WALK, "complete": False, "stopped": "max_pages"},
        {**WALK, "complete": False, "stopped": "no_position", "resume": {}},
        {"missing": []},
    ],
)
def test_a_result_that_its_shape_admits_may_break_a_rule(result):
    assert broken(result) != []


@pytest.mark.clause("CLI-965")
def test_what_is_as_it_has_to_be_breaks_none():
    good = [
        {"source": "cached", "stale": True},
        {**ACQUISITION, "state": "completed", "connection": "c"},
        {**ACQUISITION, "state": "failed", "reason": "rejected"},
        {"connections": [], "observed_at_ms": 5, "valid_until_ms": 6, "stale": False},
        {**WALK, "complete": True, "end": "e", "missing": ["x"]},
        {**WALK, "complete": False, "stopped": "write", "resume": {}},
    ]
    assert [broken(one) for one in good] == [[]] * len(good)


def test_the_examples_of_the_pages_break_none():
    """Each JSON that a page shows, envelope or not."""
    shown = 0
    for page in DOCS.rglob("*.md"):
        for line in re.findall(r"^\s*(\{.*\})\s*$", page.read_text("utf-8"), re.MULTILINE):
            try:
                value = json.loads(line)
            except ValueError:
                continue
            shown += 1
            assert broken(value) == [], page
    assert shown > 10
