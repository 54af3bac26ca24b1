"""The forty scenarios of conformance/collection-vectors.md as data: played over the session, and by a real child.

39 needs a store that fails and 40 a host that dies: those two stand in the tests of real runs.
"""

from typing import Any, NamedTuple

import pytest

from headwater.collect.plan import Authority

mark = pytest.mark


class Row(NamedTuple):
    """One scenario; `play` holds what is unusual about the run, `committed` and `withheld` are as in the table."""

    number: int
    manifest: str
    script: str
    terminal: str
    committed: str
    withheld: str
    status: str
    play: dict[str, Any] | None = None


INBOX = "S inbox=i1; S archive=a1; S people=p1"
BOTH = "S inbox=i1; S archive=a1"
ALBUMS = "S albums=a1; S notes=n1"
THREE = "R alpha 1; R alpha 2; R alpha 3"

# fmt: off
ROWS = [
    Row(1, "FLAT", "S alpha=a1; S alpha=a2; S beta=b1", "ok", "alpha=a2 beta=b1", "", "succeeded"),
    Row(2, "FLAT", "S alpha=a1; S beta=b1", "failed[auth_failed]", "",
        "alpha:connector_failed beta:connector_failed", "failed"),
    Row(3, "FLAT", "S alpha=a1; S beta=b1; F beta; S gamma=g1", "scf", "alpha=a1 gamma=g1",
        "beta:stream_failed", "failed"),
    Row(4, "FLAT", "S alpha=a1", "scf", "", "alpha:connector_failed", "failed"),
    Row(5, "FLAT", "S alpha=a1; F beta", "failed", "", "alpha:connector_failed", "failed"),
    Row(6, "FLAT", "S alpha=a1; F –", "scf", "", "alpha:connector_failed", "failed"),
    Row(7, "FLAT", "S alpha=a1; F gamma", "scf", "", "alpha:connector_failed", "failed", {"scope": "alpha beta"}),
    Row(8, "RIDER", "S threads=t1; S notes=n1; F stamps", "scf", "notes=n1",
        "threads:covered_stream_failed", "failed"),
    Row(9, "MIX", f"{INBOX}; C bodies→inbox [m1 ¦ m1]; F bodies", "scf", "people=p1",
        "inbox:covered_stream_failed archive:covered_stream_failed", "failed"),
    Row(10, "MIX", f"{INBOX}; C bodies→inbox [m1 ¦ m1]; C bodies→archive [m2 ¦ m2]; F inbox", "scf",
        "archive=a1 people=p1", "inbox:stream_failed", "failed"),
    Row(11, "MIX", f"{INBOX}; C bodies→inbox [m1 ¦ m1]; C bodies→archive [m2 ¦ m2]; F labels; F people", "scf",
        "archive=a1", "inbox:covered_stream_failed people:stream_failed", "failed"),
    Row(12, "SOLO", "S albums=a1; C photos→albums [p1 p2 ¦ p1 p2]; S notes=n1", "ok", "albums=a1 notes=n1", "",
        "succeeded"),
    Row(13, "SOLO", "S albums=a1; C photos→albums [p1 p2 ¦ p1]; S notes=n1", "ok", "notes=n1",
        "albums:unaccounted[p2]", "succeeded"),
    Row(14, "DUAL", f"{BOTH}; C bodies→inbox [m1 ¦ m1]", "ok", "inbox=i1", "archive:no_report", "succeeded"),
    Row(15, "DUAL", BOTH, "ok", "inbox=i1 archive=a1", "", "succeeded", {"scope": "inbox archive"}),
    Row(16, "DUAL", "S inbox=i1; C bodies→inbox [m1 ¦ m1]", "ok", "inbox=i1", "", "succeeded"),
    Row(17, "DUAL", f"{BOTH}; C bodies→inbox [m1 ¦ m1]; C bodies→archive [∅ ¦ ∅]", "ok", "inbox=i1 archive=a1", "",
        "succeeded"),
    Row(18, "TWINS", "S albums=a1; C photos→albums [p1 ¦ p1]; C faces→albums [f1 ¦ ∅]", "ok", "",
        "albums:unaccounted[f1]", "succeeded"),
    Row(19, "MIX", f"{INBOX}; C bodies→inbox [m1 m2 ¦ m1]; C bodies→archive [m3 ¦ m3]; F people", "scf",
        "archive=a1", "people:stream_failed inbox:unaccounted[m2]", "failed"),
    Row(20, "SOLO", "S albums=a1; G photos→albums p2; C photos→albums [p1 p2 ¦ p1 ¦ gap p2]; S notes=n1", "ok",
        "albums=a1 notes=n1", "", "succeeded"),
    Row(21, "SOLO", "S albums=a1; C photos→albums [p1 p2 ¦ p1 ¦ gap p2]; S notes=n1", "ok", "notes=n1",
        "albums:unaccounted[p2]", "succeeded"),
    Row(22, "SOLO", "S albums=a1; G photos→albums p2; C photos→albums [p1 p2 ¦ p1]; S notes=n1", "ok", "notes=n1",
        "albums:unaccounted[p2]", "succeeded"),
    Row(23, "SOLO", "S albums=a1; G photos→– p2; C photos→albums [p1 p2 ¦ p1 ¦ gap p2]; S notes=n1", "ok",
        "albums=a1 notes=n1", "", "succeeded"),
    Row(24, "DUAL", f"{BOTH}; G bodies→– m1; C bodies→inbox [m1 ¦ ∅ ¦ gap m1]; C bodies→archive [m2 ¦ m2]", "ok",
        "archive=a1", "inbox:unaccounted[m1]", "succeeded"),
    Row(25, "DUAL", f"{BOTH}; G bodies→inbox m1; C bodies→inbox [m1 ¦ ∅ ¦ gap m1]; C bodies→archive [m1 ¦ m1]", "ok",
        "inbox=i1 archive=a1", "", "succeeded"),
    Row(26, "DUAL",
        f"{BOTH}; G bodies→archive m1; C bodies→inbox [m1 ¦ ∅ ¦ gap m1]; C bodies→archive [m1 ¦ ∅ ¦ gap m1]", "ok",
        "archive=a1", "inbox:unaccounted[m1]", "succeeded"),
    Row(27, "SOLO", 'S albums=a1; G photos→albums 8; C photos→albums ["7" "8" ¦ 7 ¦ gap "8"]', "ok", "albums=a1", "",
        "succeeded"),
    Row(28, "SOLO", f"{ALBUMS}; C photos→albums [p1 ¦ ∅ ¦ optional p1]", "ok", "notes=n1", "albums:unaccounted[p1]",
        "succeeded"),
    Row(29, "RIDER", "S threads=t1; S notes=n1; C stamps→threads [s1 ¦ s1]", "ok", "",
        "threads:coverage_of_state_stream notes:coverage_of_state_stream", "failed"),
    Row(30, "MIX", "S inbox=i1; S people=p1; C bodies→people [m1 ¦ m1]", "ok", "",
        "inbox:coverage_parent people:coverage_parent", "failed"),
    Row(31, "RIDER", "S threads=t1; S notes=n1; E stamps 10=6+1+2+1", "ok", "threads=t1 notes=n1", "", "succeeded"),
    Row(32, "MIX", f"{INBOX}; E labels 5=5+0+0+0; C bodies→inbox [m1 m2 ¦ m1]; C bodies→archive [m3 ¦ m3]", "ok",
        "archive=a1 people=p1", "inbox:unaccounted[m2]", "succeeded"),
    Row(33, "FLAT", f"S alpha=a1; F beta; {THREE}", "scf", "", "alpha:wrong_count", "failed", {"off": -1}),
    Row(34, "FLAT", "S alpha=a1; F beta", "scf", "", "alpha:exit_disagrees", "failed", {"exit_code": 0}),
    Row(35, "FLAT", "S alpha=a1; F beta", "–", "", "alpha:no_done", "failed", {"exit_code": 1}),
    Row(36, "FLAT", "S alpha=a1; F beta", "scf", "", "alpha:cancelled", "cancelled", {"cancel": True}),
    Row(36, "FLAT", "S alpha=a1; F beta", "ok", "", "alpha:cancelled", "cancelled", {"cancel": True}),
    Row(37, "FLAT", "S alpha=a1", "ok", "", "alpha:single_use", "succeeded", {"authority": Authority(single_use=True)}),
    Row(38, "FLAT", "S alpha=a1; F beta; S beta=b1", "scf", "alpha=a1", "beta:stream_failed", "failed",
        {"authority": Authority("G1")}),
]
# fmt: on

