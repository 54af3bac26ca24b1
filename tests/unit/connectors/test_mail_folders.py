"""The mail connector on Maildirs, .eml files and trees of folders."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

import headwater.connectors
from headwater.sdk.testing import Transcript, collect

CONNECTOR = Path(headwater.connectors.__path__[0]) / "mail"
MBOX = b"From a@example.org Tue Oct  1 10:00:00 2024\nSubject: boxed\n\nhello\n"


# Root may read everything, unless it gives that up.
BOUND = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
PROGRAM = (*BOUND, sys.executable) if os.geteuid() == 0 else (sys.executable,)


def run(path: Path, state: dict[str, Any] | None = None, **options: Any) -> Transcript:
    """Run the connector, which must succeed."""
    given = {"path": str(path), **options}
    transcript = collect(CONNECTOR, options=given, state=state, timeout_seconds=20, program=PROGRAM)
    assert transcript.done["status"] == "succeeded", transcript.stderr
    return transcript


def maildir(path: Path, *names: str) -> Path:
    """Make a Maildir with a message in each named file of `cur`."""
    for name in ("cur", "new", "tmp"):
        (path / name).mkdir(parents=True)
    for name in names:
        (path / "cur" / name).write_bytes(f"Subject: {name[0]}\n\nhello\n".encode())
    return path


def eml(path: Path, subject: str = "one") -> Path:
    """Write a message to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(f"Subject: {subject}\n\nhello\n".encode())
    return path


def subjects(transcript: Transcript) -> list[str]:
    """Return the subjects of the messages, sorted."""
    return sorted(record["subject"] for record in transcript.records("messages"))


def paths(transcript: Transcript) -> dict[str, str]:
    """Return the kind of each folder by its path."""
    return {record["path"]: record["kind"] for record in transcript.records("folders")}


def deleted(transcript: Transcript) -> list[str]:
    """Return the paths of the folders that were deleted."""
    return [m["key"] for m in transcript.messages if m.get("op") == "delete"]


def reasons(transcript: Transcript) -> list[str]:
    """Return the reasons of what was skipped."""
    return [m["reason"] for m in transcript.messages if m["type"] == "SKIP_RESULT"]


def test_a_maildir_has_subfolders(tmp_path: Path) -> None:
    """A Maildir++ subfolder is a folder of its own, named as a person sees it."""
    root = maildir(tmp_path / "Mail", "a:2,")
    maildir(root / ".Sent.Entw&APw-rfe", "b:2,S")
    transcript = run(root)
    assert [(r["path"], r["name"]) for r in transcript.records("folders")] == [
        (".", "Mail"),
        (".Sent.Entw&APw-rfe", "Entwürfe"),
    ]
    assert subjects(transcript) == ["a", "b"]


def test_flags_come_from_the_file_name(tmp_path: Path) -> None:
    """The letters after `2,` are the flags; a message in `new` has none."""
    root = maildir(tmp_path, "a:2,FRSx")
    (root / "new" / "b").write_bytes(b"Subject: b\n\nhello\n")
    flags = {record["subject"]: record["flags"] for record in run(root).records("messages")}
    assert flags == {"a": ["answered", "flagged", "seen"], "b": []}


def test_a_flag_that_changes_updates_the_record(tmp_path: Path) -> None:
    """A message that was renamed for its flags comes again under the same id."""
    root = maildir(tmp_path, "a:2,")
    first = run(root)
    (root / "cur" / "a:2,").rename(root / "cur" / "a:2,S")
    (record,) = run(root, first.state).records("messages")
    assert (record["id"], record["flags"]) == (first.records("messages")[0]["id"], ["seen"])


def test_an_unchanged_maildir_is_not_read_again(tmp_path: Path) -> None:
    """A second run over the same files emits no message."""
    root = maildir(tmp_path, "a:2,", "b:2,")
    assert subjects(run(root, run(root).state)) == []


