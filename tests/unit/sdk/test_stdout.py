"""stdout belongs to the protocol from the import of the SDK on, and to nobody that the connector starts."""

import json
from pathlib import Path
from typing import Any

from headwater.sdk.testing import collect

EARLY = """
import os
print("printed early", flush=True)
os.write(1, b"written early\\n")
"""


def folder(tmp_path: Path, code: str) -> Path:
    """Write a connector whose code is all its own."""
    (tmp_path / "manifest.json").write_text(json.dumps({"connector_id": "x", "streams": [{"name": "alpha"}]}))
    (tmp_path / "connector.py").write_text(code)
    return tmp_path


def test_what_is_printed_before_the_run_goes_to_stderr(tmp_path: Path) -> None:
    """A library that greets at import does not break the protocol."""
    code = f"import headwater.sdk\n{EARLY}connector = headwater.sdk.Connector()\nconnector.run()"
    transcript = collect(folder(tmp_path, code))
    assert [message["type"] for message in transcript.messages] == ["SKIP_RESULT", "DONE"]
    assert "printed early" in transcript.stderr
    assert "written early" in transcript.stderr


def test_a_print_that_was_buffered_before_the_import_goes_to_stderr(tmp_path: Path) -> None:
    """It is still in Python's buffer when stdout is taken."""
    code = "print('buffered')\nfrom headwater.sdk import Connector\nConnector().run()"
    transcript = collect(folder(tmp_path, code))
    assert transcript.messages[-1]["type"] == "DONE"


def test_a_program_of_the_connectors_keeps_its_own_stdout(tmp_path: Path) -> None:
    """A tool that imports the SDK too is no connector: what it prints is read by the connector that started it."""
    code = """
import subprocess, sys
from headwater.sdk import Connector
connector = Connector()
@connector.stream("alpha")
def alpha(s):
    words = [sys.executable, "-c", "import headwater.sdk; print('from the tool')"]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    s.emit({"text": text.strip()}, key="1")
connector.run()
"""
    assert collect(folder(tmp_path, code)).records("alpha") == [{"text": "from the tool"}]


def test_an_import_elsewhere_takes_nothing(tmp_path: Path, capfd: Any) -> None:
    """A test or a shell that imports the SDK keeps its stdout."""
    import subprocess
    import sys

    subprocess.run([sys.executable, "-c", "import headwater.sdk; print('mine')"], env={}, check=True)
    assert capfd.readouterr().out == "mine\n"
