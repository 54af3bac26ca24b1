"""A new connector: a folder that works before a line of it is changed."""

import json
import re
from pathlib import Path

from headwater.errors import refuse

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")

_CONNECTOR = '''"""Collects {name}."""

from headwater.sdk import Connector

connector = Connector()


@connector.stream("items")
def items(stream):
    first = stream.cursor.get("next", 0)
    for number in range(first, first + 3):
        yield {{"id": str(number), "title": f"Item {{number}}"}}
        stream.save({{"next": number + 1}})


connector.run()
'''

_PACKAGE = """format = "headwater-connector/1"
command = ["python", "connector.py"]
description = "Collects {name}."

[options]
type = "object"

[options.properties]
"""

_README = """# {name}

Three items a run, until you change `connector.py`. `manifest.json` says what a record is.

    headwater connectors check .
    headwater collect {name}/me --from .
"""

_TEST = '''"""The connector, run for real."""

from pathlib import Path

from headwater.sdk.testing import collect

HERE = Path(__file__).parent


def test_a_second_run_goes_on_where_the_first_ended():
    first = collect(HERE)
    second = collect(HERE, state=first.state)
    assert [record["id"] for record in first.records("items")] == ["0", "1", "2"]
    assert [record["id"] for record in second.records("items")] == ["3", "4", "5"]
    assert second.done["status"] == "succeeded"
'''


def scaffold(name: str, into: Path) -> Path:
    """Make the folder of a new connector and return it; an existing folder is refused and left alone."""
    if not _NAME.fullmatch(name):
        raise refuse("invalid_input", "A connector's name is lowercase letters, digits, - and _.")
    folder = into / name
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise refuse("already_exists", "A file or folder of this name exists; it was left as it is.") from error
    (folder / "manifest.json").write_text(json.dumps(_manifest(name), indent=2) + "\n", encoding="utf-8")
    files = {"connector.py": _CONNECTOR, "connector.toml": _PACKAGE, "README.md": _README}
    for file, text in files.items():
        (folder / file).write_text(text.format(name=name), encoding="utf-8")
    (folder / "test_connector.py").write_text(_TEST, encoding="utf-8")
    return folder


def _manifest(name: str) -> dict[str, object]:
    text = {"type": "string"}
    schema = {"type": "object", "properties": {"id": text, "title": text}, "required": ["id", "title"]}
    stream = {
        "name": "items",
        "description": "What a record of this stream is.",
        "semantics": "mutable_state",
        "primary_key": ["id"],
        "incremental": True,
        "schema": schema,
    }
    return {
        "protocol_version": "0.1.0",
        "connector_id": f"https://connectors.example/{name}",
        "version": "0.1.0",
        "display_name": name.title(),
        "runtime_requirements": {"bindings": {}},
        "streams": [stream],
    }