def test_a_new_message_is_read_without_the_old_ones(tmp_path: Path) -> None:
    """Files that changed before the last pass was made are left alone."""
    root = maildir(tmp_path, "a:2,")
    state = run(root).state
    (root / "new" / "marker").write_bytes(b"Subject: n\n\nhello\n")
    state = run(root, state).state
    eml(root / "cur" / "b:2,", "b")
    assert "b" in subjects(run(root, state))
    assert "a" not in subjects(run(root, state))


def test_a_message_that_came_with_an_old_time_is_seen(tmp_path: Path) -> None:
    """A restored file with an old modification time is new all the same."""
    root = maildir(tmp_path, "a:2,")
    state = run(root).state
    os.utime(eml(root / "cur" / "b:2,", "b"), (0, 0))
    assert "b" in subjects(run(root, state))


def test_a_tree_holds_folders_of_every_kind(tmp_path: Path) -> None:
    """In a Thunderbird-like tree each kind of folder is told by its content, and the rest is let be."""
    (tmp_path / "Inbox").write_bytes(MBOX)
    (tmp_path / "Inbox.msf").write_bytes(b"// <!-- index -->")
    (tmp_path / "Inbox.sbd").mkdir()
    (tmp_path / "Inbox.sbd" / "Work").write_bytes(b"\n" + MBOX)
    (tmp_path / "Sent").touch()
    (tmp_path / "Sent.msf").touch()
    (tmp_path / "LOCK").touch()
    maildir(tmp_path / "Archive")
    (tmp_path / "Archive" / "maildirfolder").touch()
    eml(tmp_path / "Exported" / "one.EML")
    assert paths(run(tmp_path)) == {
        "Archive": "maildir",
        "Exported": "eml",
        "Inbox": "mbox",
        "Inbox.sbd/Work": "mbox",
        "Sent": "mbox",
    }


def test_one_message_in_two_folders_is_two_records(tmp_path: Path) -> None:
    """Copies have an id each, because each has its own flags; their content digest is one."""
    eml(tmp_path / "x" / "1.eml")
    eml(tmp_path / "y" / "1.eml")
    records = run(tmp_path).records("messages")
    assert len({record["id"] for record in records}) == 2
    assert len({record["content_sha256"] for record in records}) == 1


def test_a_single_eml_file(tmp_path: Path) -> None:
    """A path may be one message, whose neighbours are not read."""
    eml(tmp_path / "two.eml", "two")
    transcript = run(eml(tmp_path / "one.eml"))
    assert subjects(transcript) == ["one"]
    assert transcript.records("folders")[0]["message_count"] == 1


def test_a_changed_eml_file_is_read_again(tmp_path: Path) -> None:
    """A file that was rewritten holds another message."""
    eml(tmp_path / "one.eml")
    state = run(tmp_path).state
    eml(tmp_path / "one.eml", "two")
    assert subjects(run(tmp_path, state)) == ["two"]


def test_a_folder_that_is_gone_is_deleted(tmp_path: Path) -> None:
    """A walk that saw everything states which folders are gone."""
    (tmp_path / "Inbox").write_bytes(MBOX)
    (tmp_path / "Old").write_bytes(MBOX)
    state = run(tmp_path).state
    (tmp_path / "Old").unlink()
    second = run(tmp_path, state)
    assert deleted(second) == ["Old"]
    assert deleted(run(tmp_path, second.state)) == []


def test_another_path_deletes_nothing(tmp_path: Path) -> None:
    """Folders of one path are not gone because the owner set another."""
    eml(tmp_path / "x" / "a" / "1.eml")
    eml(tmp_path / "y" / "b" / "1.eml")
    assert deleted(run(tmp_path / "y", run(tmp_path / "x").state)) == []


