"""The scenarios that are played are those of the page, each of them once: what is not played proves nothing."""

import re
from collections import Counter
from pathlib import Path

import pytest
from vectors.scenarios import EACH, MARKS, ROWS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "conformance" / "collection-vectors.md").read_text(encoding="utf-8")
BY_A_STORE = {39, 40}


def written() -> list[tuple[int, str, str, int]]:
    """Return each row of the page: its number, its manifest, its status, and how many fixtures it names."""
    rows = [[cell.strip() for cell in line.split(" | ")] for line in re.findall(r"^\| (\d\d \| .*) \|$", PAGE, re.M)]
    return [
        (int(number), run.replace(",", " ").split()[0], status, 2 if "same with DONE" in basis else 1)
        for number, run, *_, status, basis in rows
    ]


@pytest.mark.clause("CLI-966")
def test_each_row_of_the_page_is_played_as_often_as_it_names_a_fixture():
    """Those that need a store that fails are tests with their numbers as names."""
    page = written()
    assert Counter(number for number, *_ in page) == Counter(range(1, 41))
    named = {row[:3]: row[3] for row in page if row[0] not in BY_A_STORE}
    assert Counter((row.number, row.manifest, row.status) for row in ROWS) == Counter(named)
    played = (ROOT / "tests" / "vectors" / "test_real_runs.py").read_text(encoding="utf-8")
    assert {int(number) for number in re.findall(r"^def test_row_(\d+)_", played, re.M)} >= BY_A_STORE


@pytest.mark.clause("CLI-966")
def test_what_is_selected_to_be_played_is_not_empty_and_each_has_a_name_of_its_own():
    """A clause is claimed by the scenario of its number, and there is one."""
    names = [one.id for one in EACH]
    assert len(names) == len(set(names)) == len(ROWS) > 0
    assert all(row.script and row.status for row in ROWS)
    assert MARKS.keys() <= {row.number for row in ROWS}
