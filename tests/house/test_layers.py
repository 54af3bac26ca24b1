"""The layers hold, and each contract bites where somebody breaks it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# A line that breaks each contract, and the file that it is planted in.
PLANTED = {
    "Imports fall downwards": ("manifest/graph.py", "import headwater.collect.plan"),
    "A verb does no I/O": ("collect/verdict.py", "import socket"),
    "Language is spoken without I/O": ("wire/encode.py", "import socket"),
    "The SDK sees language and ground": ("sdk/outcome.py", "import headwater.collect.verdict"),
    "A bundled connector imports the SDK": ("connectors/demo/connector.py", "import headwater.host"),
    "Faces reach integrations through the common service": ("cli/integrations.py", "import headwater.adapters.hosting"),
    "Nobody leans on the SDK or connectors": ("process/environment.py", "import headwater.sdk"),
}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    words = [str(program), "--config", str(folder / ".importlinter"), "--no-cache"]
    environment = {"PYTHONPATH": str(folder / "src"), "PATH": "/usr/bin:/bin"}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=100)


def test_every_contract_holds():
    """The house as it is keeps its layers."""
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout


@pytest.mark.clause("INT-420")
@pytest.mark.parametrize(("contract", "planted"), PLANTED.items())
def test_a_planted_import_breaks_its_contract(contract, planted, tmp_path):
    """A contract that nothing can break guards nothing."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / ".importlinter", tmp_path)
    file = tmp_path / "src" / "headwater" / planted[0]
    file.write_text(f"{file.read_text()}\n\n{planted[1]}\n")
    result = lint(tmp_path)
    assert any(contract in line and "BROKEN" in line for line in result.stdout.splitlines()), result.stdout