def test_an_emptied_path_fails_and_deletes_nothing(tmp_path: Path) -> None:
    """A tree without any mail may be a disk that is not there: absent is not empty."""
    path = eml(tmp_path / "1.eml")
    state = run(tmp_path).state
    path.unlink()
    transcript = collect(CONNECTOR, options={"path": str(tmp_path)}, state=state)
    assert transcript.done["error"]["code"] == "no_mail"
    assert deleted(transcript) == []


def test_a_directory_that_cannot_be_read_deletes_nothing(tmp_path: Path) -> None:
    """What was not seen is not gone; the owner reads which directory it was."""
    eml(tmp_path / "x" / "1.eml")
    eml(tmp_path / "y" / "1.eml")
    state = run(tmp_path).state
    (tmp_path / "y").chmod(0)
    transcript = run(tmp_path, state)
    (tmp_path / "y").chmod(0o700)
    assert (deleted(transcript), reasons(transcript)) == ([], ["unreadable"])
    assert run(tmp_path, transcript.state).records("messages") == []


def test_a_file_that_cannot_be_read_is_read_later(tmp_path: Path) -> None:
    """An unreadable file is skipped with its reason, and collected once it can be read."""
    path = eml(tmp_path / "1.eml")
    path.chmod(0)
    first = run(tmp_path)
    path.chmod(0o600)
    assert (subjects(first), reasons(first)) == ([], ["unreadable"])
    assert subjects(run(tmp_path, first.state)) == ["one"]


def test_symbolic_links_are_not_followed(tmp_path: Path) -> None:
    """A loop of links ends no run and repeats no message; the owner reads that links were left."""
    eml(tmp_path / "x" / "1.eml")
    (tmp_path / "x" / "loop").symlink_to(tmp_path)
    (tmp_path / "x" / "2.eml").symlink_to("1.eml")
    transcript = run(tmp_path)
    assert subjects(transcript) == ["one"]
    assert "symbolic_links" in reasons(transcript)


def test_the_path_itself_may_be_a_link(tmp_path: Path) -> None:
    """What the owner names is followed."""
    eml(tmp_path / "x" / "1.eml")
    (tmp_path / "link").symlink_to("x")
    assert subjects(run(tmp_path / "link")) == ["one"]


def test_a_pipe_is_never_opened(tmp_path: Path) -> None:
    """A FIFO among the messages does not stop the run."""
    root = maildir(tmp_path, "a:2,")
    os.mkfifo(root / "cur" / "b:2,")
    os.mkfifo(root / "Inbox")
    os.mkfifo(root / "one.eml")
    assert subjects(run(root)) == ["a"]


@pytest.mark.parametrize("kind", ["fifo", "missing", "loop", "empty", "unset"])
def test_a_path_that_cannot_hold_mail_fails(tmp_path: Path, kind: str) -> None:
    """A path that is no place of mail ends the run with a sentence about the option."""
    path = tmp_path / "path"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to("path")
    elif kind == "empty":
        path.mkdir()
    options = {} if kind == "unset" else {"path": str(path)}
    transcript = collect(CONNECTOR, options=options, timeout_seconds=20)
    assert transcript.done["status"] == "failed"
    assert "option `path`" in transcript.done["error"]["message"]


def test_files_that_are_no_messages_are_skipped(tmp_path: Path) -> None:
    """Empty files and files without any header are named, and the rest is read."""
    eml(tmp_path / "1.eml")
    (tmp_path / "2.eml").touch()
    (tmp_path / "3.eml").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (tmp_path / "4.mbox").write_bytes(b"nothing")
    transcript = run(tmp_path)
    assert subjects(transcript) == ["one"]
    assert sorted(reasons(transcript)) == ["empty", "not_a_message", "not_an_mbox"]


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    """A folder whose name is not UTF-8 is collected under a name that JSON can hold."""
    place = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(place)
    eml(Path(os.fsdecode(place)) / "1.eml")
    transcript = run(tmp_path)
    assert paths(transcript) == {"caf\\xe9": "eml"}
    assert run(tmp_path, transcript.state).records("messages") == []
