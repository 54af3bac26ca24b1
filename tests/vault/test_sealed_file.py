"""The sealed file: wrong keys, changed bytes, unsafe places, kills, and two processes at once."""

import asyncio
import fcntl
import os
import random
import signal
import stat
import subprocess
import sys
from base64 import b64decode

import pytest
from vault.conftest import SENTINEL, refusal

from headwater import limits
from headwater.secret import Secret
from headwater.vault.sealed_file import SealedFileCustody
from headwater.vault.sealing import Seal

run = asyncio.run

# A file as format 1 has it: the passphrase is "correct horse", and version v1 of con_1 holds "kept since 2026".
FORMAT_1 = {
    "key_file": (
        "aGVhZHdhdGVyLXNlYWxlZC8xCmv60bRuYrkdfiFYdKkwMklxbFEz/X6LJJuEw2mC58YaHtRr72rc45fpHDgSAzHJlz4AAAAAAAAA"
        "ATyl8AdHCmlMZ5F98N0AFb8SFMZXGBmycsa37zwJ631suOvCH7j4+ye8JOqVlbqt0qyELm+47eYfWpy1hK+ZILxW298="
    ),
    "passphrase": (
        "aGVhZHdhdGVyLXNlYWxlZC8xCnA1a3FHyf8sdKvmfYCLtST3jxT0/UA/GtFI/a8TpkTDqNUX4qRMCM1Qncg41f1+b+UAAAAAAAAA"
        "AV3hNoczT6wgA1mCFg/DtRQ7f8qMJ1ny74By0qh5KnrNuEcKa92BMjIJrFeGT23+wgtxvR1V+5X91y/nAZsoTXzxVsY="
    ),
}


def write(custody, material=SENTINEL):
    return custody.write_new("con_1", Secret(material))


def opened_by(place, entered, kind="key_file"):
    return SealedFileCustody(place, kind, lambda: Secret(entered))


@pytest.fixture
def place(tmp_path):
    return tmp_path / "custody.sealed"


def test_the_file_is_its_owners_and_holds_nothing_in_clear(sealed, place):
    version = run(write(sealed))
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    on_disk = b"".join(path.read_bytes() for path in place.parent.iterdir())
    for told in (SENTINEL, version, "con_1"):
        assert told.encode() not in on_disk
    assert sorted(path.name for path in place.parent.iterdir()) == ["custody.sealed", "custody.sealed.lock"]


@pytest.mark.parametrize("kind", ["key_file", "passphrase"])
def test_another_process_opens_it_with_the_same_key_and_no_other(kind, place):
    version = run(write(opened_by(place, "k" * 32, kind)))
    assert run(opened_by(place, "k" * 32, kind).read("con_1", version)).text() == SENTINEL
    before = place.read_bytes()
    other = {"key_file": "passphrase", "passphrase": "key_file"}[kind]
    for wrong in (
        opened_by(place, "l" * 32, kind),
        opened_by(place, "k" * 31, kind),
        opened_by(place, "k" * 32, other),
    ):
        error = refusal(wrong.read("con_1", version))
        assert error.message == "The passphrase or key file does not open the sealed file."
        refusal(write(wrong))
        refusal(wrong.probe())
    assert place.read_bytes() == before


def test_the_passphrase_is_asked_for_once_and_again_after_a_wrong_one(place):
    version = run(write(opened_by(place, "right", "passphrase")))
    answers = [Secret("right"), Secret("wrong")]
    custody = SealedFileCustody(place, "passphrase", answers.pop)
    refusal(custody.read("con_1", version))
    for _ in range(3):
        assert run(custody.read("con_1", version)).text() == SENTINEL
    assert answers == []


def test_looking_writes_nothing_and_says_what_is_wrong(place):
    assert run(opened_by(place, "k" * 32).state()) == "available"
    assert list(place.parent.iterdir()) == []
    run(write(opened_by(place, "k" * 32)))
    before = {path: path.stat().st_mtime_ns for path in place.parent.iterdir()}
    assert run(opened_by(place, "l" * 32).state()) == "locked"
    assert run(opened_by(place.parent / "none" / "file", "k" * 32).state()) == "unavailable"
    assert before == {path: path.stat().st_mtime_ns for path in place.parent.iterdir()}
    place.write_bytes(b"damaged")
    assert run(opened_by(place, "k" * 32).state()) == "unavailable"


