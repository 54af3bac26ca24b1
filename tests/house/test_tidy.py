"""The small laws of the house, held by reading the source."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "headwater"
FILES = sorted(SOURCE.rglob("*.py"))
OURS = [path for path in FILES if "connectors" not in path.relative_to(SOURCE).parts]
DRAWERS = {"utils", "util", "helpers", "helper", "common", "misc", "shared", "base", "manager", "handler", "processor"}
BROAD_ALLOWED = {
    "cli/main.py",
    "listing/calling.py",
    "owner/daemon.py",
    "sdk/adapter.py",
    "sdk/connector.py",
    "store/served.py",
    "vault/refusals.py",
}


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def calls(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def test_no_file_is_longer_than_500_lines():
    """A room that overflows is cut, not stretched."""
    assert [str(path) for path in FILES if len(path.read_text().splitlines()) > 500] == []


def test_no_function_is_longer_than_60_lines():
    """A function fits on a screen."""
    long = [f"{p.name}:{f.name}" for p in FILES for f in functions(p) if (f.end_lineno or 0) - f.lineno >= 75]
    assert long == []


def test_no_module_is_a_drawer():
    """Every module is named for its subject."""
    assert [path.name for path in FILES if path.stem in DRAWERS or path.parent.name in DRAWERS] == []


@pytest.mark.parametrize("call", ["time.time", "time.sleep", "datetime.now", "uuid4", "uuid.uuid4", "random.random"])
def test_only_the_clock_asks_for_time_and_randomness(call):
    """Everything else is given its time, so that it can be tested."""
    assert [path.name for path in OURS if path.name != "clock.py" and call in set(calls(path))] == []


def test_exceptions_are_caught_broadly_in_named_places_only():
    """A broad except elsewhere would hide what it does not know."""
    broad = {
        path.relative_to(SOURCE).as_posix()
        for path in OURS
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler) and node.type is not None and ast.unparse(node.type) == "Exception"
    }
    assert broad <= BROAD_ALLOWED


def test_the_package_root_imports_nothing():
    """Every connector imports the package: it must not load the store."""
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    assert len(tree.body) == 1


def test_every_package_opens_with_its_nouns():
    """A room says what it owns before anybody reads its files."""
    rooms = [path for path in FILES if path.name == "__init__.py"]
    assert [str(path) for path in rooms if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_help_imports_no_command():
    """`--help` prints a table: no command, no store and no event loop is loaded for it."""
    code = (
        "import sys\nfrom headwater.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'asyncio', 'apsw', 'rich', 'jsonschema_rs', 'headwater.cli.collect', 'headwater.cli.runs'}\n"
        "sys.stderr.write(','.join(sorted(heavy & set(sys.modules))))"
    )
    import subprocess

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.stderr == ""
    assert "Collect now" in result.stdout


def test_every_query_has_a_user_and_every_name_a_query():
    """No dead SQL, and no name without its statement."""
    defined = set(re.findall(r"^-- name: (\w+)", (SOURCE / "store/sqlite/queries.sql").read_text(), re.MULTILINE))
    text = "".join(path.read_text() for path in (SOURCE / "store/sqlite").glob("*.py"))
    assert sorted(name for name in defined if f'"{name}"' not in text) == []


def test_every_claim_is_of_a_clause_that_exists():
    """A misspelt clause would be claimed for nothing."""
    import subprocess

    words = [sys.executable, str(ROOT / "scripts" / "conformance.py"), "--check"]
    result = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
