"""Every refusal that the house raises is one of the table, and tells no more than its row lets it."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from headwater.codes import ALWAYS, CODES, INTEGRATED, NextAction, Stage

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "headwater"
WORDS = {"stage", "next_action", "safe", "command"}
CLOSED = {"stage": set(get_args(Stage)), "next_action": set(get_args(NextAction))}


def refusals() -> Iterator[tuple[str, ast.Call]]:
    """Yield each call of `refuse`, with where it stands."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "refuse":
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", node


def texts(node: ast.expr | None) -> Iterator[str]:
    """Yield the texts that an expression may be: itself, or either side of a choice."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from texts(node.body)
        yield from texts(node.orelse)


@pytest.mark.clause("CLI-003", "CLI-916", "CLI-931")
def test_a_refusal_tells_only_the_members_that_its_code_has():
    """A member beside the table would stop the command inside; here it is found before."""
    wrong = []
    for place, call in refusals():
        members = {keyword.arg for keyword in call.keywords if keyword.arg is not None}
        members -= WORDS | ALWAYS | INTEGRATED
        wrong += [
            f"{place}: {code} has no {name}"
            for code in texts(call.args[0] if call.args else None)
            for name in sorted(members - set(CODES[code].members.split()))
        ]
    assert wrong == []


@pytest.mark.clause("CLI-003", "CLI-916")
@pytest.mark.parametrize("word", sorted(CLOSED))
def test_a_stage_or_next_action_is_one_of_the_closed_set(word):
    """What is said in place of the row's own is of the same vocabulary."""
    said = {
        (place, text)
        for place, call in refusals()
        for key in call.keywords
        if key.arg == word
        for text in texts(key.value)
    }
    assert {(place, text) for place, text in said if text not in CLOSED[word]} == set()


@pytest.mark.clause("CLI-918")
def test_only_what_a_provider_answered_has_the_stage_dispatch():
    """The codes that begin at dispatch are the provider's own failures."""
    assert {code for code, row in CODES.items() if row.stage == "dispatch"} == {"service_failure"}


def test_every_code_is_on_the_page():
    """What a program may meet is written down, each code with its kind, its exit and its next action."""
    page = (ROOT / "docs" / "reference" / "failures.md").read_text("utf-8")
    exits = {"usage": 2, "operational": 1, "interrupted": 130}
    missing = [
        code
        for code, row in CODES.items()
        if f"| `{code}` | {exits[row.kind]} | {row.stage} | {row.next_action} |" not in page
    ]
    assert missing == []