def test_two_files_with_one_passphrase_share_no_key(tmp_path):
    files = [tmp_path / "one", tmp_path / "two"]
    for file in files:
        run(write(opened_by(file, "same", "passphrase")))
    one, two = (file.read_bytes() for file in files)
    assert not {one[at : at + 12] for at in range(20, len(one) - 12)} & {
        two[at : at + 12] for at in range(len(two) - 12)
    }


def test_every_write_has_a_nonce_of_its_own(sealed, place):
    nonces = set()
    for _ in range(20):
        run(write(sealed))
        nonces.add(place.read_bytes()[76:88])
    assert len(nonces) == 20


def test_a_file_with_any_byte_changed_is_refused(place):
    version = run(write(opened_by(place, "k" * 32)))
    content = place.read_bytes()
    for at in range(len(content)):
        place.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        custody = opened_by(place, "k" * 32)
        action = (
            "unlock_keyring" if 19 <= at < 68 else "check_configuration"
        )  # a salt that is not its own opens nothing
        refusal(custody.read("con_1", version), next_action=action)


@pytest.mark.parametrize("size", [0, 1, 18, 19, 87, 88, 103, 104, 120])
def test_a_file_that_was_cut_off_is_refused(size, place):
    version = run(write(opened_by(place, "k" * 32)))
    os.truncate(place, size)
    refusal(opened_by(place, "k" * 32).read("con_1", version), next_action="check_configuration")
    refusal(write(opened_by(place, "k" * 32)), next_action="check_configuration")
    assert place.stat().st_size == size


def test_an_older_file_in_its_place_is_refused(sealed, place):
    run(write(sealed))
    older = place.read_bytes()
    version = run(write(sealed))
    place.write_bytes(older)
    refusal(sealed.read("con_1", version), next_action="check_configuration")
    refusal(write(sealed), next_action="check_configuration")


def test_a_deleted_version_does_not_come_back_with_an_older_file(sealed, place):
    version = run(write(sealed))
    older = place.read_bytes()
    run(sealed.delete("con_1", version))
    place.write_bytes(older)
    refusal(sealed.read("con_1", version), next_action="check_configuration")


@pytest.mark.parametrize(
    "kind", ["open to others", "linked", "named twice", "folder", "fifo", "too large", "open folder"]
)
def test_a_file_that_is_not_safe_is_refused(kind, sealed, place):
    version = run(write(sealed))
    match kind:
        case "open to others":
            place.chmod(0o640)
        case "linked":
            place.rename(place.with_name("elsewhere"))
            place.symlink_to("elsewhere")
        case "named twice":
            os.link(place, place.with_name("elsewhere"))
        case "folder":
            place.unlink()
            place.mkdir()
        case "fifo":
            place.unlink()
            os.mkfifo(place, 0o600)
        case "too large":
            os.truncate(place, limits.SEALED_BYTES + 1)
        case "open folder":
            place.parent.chmod(0o777)
    refusal(sealed.read("con_1", version), next_action="check_configuration")
    refusal(write(sealed), next_action="check_configuration")
    refusal(sealed.probe(), next_action="check_configuration")


