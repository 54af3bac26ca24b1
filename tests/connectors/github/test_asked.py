"""A GitHub account that is asked: pages by number, from answers of the public description's shape."""

import json
from typing import Any

import pytest
from connectors.connecting import configure, connect
from connectors.github.account import Account


@pytest.mark.clause("CLI-690")
def test_issues_are_walked_by_the_number_of_the_page(account: Account, headwater: Any) -> None:
    """Five issues by two: the third page is short, and the last."""
    configure(headwater.place)
    garden = account.world.add_repository("garden")
    for number in range(5):
        account.world.add_issue(garden, f"Water bed {number}")
    connect(headwater, "github", account.github.url, "token", {"token": account.world.token})
    out = headwater.place / "issues"
    given = json.dumps({"owner": account.world.account["login"], "repo": "garden", "per_page": 2})
    words = ["invoke", "github", "issues.list", "--walk", "--out", str(out), "--fields", "title", "--input-json", given]
    told = headwater.type(*words).result
    assert (told["complete"], told["end"], told["pages"], told["records"]) == (True, "short_page", 3, 5)
    titles = {json.loads(line)["title"] for line in out.read_text().splitlines()}
    assert titles == {f"Water bed {number}" for number in range(5)}
