"""A detail that is gone for good lets its parent's cursor commit, if the provider said so and both sides opted in."""

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "guests" / "tombs"
CAUSES = [
    {"status": 404},
    {"id": "p1", "age_days": 4_000},
    {"id": "p1", "error": "connection reset by peer"},
    {"id": "p1", "attempts": 5, "gave_up": True},
    {"id": "p1", "status": 403, "error": "forbidden"},
]


def collected(headwater: Any, said: dict[str, Any]) -> dict[str, Any]:
    """Collect once, and return how the details of the albums were judged."""
    words = ["collect", "tombs/me", "--from", str(FOLDER), "--set", f"said={json.dumps(said)}"]
    assert headwater.type(*words).status == 0
    (report,) = headwater.type("runs", "explain").result["facts"]["coverage"]
    return report


@pytest.mark.clause("CP-558")
def test_a_tombstone_of_the_provider_lets_the_cursor_commit(headwater: Any) -> None:
    """The key is credited, and `runs explain` says so."""
    report = collected(headwater, {"id": "p1", "deleted_at": "2026-04-01T10:00:00Z"})
    assert (report["unaccounted"], report["skipped"]) == ([], 1)
    assert headwater.cursors("tombs/me") == {"albums": {"after": "a1"}}


@pytest.mark.clause("CP-559")
@pytest.mark.parametrize("cause", CAUSES, ids=["status", "age", "transport", "tries", "refusal"])
def test_anything_less_withholds_it_and_the_detail_is_asked_for_again(headwater: Any, cause: dict[str, Any]) -> None:
    """Twice: the second run begins where the first did, and requires the key again."""
    for _ in range(2):
        report = collected(headwater, cause)
        assert (report["required"], report["unaccounted"]) == (1, ["p1"])
        assert headwater.cursors("tombs/me") == {}
