"""A check ends: its runs are bounded in lines and questions, its packs in time, and what was cut short is said."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headwater import limits
from headwater.catalog.folders import folder_at
from headwater.checking import Report, check
from headwater.checking.findings import Finding

FOLDER = Path(__file__).parents[2] / "guests" / "sins"


def checked(*packs: str, **options: Any) -> Report:
    """Check the guest without answers."""
    return asyncio.run(check(folder_at(FOLDER), options, None, packs=packs, seed=7))


def failed(report: Report, clause: str) -> Finding:
    """Return the failure of a clause."""
    return next(finding for finding in report.failures if finding.clause == clause)


def test_a_run_that_writes_too_much_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told to point at a smaller source, and nothing is compared with it."""
    monkeypatch.setattr(limits, "CHECK_LINES", 5)
    report = checked("slow")
    assert "more than 5 lines; check it against a smaller source" in failed(report, "CP-204").seen
    assert report.left_out == {"slow": "The whole run did not succeed."}
    assert not report.conforms


def test_a_pack_that_takes_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing failed, and still the connector does not conform: what was asked was not seen."""
    monkeypatch.setattr(limits, "CHECK_PACK_SECONDS", 0.01)
    report = checked("slow", "start")
    assert report.failures == []
    assert report.left_out.keys() == {"slow", "start"}
    assert not report.conforms


def test_an_asking_connector_without_answers_is_told_so() -> None:
    """The reason is in what is missing, and not in the connector."""
    report = checked("otp", asks=True)
    seen = failed(report, "CP-204").seen
    assert "Its last words: There is no code." in seen
    assert "neither fixtures/answers.json nor --answer-file" in seen


def test_a_pack_that_is_named_twice_is_run_once() -> None:
    """And the whole run before it: two runs in all."""
    assert checked("determinism", "determinism").runs == 2
