#!/usr/bin/env python3
"""Print which tests claim which clauses, as Markdown; with --check, fail for a claim of a clause there is not."""

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
UNCLAIMED = "unclaimed.toml"
LEVELS = ("must", "should", "may")


def ledgers() -> dict[str, list[dict[str, str]]]:
    """Return the clauses of each ledger under `conformance/`."""
    files = sorted(path for path in (ROOT / "conformance").glob("*.toml") if path.name != UNCLAIMED)
    return {path.stem: tomllib.loads(path.read_text(encoding="utf-8"))["clause"] for path in files}


def claims() -> dict[str, list[str]]:
    """Return, by clause id, the places of the tests that claim it."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for clause, line in claims_in(path):
            found[clause].append(f"{path.relative_to(ROOT).as_posix()}:{line}")
    return found


def claims_in(path: Path) -> Iterator[tuple[str, int]]:
    """Yield each clause id that a `pytest.mark.clause` in a file names, with its line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.clause"):
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value, argument.lineno


def reasons() -> dict[str, str]:
    """Return, by clause id, why one that could be expected is not claimed."""
    rows = tomllib.loads((ROOT / "conformance" / UNCLAIMED).read_text(encoding="utf-8"))["reason"]
    return {clause: row["why"] for row in rows for clause in row["clauses"]}


def report() -> Iterator[str]:
    """Yield the page, line by line."""
    claimed, why = claims(), reasons()
    yield "# Conformance\n"
    yield "Each clause of the ledgers in `conformance/`, and the tests that claim it. A clause without a test is not"
    yield "claimed, whatever the code does. Made by `scripts/docs`.\n"
    for ledger, clauses in ledgers().items():
        done = [clause for clause in clauses if clause["id"] in claimed]
        yield f"## {ledger}: {len(done)} of {len(clauses)} claimed\n"
        for level in LEVELS:
            of_level = [clause for clause in clauses if clause["level"] == level]
            yield f"- {level}: {sum(clause['id'] in claimed for clause in of_level)} of {len(of_level)}"
        yield ""
        if done:
            yield "| Clause | Level | What it asks | Tests |\n|---|---|---|---|"
        for clause in done:
            places = ", ".join(f"`{place}`" for place in claimed[clause["id"]][:4])
            yield f"| {clause['id']} | {clause['level']} | {clause['text'].replace('|', '/')} | {places} |"
        yield ""
        if left := [clause for clause in clauses if clause["id"] in why]:
            yield "Not claimed, and why:\n"
            yield "| Clause | Level | What it asks | Why not |\n|---|---|---|---|"
        for clause in left:
            text = clause["text"].replace("|", "/")
            yield f"| {clause['id']} | {clause['level']} | {text} | {why[clause['id']]} |"
        if left:
            yield ""


def unknown() -> list[str]:
    """Return the claims of clauses that no ledger has."""
    known = {clause["id"] for clauses in ledgers().values() for clause in clauses}
    claimed = claims()
    wrong = [
        f"{place}: no clause {clause}" for clause, places in claimed.items() for place in places if clause not in known
    ]
    wrong += [
        f"{UNCLAIMED}: {clause} is claimed, or there is none"
        for clause in reasons()
        if clause in claimed or clause not in known
    ]
    return wrong


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit("\n".join(unknown()) or 0)
    sys.stdout.write("\n".join(report()).rstrip() + "\n")