MARKS = {
    1: mark.clause("CP-413", "CP-519"),
    2: mark.clause("CP-802"),
    3: mark.clause("CP-434", "CP-440", "CP-441", "CP-800"),
    4: mark.clause("CP-801"),
    5: mark.clause("CP-802"),
    6: mark.clause("CP-804"),
    7: mark.clause("CP-805"),
    8: mark.clause("CP-432"),
    9: mark.clause("CP-433"),
    11: mark.clause("CP-436"),
    13: mark.clause("CP-437", "CP-445", "CP-510"),
    14: mark.clause("CP-438"),
    15: mark.clause("CP-442"),
    16: mark.clause("CP-443"),
    17: mark.clause("CP-511"),
    18: mark.clause("CP-444"),
    19: mark.clause("CP-439"),
    21: mark.clause("CP-542"),
    22: mark.clause("CP-543"),
    23: mark.clause("CP-538"),
    24: mark.clause("CP-539"),
    25: mark.clause("CP-541"),
    26: mark.clause("CP-540"),
    27: mark.clause("CP-512"),
    28: mark.clause("CP-556"),
    29: mark.clause("CP-525"),
    30: mark.clause("CP-526"),
    31: mark.clause("CP-600", "CP-625"),
    32: mark.clause("CP-626"),
    33: mark.clause("CP-220", "CP-808"),
    34: mark.clause("CP-809"),
    35: mark.clause("CP-209"),
    36: mark.clause("CP-480", "CP-482"),
    37: mark.clause("CP-404"),
}


EACH = [
    pytest.param(row, id=f"{row.number:02}-{row.manifest}-{row.terminal}", marks=MARKS.get(row.number, ()))
    for row in ROWS
]
