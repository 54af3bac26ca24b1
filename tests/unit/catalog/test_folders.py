"""A connector's options, set by a person."""

import json
from pathlib import Path

import pytest

from headwater.catalog.folders import ConnectorFolder, folder_at
from headwater.catalog.scaffold import scaffold
from headwater.errors import HeadwaterError

PATH = '[options.properties.path]\ntype = "string"\nformat = "path"\n'


def connector(into: Path, *bindings: str) -> ConnectorFolder:
    """Return a new connector with a path option and some bindings."""
    folder = scaffold("journal", into)
    (folder / "connector.toml").write_text((folder / "connector.toml").read_text() + PATH)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["runtime_requirements"]["bindings"] = {name: {"required": False} for name in bindings}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder_at(folder)


def test_a_path_needs_the_filesystem_binding(tmp_path):
    """A connector that will not see a file is not given its name; the person is told which option, and why."""
    with pytest.raises(HeadwaterError) as raised:
        connector(tmp_path, "network").checked_options({}, [f"path={tmp_path / 'journal.txt'}"])
    assert raised.value.code == "invalid_options"
    (fault,) = raised.value.data["faults"]
    assert (fault["pointer"], fault["rule"]) == ("/path", "binding")


def test_a_path_is_taken_where_the_connector_sees_it(tmp_path):
    """With `filesystem`, and in the connector's own folder without it."""
    wide = connector(tmp_path / "wide", "filesystem")
    assert wide.checked_options({}, [f"path={tmp_path}"]) == {"path": str(tmp_path)}
    own = connector(tmp_path / "own")
    inside = str(own.path / "fixtures")
    assert own.checked_options({}, [f"path={inside}"]) == {"path": inside}
    assert own.checked_options({"path": "fixtures/a.txt"}, []) == {"path": "fixtures/a.txt"}