@pytest.mark.parametrize("place_", ["missing/custody.sealed", "relative", "../custody.sealed"])
def test_a_place_that_cannot_be_is_refused(place_, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / place_ if place_.startswith(("missing", "..")) else type(tmp_path)(place_)
    refusal(write(opened_by(path, "k" * 32)), next_action="check_configuration")
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_the_disk_refuses_changes_nothing(sealed, place):
    version = run(write(sealed))
    (place.parent / "custody.sealed.new").mkdir()
    error = refusal(write(sealed), next_action="check_configuration")
    assert error.safe.startswith("Nothing was stored")
    assert run(sealed.read("con_1", version)).text() == SENTINEL


def refusing(kind):
    """Return an fsync that a disk refuses for one kind of thing."""
    real = os.fsync

    def fsync(descriptor):
        if kind(os.fstat(descriptor).st_mode):
            raise OSError(5, SENTINEL)
        real(descriptor)

    return fsync


def test_a_file_that_cannot_be_synced_is_not_moved_to_its_place(sealed, place, monkeypatch):
    run(write(sealed))
    before = place.read_bytes()
    monkeypatch.setattr(os, "fsync", refusing(stat.S_ISREG))
    refusal(write(sealed), next_action="check_configuration")
    assert place.read_bytes() == before


def test_a_move_that_is_not_known_to_last_is_unknown(sealed, place, monkeypatch):
    """The folder cannot be synced: the file is in its place, and may not be there after a power cut."""
    run(write(sealed))
    monkeypatch.setattr(os, "fsync", refusing(stat.S_ISDIR))
    refusal(write(sealed), "outcome_unknown", "retry_status")


@pytest.mark.clause("CLI-402")
def test_a_disk_that_lies_is_found_out(sealed, monkeypatch):
    """It says that the file was moved to its place, and it was not."""
    version = run(write(sealed))
    monkeypatch.setattr(os, "rename", lambda *names, **folders: None)
    refusal(sealed.delete("con_1", version), "outcome_unknown", "retry_status")
    refusal(write(sealed), "outcome_unknown", "retry_status")
    refusal(sealed.probe())
    monkeypatch.undo()
    run(sealed.probe())


def test_a_file_that_is_full_is_refused_and_stays(sealed, place, monkeypatch):
    monkeypatch.setattr(limits, "SEALED_BYTES", 2_000)
    version = run(write(sealed))
    before = place.read_bytes()
    refusal(write(sealed, "x" * 3_000), next_action="revoke_connection")
    assert place.read_bytes() == before
    assert run(sealed.delete("con_1", version)) == "deleted"


def test_another_process_in_the_file_is_waited_for_but_not_for_ever(sealed, place, monkeypatch):
    monkeypatch.setattr(limits, "SEALED_LOCK_SECONDS", 0.1)
    version = run(write(sealed))
    with (place.parent / "custody.sealed.lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refusal(sealed.read("con_1", version), next_action="retry_explicitly")
        refusal(write(sealed), next_action="retry_explicitly")
    assert run(sealed.read("con_1", version)).text() == SENTINEL


WRITER = """
import asyncio, sys
from pathlib import Path
from headwater.secret import Secret
from headwater.vault.sealed_file import SealedFileCustody

async def write():
    custody = SealedFileCustody(Path(sys.argv[1]), "key_file", lambda: Secret(b"k" * 32))
    for number in range(int(sys.argv[2])):
        print(await custody.write_new("con_1", Secret(f"{number}")), flush=True)

asyncio.run(write())
"""


def writer(place, count):
    words = [sys.executable, "-c", WRITER, str(place), str(count)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_processes_lose_nothing_of_each_other(sealed, place):
    writers = [writer(place, 15) for _ in range(2)]
    told = [process.communicate(timeout=60)[0].split() for process in writers]
    for versions in told:
        assert [run(sealed.read("con_1", version)).text() for version in versions] == [str(n) for n in range(15)]


def test_what_was_acknowledged_survives_a_kill(sealed, place):
    lots = random.Random(int(os.environ["HEADWATER_SEED"]))
    acknowledged = []
    for _ in range(6):
        process = writer(place, 10_000)
        wanted = lots.randrange(1, 12)
        lines = [process.stdout.readline().strip() for _ in range(wanted)]
        process.send_signal(signal.SIGKILL)
        lines += process.communicate()[0].split()
        acknowledged += list(enumerate(lines))
    for number, version in acknowledged:
        assert run(sealed.read("con_1", version)).text() == str(number)


@pytest.mark.parametrize("kind", ["key_file", "passphrase"])
def test_a_file_written_by_the_first_release_opens(kind):
    seal = Seal(kind, lambda: Secret("correct horse"))
    seal.ask()
    contents = seal.open(Secret(b64decode(FORMAT_1[kind])))
    assert contents["con_1"]["v1"].text() == "kept since 2026"
