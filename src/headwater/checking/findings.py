"""Findings: what a check says about one clause."""

from dataclasses import dataclass
from typing import Literal

from headwater.checking.clauses import CLAUSES, Clause

Mark = Literal["pass", "fail", "not applicable"]


@dataclass(frozen=True)
class Finding:
    """What the trials of a pack show about one clause.

    `seen` is the evidence in a sentence: for `not applicable` it says why. `line` is the line of the connector's
    stdout in that run, counted from 1, where there is one to point at. `remedy` is what to do, where it is not the
    clause's own.
    """

    clause: str
    mark: Mark
    pack: str
    seen: str = ""
    line: int | None = None
    remedy: str = ""

    @property
    def to_do(self) -> str:
        """The one thing to do."""
        return self.remedy or self.row.remedy

    @property
    def row(self) -> Clause:
        """What the clause asks, its level, and what to do."""
        return CLAUSES[self.clause]

    @property
    def is_serious(self) -> bool:
        """Whether it keeps the connector from conforming."""
        return self.mark == "fail" and self.row.level == "must"


def judged(clause: str, pack: str, fault: str, seen: str = "", *, line: int | None = None, remedy: str = "") -> Finding:
    """Make a finding that fails with `fault`, or passes where there is none."""
    return Finding(clause, "fail", pack, fault, line, remedy) if fault else Finding(clause, "pass", pack, seen)


def inapplicable(pack: str, why: str, *clauses: str) -> list[Finding]:
    """Make the findings of clauses that nothing could show."""
    return [Finding(clause, "not applicable", pack, why) for clause in clauses]
