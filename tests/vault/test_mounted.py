"""A mounted folder: read, pinned, and never written."""

import asyncio
import os

import pytest
from vault.conftest import SENTINEL, refusal

from headwater import limits
from headwater.secret import Secret
from headwater.vault.mounted import MountedCustody

run = asyncio.run
ITEM = "forge/token"


@pytest.fixture
def mounted(tmp_path):
    folder = tmp_path / "secrets"
    (folder / "forge").mkdir(parents=True)
    (folder / ITEM).write_text(SENTINEL)
    (folder / ITEM).chmod(0o444)
    return folder


@pytest.fixture
def custody(mounted):
    return MountedCustody(mounted)


def tree(folder):
    return {path: (path.stat().st_mtime_ns, path.stat().st_ino, path.stat().st_mode) for path in folder.rglob("*")}


def replace(mounted, content):
    """Swap the item, as a platform does."""
    new = mounted / "forge" / "new"
    new.write_bytes(content)
    new.rename(mounted / ITEM)


@pytest.mark.clause("CLI-405")
def test_an_item_is_pinned_and_read_and_nothing_is_touched(custody, mounted):
    before = tree(mounted)
    run(custody.probe())
    version, material = run(custody.pin("con_1", ITEM))
    assert material.text() == run(custody.read("con_1", version)).text() == SENTINEL
    assert run(custody.pin("con_1", ITEM))[0] == version
    assert tree(mounted) == before
    assert custody.read_only


@pytest.mark.clause("CLI-407")
def test_a_write_is_refused_and_nothing_is_touched(custody, mounted):
    before = tree(mounted)
    version, _ = run(custody.pin("con_1", ITEM))
    refusal(custody.write_new("con_1", Secret(SENTINEL)), "custody_read_only", "check_configuration")
    refusal(custody.delete("con_1", version), "custody_read_only", "check_configuration")
    assert tree(mounted) == before
    assert run(custody.read("con_1", version)).text() == SENTINEL


@pytest.mark.clause("CLI-408")
@pytest.mark.parametrize(
    "content", [b"other", SENTINEL.encode() + b"\n", SENTINEL.encode()[:-1], SENTINEL.upper().encode()]
)
def test_changed_bytes_are_not_read_until_they_are_pinned_anew(content, custody, mounted):
    version, _ = run(custody.pin("con_1", ITEM))
    replace(mounted, content)
    for _ in range(2):
        refusal(custody.read("con_1", version), next_action="revalidate_connection")
    newer, material = run(custody.pin("con_1", ITEM))
    assert material.reveal() == run(custody.read("con_1", newer)).reveal() == content
    refusal(custody.read("con_1", version), next_action="revalidate_connection")
    replace(mounted, SENTINEL.encode())
    assert run(custody.read("con_1", version)).text() == SENTINEL


def test_a_version_belongs_to_its_connection(custody):
    version, _ = run(custody.pin("con_1", ITEM))
    refusal(custody.read("con_2", version), next_action="revalidate_connection")


HOSTILE = ["/etc/passwd", "../secrets/forge/token", "forge/../forge/token", "./forge/token", "forge//token", "forge/.."]
STRANGE = ["", "token", "forge/", "a/b/c/d", "forge/tok\0en", "forge/token\n", "forge/" + "x" * 129]


@pytest.mark.parametrize("item", [*HOSTILE, *STRANGE])
def test_an_item_of_another_form_is_missing(item, custody):
    refusal(custody.pin("con_1", item), next_action="repair_connection")
    refusal(custody.read("con_1", f"{item}@{'0' * 64}"), next_action="repair_connection")


@pytest.mark.parametrize("version", ["", "@", "forge", "ver_1"])
def test_a_version_of_another_form_is_missing(version, custody):
    refusal(custody.read("con_1", version), next_action="repair_connection")


def link(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


UNFIT = {
    "missing": lambda item: item.unlink(),
    "empty": lambda item: replace(item.parents[1], b""),
    "too large": lambda item: replace(item.parents[1], b"x" * (limits.CUSTODY_BYTES + 1)),
    "linked": link,
    "linked folder": lambda item: link(item.parent),
    "linked above": lambda item: link(item.parents[1]),
    "folder": lambda item: (item.unlink(), item.mkdir()),
    "fifo": lambda item: (item.unlink(), os.mkfifo(item)),
    "writable": lambda item: item.chmod(0o666),
    "writable folder": lambda item: item.parent.chmod(0o777),
    "writable above": lambda item: item.parents[2].chmod(0o777),
}


@pytest.mark.parametrize("change", UNFIT.values(), ids=UNFIT)
def test_an_item_that_is_not_safe_is_refused(change, custody, mounted):
    change(mounted / ITEM)
    refusal(custody.pin("con_1", ITEM), next_action="check_configuration")


def test_a_pipe_that_somebody_writes_to_is_no_item(custody, mounted):
    (mounted / ITEM).unlink()
    os.mkfifo(mounted / ITEM, 0o600)
    descriptor = os.open(mounted / ITEM, os.O_RDWR)
    os.write(descriptor, SENTINEL.encode())
    refusal(custody.pin("con_1", ITEM), next_action="check_configuration")
    os.close(descriptor)


def test_a_folder_is_named_absolutely(mounted, monkeypatch):
    monkeypatch.chdir(mounted.parent)
    refusal(MountedCustody(mounted.relative_to(mounted.parent)).pin("con_1", ITEM), next_action="check_configuration")


def test_the_largest_item_is_read(custody, mounted):
    replace(mounted, b"x" * limits.CUSTODY_BYTES)
    assert len(run(custody.pin("con_1", ITEM))[1]) == limits.CUSTODY_BYTES


def test_a_folder_that_is_not_there_is_found_before_anybody_is_asked(mounted):
    refusal(MountedCustody(mounted / "none").probe(), next_action="check_configuration")
    assert run(MountedCustody(mounted / "none").state()) == "unavailable"
    assert run(MountedCustody(mounted).state()) == "available"
