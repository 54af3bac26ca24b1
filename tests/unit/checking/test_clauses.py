"""The table of clauses is the ledger's: its ids, its levels, and a remedy for each."""

import tomllib
from pathlib import Path

import pytest

from headwater.checking.clauses import CLAUSES
from headwater.checking.rules import CLAUSE_OF_CAUSE, CLAUSE_OF_SHAPE

CONFORMANCE = Path(__file__).parents[3] / "conformance"
LEDGER = {
    clause["id"]: clause
    for name in ("collection", "core")
    for clause in tomllib.loads((CONFORMANCE / f"{name}.toml").read_text(encoding="utf-8"))["clause"]
}
ADVICE = {"CP-013"}


@pytest.mark.parametrize("clause", CLAUSES)
def test_a_row_is_of_the_ledger(clause: str) -> None:
    """A level of our own would be a promise that nobody made."""
    assert clause in LEDGER
    expected = "should" if clause in ADVICE else LEDGER[clause]["level"]
    assert CLAUSES[clause].level == expected
    assert CLAUSES[clause].asks.endswith(".")
    assert CLAUSES[clause].remedy.endswith(".")


def test_every_cause_leads_to_a_row() -> None:
    """A violation that is named has a clause that is explained."""
    assert {*CLAUSE_OF_CAUSE.values(), *CLAUSE_OF_SHAPE.values()} <= CLAUSES.keys()
