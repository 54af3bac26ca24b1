"""Connectors that are added: taken over whole, refused with every reason, upgraded in one instant."""

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from headwater.catalog.folders import Catalog
from headwater.catalog.installing import Shelf
from headwater.catalog.offers import Offer
from headwater.errors import HeadwaterError

STREAM = {
    "name": "notes",
    "semantics": "mutable_state",
    "primary_key": ["id"],
    "schema": {"type": "object", "properties": {"id": {"type": "string"}}},
}


def manifest(**members: Any) -> dict[str, Any]:
    """A manifest that fits, but for some members."""
    bindings = {"filesystem": {"required": True}}
    return {
        "protocol_version": "0.1.0",
        "connector_id": "https://connectors.example/notes",
        "version": "1.0",
        "display_name": "Notes",
        "runtime_requirements": {"bindings": bindings},
        "streams": [STREAM],
        **members,
    }


def asking(*names: str) -> dict[str, Any]:
    """The manifest's member for a set of bindings."""
    return {"runtime_requirements": {"bindings": {name: {"required": True} for name in names}}}


PACKAGE = 'format = "headwater-connector/1"\ncommand = ["python", "c.py"]\n'


def write(root: Path, package: str | None = PACKAGE, **members: Any) -> Path:
    """Write a connector's folder."""
    root.mkdir(exist_ok=True)
    (root / "manifest.json").write_text(json.dumps(manifest(**members)))
    (root / "c.py").write_text("print(1)")
    if package is not None:
        (root / "connector.toml").write_text(package)
    return root


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A connector that somebody wrote."""
    return write(tmp_path / "source")


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    """The added connectors of a new Headwater."""
    return Shelf(tmp_path / "connectors")


def quiet(_what: str) -> None:
    """Tell nobody."""


def refused(code: str, act: Any) -> HeadwaterError:
    """Return the refusal of an act."""
    with pytest.raises(HeadwaterError) as raised:
        act()
    assert raised.value.code == code
    return raised.value


def faults(error: HeadwaterError) -> dict[str, str]:
    """Return the rules that a refusal names, by place."""
    return {fault["pointer"]: fault["rule"] for fault in error.data["faults"]}


def files(root: Path) -> list[str]:
    """Return everything below a folder."""
    return sorted(os.fspath(path.relative_to(root)) for path in root.rglob("*"))


def test_an_added_connector_is_in_the_catalog(shelf, source, tmp_path):
    """Under the last part of its id, with its digest and version, and it runs from the copy."""
    folder = shelf.add(None, Offer(source), quiet)
    (found,) = [one for one in Catalog(tmp_path / "connectors").all() if one.origin == "added"]
    assert (found.name, found.version, found.digest) == ("notes", "1.0", folder.digest)
    assert found.path.is_relative_to(tmp_path / "connectors")
    assert found.changes == []


def test_the_copy_is_for_its_owner_only(shelf, source, tmp_path):
    """Whatever the modes were; what may be run may still be run, by the owner."""
    (source / "lib" / "deep").mkdir(parents=True)
    (source / "lib" / "deep" / "x").write_text("")
    (source / "run.sh").write_text("")
    (source / "run.sh").chmod(0o4777)
    folder = shelf.add(None, Offer(source), quiet)
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in (tmp_path / "connectors").rglob("*")}
    assert {path for path, mode in modes.items() if mode & 0o077 and not path.is_symlink()} == set()
    assert modes[folder.path / "run.sh"] == 0o700
    assert modes[folder.path / "c.py"] == 0o600


def test_every_fault_is_reported_and_nothing_is_copied(shelf, source, tmp_path):
    """Manifest, connector.toml, program and files: all at once."""
    (source / "manifest.json").write_text(json.dumps(manifest(connector_id=7, streams=[{**STREAM, "name": "*"}])))
    (source / "connector.toml").write_text('format = "other/1"\ncommand = ["./missing"]\nsurprise = 1\n')
    (source / "bad").symlink_to("/etc/passwd")
    os.mkfifo(source / "pipe")
    error = refused("invalid_manifest", lambda: shelf.add(None, Offer(source), quiet))
    assert faults(error) == {
        "manifest.json/connector_id": "type",
        "manifest.json/streams/0/name": "wildcard",
        "connector.toml": "format",
        "connector.toml/surprise": "unknown_member",
        "connector.toml/command/0": "program",
        "files/bad": "link",
        "files/pipe": "kind",
    }
    assert not (tmp_path / "connectors").exists()


def test_a_folder_without_anything_is_refused(shelf, tmp_path):
    """Both documents are named."""
    (tmp_path / "empty").mkdir()
    error = refused("invalid_manifest", lambda: shelf.add(None, Offer(tmp_path / "empty"), quiet))
    assert faults(error) == {"manifest.json": "required", "connector.toml": "required"}
    refused("invalid_input", lambda: shelf.add(None, Offer(tmp_path / "nowhere"), quiet))


def test_a_bundled_name_is_never_shadowed(shelf, source):
    """Not even where the folder says so itself."""
    error = refused("already_exists", lambda: shelf.add("git", Offer(source), quiet))
    assert error.command == "headwater connectors add PATH --name NAME"


def test_a_name_in_use_is_refused_with_the_way_to_upgrade(shelf, source):
    """Adding never replaces."""
    shelf.add(None, Offer(source), quiet)
    error = refused("already_exists", lambda: shelf.add("notes", Offer(source), quiet))
    assert error.command == "headwater connectors upgrade notes PATH"


@pytest.mark.parametrize("name", ["", ".trees", "a/b", "../x", "a b", "-x", "x" * 65])
def test_a_name_is_one_safe_word(shelf, source, name):
    """It becomes a link's name, and a part of an instance's."""
    if name:
        refused("invalid_input", lambda: shelf.add(name, Offer(source), quiet))


def test_a_command_makes_the_connector_toml(shelf, tmp_path):
    """Variables that the manifest names become options; those that sound secret are passed through instead."""
    requirements = {
        "bindings": {"filesystem": {"required": True}},
        "environment_variables": ["NOTES_DIR", "NOTES_TOKEN", 7],
        "local_paths": {"home_env_override": "NOTES_HOME", "paths": [{"env_override": "NOTES_DB"}, 3]},
    }
    source = write(tmp_path / "source", package=None, runtime_requirements=requirements)
    offer = Offer(source, command=("python", "c.py"), variables=("MORE",), compatibility="pdpp-reference/1")
    package = shelf.add(None, offer, quiet).package
    assert package.command == ("python", "c.py")
    assert package.compatibility == "pdpp-reference/1"
    assert package.environment == ("NOTES_TOKEN",)
    assert package.paths == {"notes_dir", "notes_home", "notes_db"}
    assert package.filled_variables({"notes_dir": "/n", "more": "1"}) == {"NOTES_DIR": "/n", "MORE": "1"}


def test_a_command_beside_a_connector_toml_is_refused(shelf, source):
    """Two answers to one question would leave it open which counts."""
    offer = Offer(source, command=("python", "c.py"))
    assert faults(refused("invalid_manifest", lambda: shelf.add(None, offer, quiet))) == {"connector.toml": "present"}


def test_a_way_to_speak_that_nobody_knows_is_refused(shelf, tmp_path):
    """Compatibility is a closed list."""
    offer = Offer(write(tmp_path / "source", package=None), command=("python",), compatibility="other/1")
    error = refused("invalid_manifest", lambda: shelf.add(None, offer, quiet))
    assert faults(error) == {"connector.toml/compatibility": "enum"}


def test_a_manifest_from_elsewhere_is_taken_along(shelf, tmp_path):
    """A repository may keep its manifests away from its programs."""
    source = write(tmp_path / "source", package=None)
    (source / "manifests").mkdir()
    (source / "manifest.json").rename(source / "manifests" / "notes.json")
    offer = Offer(source, manifest=source / "manifests" / "notes.json", command=("python", "c.py"))
    folder = shelf.add(None, offer, quiet)
    assert folder.declaration.connector_id == "https://connectors.example/notes"
    assert (folder.path / "manifests" / "notes.json").is_file()


def test_a_changed_file_is_named_with_the_command_that_accepts_it(shelf, source):
    """The run is refused before anything is started; accepting is an upgrade from the folder itself."""
    folder = shelf.add(None, Offer(source), quiet)
    folder.verify()
    (folder.path / "c.py").write_text("print(2)")
    changed = shelf.find("notes")
    error = refused("connector_changed", changed.verify)
    assert "c.py was changed" in error.message
    assert error.command == f"headwater connectors upgrade notes {folder.path}"
    shelf.upgrade("notes", Offer(folder.path), quiet, accept=False).folder.verify()


def test_a_manifest_that_is_gone_is_a_change_like_any_other(shelf, source, tmp_path):
    """The connector is still listed, and says what is wrong with it."""
    folder = shelf.add(None, Offer(source), quiet)
    (folder.path / "manifest.json").unlink()
    (found,) = [one for one in Catalog(tmp_path / "connectors").all() if one.origin == "added"]
    assert (found.version, found.changes) == ("", ["manifest.json is gone"])
    assert "manifest.json is gone" in refused("connector_changed", found.verify).message
    assert shelf.upgrade("notes", Offer(source), quiet, accept=False).folder.changes == []


def test_a_name_whose_files_were_deleted_is_free(shelf, source):
    """Somebody cleared the folder by hand; the link that is left stands for nothing."""
    folder = shelf.add(None, Offer(source), quiet)
    shutil.rmtree(folder.path.parent)
    assert shelf.add(None, Offer(source), quiet).changes == []


def test_a_pin_that_cannot_be_read_is_a_refusal(shelf, source):
    """A connector whose pin is gone is not run on trust."""
    folder = shelf.add(None, Offer(source), quiet)
    (folder.path.parent / "added.json").write_text("{}")
    refused("connector_changed", shelf.find("notes").verify)
    assert shelf.find("notes").digest == ""


def test_an_upgrade_says_what_changes(shelf, source):
    """Streams that come, go and differ."""
    shelf.add(None, Offer(source), quiet)
    schema = {"type": "object", "properties": {"id": {"type": "string"}, "title": {"type": "string"}}}
    streams = [{**STREAM, "schema": schema, "primary_key": ["id", "title"]}, {**STREAM, "name": "tags"}]
    write(source, streams=streams, version="2.0")
    upgraded = shelf.upgrade("notes", Offer(source), quiet, accept=False)
    assert upgraded.is_new
    assert upgraded.folder.version == "2.0"
    assert upgraded.difference.asks == ()
    assert upgraded.difference.changes == (
        "notes has another primary key",
        "notes has another schema: adds title",
        "tags is new",
    )
    write(source)
    back = shelf.upgrade("notes", Offer(source), quiet, accept=False).difference.changes
    assert "tags is gone; what was collected of it stays" in back
    assert not shelf.upgrade("notes", Offer(source), quiet, accept=False).is_new


def test_a_new_binding_needs_a_word_of_the_owner(shelf, source):
    """Shown and refused without it; the old version stays."""
    before = shelf.add(None, Offer(source), quiet).digest
    write(source, **asking("filesystem", "network"))
    error = refused("consent_needed", lambda: shelf.upgrade("notes", Offer(source), quiet, accept=False))
    assert error.data["asks"] == ["the binding network"]
    assert shelf.find("notes").digest == before
    assert shelf.upgrade("notes", Offer(source), quiet, accept=True).difference.asks == ("the binding network",)


def test_a_binding_put_in_behind_our_back_needs_it_too(shelf, source):
    """What was accepted is remembered beside the files, which may be changed by anybody."""
    folder = shelf.add(None, Offer(source), quiet)
    (folder.path / "manifest.json").write_text(json.dumps(manifest(**asking("network"))))
    refused("consent_needed", lambda: shelf.upgrade("notes", Offer(folder.path), quiet, accept=False))


def test_another_connector_is_no_upgrade(shelf, source):
    """Its cursors would be read by a program that never wrote them."""
    shelf.add(None, Offer(source), quiet)
    write(source, connector_id="https://connectors.example/other")
    refused("invalid_input", lambda: shelf.upgrade("notes", Offer(source), quiet, accept=True))


def test_an_upgrade_keeps_a_connector_toml_that_was_made_here(shelf, tmp_path):
    """The new version brings its manifest; how it is run was said once."""
    source = write(tmp_path / "source", package=None)
    shelf.add(None, Offer(source, command=("python", "c.py")), quiet)
    write(source, package=None, version="2.0")
    upgraded = shelf.upgrade("notes", Offer(source), quiet, accept=False)
    assert upgraded.folder.package.command == ("python", "c.py")


def test_a_bundled_connector_is_neither_upgraded_nor_removed(shelf, source):
    """It comes and goes with Headwater."""
    refused("invalid_input", lambda: shelf.remove("git"))
    refused("invalid_input", lambda: shelf.upgrade("git", Offer(source), quiet, accept=True))
    refused("not_found", lambda: shelf.remove("nothing"))


def test_removing_leaves_nothing_behind(shelf, source, tmp_path):
    """No file, no link, no tree."""
    shelf.add(None, Offer(source), quiet)
    shelf.remove("notes")
    assert files(tmp_path / "connectors") == [".trees"]


def test_what_a_kill_left_behind_is_swept_away(shelf, source, tmp_path):
    """A tree that no name stands for belongs to nobody."""
    home = tmp_path / "connectors"
    (home / ".trees" / "tree_half" / "connector").mkdir(parents=True)
    folder = shelf.add(None, Offer(source), quiet)
    assert [path.name for path in (home / ".trees").iterdir()] == [folder.path.parent.name]


def test_a_copy_that_fails_leaves_the_old_version(shelf, source, monkeypatch):
    """A full disk on the way changes nothing."""
    before = shelf.add(None, Offer(source), quiet)
    write(source, version="2.0")

    def full(*_arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", full)
    error = refused("metadata_unavailable", lambda: shelf.upgrade("notes", Offer(source), quiet, accept=False))
    assert error.safe == "Nothing was added or changed."
    shelf.find("notes").verify()
    assert shelf.find("notes").digest == before.digest
