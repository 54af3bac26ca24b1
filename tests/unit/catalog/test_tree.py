"""A folder as data: its digest tells every change that counts, and what may not be taken over is named."""

import os
from pathlib import Path

import pytest

from headwater import limits
from headwater.catalog.tree import read_tree, survey


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small connector's folder."""
    root = tmp_path / "connector"
    (root / "lib").mkdir(parents=True)
    (root / "main.py").write_text("print(1)")
    (root / "lib" / "é b.py").write_text("x = 1")
    (root / "run.sh").write_text("#!/bin/sh")
    (root / "run.sh").chmod(0o755)
    (root / "alias.py").symlink_to("lib/é b.py")
    return root


def test_the_digest_is_that_of_the_listing(folder):
    """Anybody can compute it: a line a file, in the order of the paths' bytes."""
    from hashlib import sha256

    def line(kind: str, data: bytes, path: str) -> str:
        return f'{kind} {sha256(data).hexdigest()} "{path}"\n'

    listing = (
        line("link", "lib/é b.py".encode(), "alias.py")
        + line("file", b"x = 1", "lib/\\u00e9 b.py")
        + line("file", b"print(1)", "main.py")
        + line("program", b"#!/bin/sh", "run.sh")
    )
    assert read_tree(folder).digest == f"sha256:{sha256(listing.encode()).hexdigest()}"


def test_times_and_loose_permissions_do_not_count(folder):
    """The same files have the same digest on every machine."""
    before = read_tree(folder).digest
    os.utime(folder / "main.py", (0, 0))
    (folder / "main.py").chmod(0o644)
    (folder / "empty").mkdir()
    assert read_tree(folder).digest == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda root: (root / "main.py").write_text("print(2)"), "main.py was changed"),
        (lambda root: (root / "main.py").chmod(0o755), "main.py was changed"),
        (lambda root: (root / "main.py").unlink(), "main.py is gone"),
        (lambda root: (root / "more.py").write_text(""), "more.py was added"),
        (lambda root: (root / "lib").rename(root / "bil"), "lib/é b.py is gone"),
        (lambda root: (root / "lib" / "é b.py").write_text("x = 2"), "lib/é b.py was changed"),
    ],
)
def test_every_change_of_a_file_is_named(folder, change, said):
    """The digest differs, and the file is named."""
    before = read_tree(folder)
    change(folder)
    after = read_tree(folder)
    assert after.digest != before.digest
    assert said in before.changes(after)


def test_what_a_file_turned_into_is_named_too(folder):
    """A FIFO in a file's place is no file, and is not opened."""
    before = read_tree(folder)
    (folder / "main.py").unlink()
    os.mkfifo(folder / "main.py")
    assert before.changes(read_tree(folder)) == ["main.py is gone"]


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "lib/../../outside", "..", "lib/up/outside"])
def test_a_link_that_leads_out_is_a_fault(folder, target):
    """Absolute or not, over another link or not."""
    (folder.parent / "outside").write_text("secret")
    (folder / "lib" / "up").symlink_to("../..")
    (folder / "bad").symlink_to(target)
    faults = {fault.pointer: fault.rule for fault in survey(folder).faults}
    assert faults["/bad"] == "link"
    assert faults["/lib/up"] == "link"


def test_pipes_and_sockets_are_faults(folder):
    """Only files, folders and links are taken over."""
    os.mkfifo(folder / "pipe")
    assert [(fault.pointer, fault.rule) for fault in survey(folder).faults] == [("/pipe", "kind")]


def test_a_name_that_could_drive_a_terminal_is_a_fault(folder):
    """Neither control characters nor bytes that are no text."""
    (folder / "a\x1b[2Jb").write_text("")
    (folder / os.fsdecode(b"a\xff")).write_text("")
    assert [fault.rule for fault in survey(folder).faults] == ["name", "name"]


def test_too_many_files_and_too_many_bytes_are_a_fault(folder, monkeypatch):
    """At the bound it fits, and one past it does not."""
    monkeypatch.setattr(limits, "CONNECTOR_FILES", 5)
    assert survey(folder).faults == ()
    (folder / "fifth").write_text("")
    assert [fault.rule for fault in survey(folder).faults] == ["size"]
    monkeypatch.undo()
    monkeypatch.setattr(limits, "CONNECTOR_BYTES", 1_000)
    (folder / "fifth").write_bytes(bytes(900))
    assert survey(folder).faults == ()
    (folder / "fifth").write_bytes(bytes(1_000))
    assert [fault.rule for fault in survey(folder).faults] == ["size"]


@pytest.mark.parametrize("name", ["lib", "main.py"])
def test_what_cannot_be_read_is_a_fault(folder, monkeypatch, name):
    """A file or a folder that belongs to somebody else is named, and not left out silently."""
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != name and access(path, mode))
    assert [(fault.pointer, fault.rule) for fault in survey(folder).faults] == [(f"/{name}", "unreadable")]


def test_what_nobody_wrote_is_left_out(folder):
    """Caches, checkouts and environments are no part of a connector."""
    before = read_tree(folder).digest
    for name in (".git", "__pycache__", ".venv", "lib/__pycache__"):
        (folder / name).mkdir()
        (folder / name / "x").write_text("x")
    assert read_tree(folder).digest == before
