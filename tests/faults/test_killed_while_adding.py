"""A connector is added or upgraded whole or not at all, wherever a kill comes."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from headwater.catalog.folders import Catalog
from headwater.catalog.installing import Shelf
from headwater.catalog.offers import Offer

# Each step of the file system that Python does shows up as one of these.
STEPS = {"open", "os.mkdir", "os.rename", "os.symlink", "os.remove", "os.rmdir", "os.chmod", "os.link"}
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}}
MANIFEST = {
    "connector_id": "https://connectors.example/notes",
    "streams": [{"name": "notes", "semantics": "append_only", "primary_key": ["id"], "schema": SCHEMA}],
}


def offered(root: Path, version: str) -> Offer:
    """Write a version of a connector; every file of it tells which."""
    (root / "lib").mkdir(parents=True, exist_ok=True)
    (root / "manifest.json").write_text(json.dumps({**MANIFEST, "version": version}))
    (root / "connector.toml").write_text('format = "headwater-connector/1"\ncommand = ["python", "c.py"]\n')
    for name in ("c.py", "lib/a.py"):
        (root / name).write_text(f"VERSION = {version!r}\n")
    return Offer(root)


def killed_at(step: int, change: str, home: Path, offer: Offer) -> bool:
    """Make a change in a process that is killed before its nth step; say whether the kill came."""
    child = os.fork()
    if child == 0:
        left = [step]

        def count(event: str, _arguments: object) -> None:
            if event in STEPS:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        shelf = Shelf(home)
        if change == "add":
            shelf.add(None, offer, print)
        elif change == "upgrade":
            shelf.upgrade("notes", offer, print, accept=True)
        else:
            shelf.remove("notes")
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def standing(home: Path) -> str | None:
    """Return the version that is added, proven file by file, or None where there is none."""
    added = [folder for folder in Catalog(home).all() if folder.origin == "added"]
    if not added:
        return None
    (folder,) = added
    folder.verify()
    versions = {(folder.path / name).read_text() for name in ("c.py", "lib/a.py")}
    assert versions == {f"VERSION = {folder.version!r}\n"}
    return folder.version


CHANGES = [("add", None, "2"), ("upgrade", "1", "2"), ("remove", "1", None)]


@pytest.mark.parametrize(("change", "before", "after"), CHANGES)
def test_a_kill_leaves_the_old_or_the_new_whole(change, before, after, tmp_path):
    """Before every step of the change; and the next change sweeps away what was left."""
    source, seen, step = tmp_path / "source", set(), 1
    while True:
        home = tmp_path / f"home{step}"
        if before is not None:
            Shelf(home).add(None, offered(source, before), print)
        cut = killed_at(step, change, home, offered(source, "2"))
        seen.add(standing(home))
        if not cut:
            break
        shelf = Shelf(home)
        if standing(home) is None:
            shelf.add(None, offered(source, "3"), print)
        else:
            shelf.upgrade("notes", offered(source, "3"), print, accept=True)
        assert standing(home) == "3"
        assert len(list((home / ".trees").iterdir())) == 1
        step += 1
    assert seen == {before, after}
    assert step > 10
    assert standing(home) == after
