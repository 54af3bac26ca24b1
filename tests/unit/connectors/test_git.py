"""The git connector on real repositories: what it walks, what it walks again, and what it survives."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import headwater.connectors
from headwater.manifest.reading import read
from headwater.manifest.schemas import compile_schema
from headwater.sdk.testing import Transcript, collect

CONNECTOR = Path(headwater.connectors.__path__[0]) / "git"
IDENTITY = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_AUTHOR_DATE": "1700000000 +0200",
    "GIT_COMMITTER_NAME": "Bob",
    "GIT_COMMITTER_EMAIL": "bob@example.org",
    "GIT_COMMITTER_DATE": "1700000060 -0530",
}


def git(path: Path, *words: str | bytes, sent: bytes = b"") -> str:
    """Run the real git, and return what it says."""
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **IDENTITY}
    done = subprocess.run(["git", "-C", path, *words], input=sent, capture_output=True, check=True, env=environment)
    return done.stdout.decode().strip()


def repository(path: Path, *subjects: str) -> Path:
    """Make a repository with an empty commit for each subject."""
    path.mkdir(parents=True, exist_ok=True)
    git(path, "init", "--quiet", "--initial-branch=main")
    for subject in subjects:
        commit(path, subject)
    return path


def commit(path: Path, message: str) -> str:
    """Make an empty commit, and return its name."""
    git(path, "commit", "--quiet", "--allow-empty", "--file=-", sent=message.encode())
    return git(path, "rev-parse", "HEAD")


def written(path: Path, raw: bytes, branch: str = "raw") -> str:
    """Store a commit object byte for byte, and let a branch name it."""
    sha = git(path, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", sent=raw)
    (path / ".git" / "refs" / "heads" / branch).write_text(f"{sha}\n")
    return sha


def run(path: Path, state: dict[str, Any] | None = None) -> Transcript:
    """Run the connector, which must succeed, and hold what it emits to its manifest."""
    transcript = collect(CONNECTOR, options={"path": str(path)}, state=state)
    assert transcript.done["status"] == "succeeded", transcript.done
    for name, stream in read((CONNECTOR / "manifest.json").read_bytes()).streams.items():
        validator = compile_schema(stream.schema or {})
        for message in transcript.messages:
            if message["type"] == "RECORD" and message["stream"] == name and message.get("op") != "delete":
                validator.validate(message["data"])
    return transcript


def subjects(transcript: Transcript) -> list[str]:
    """Return the subjects of the commits, in order."""
    return [record["subject"] for record in transcript.records("commits")]


def refs(transcript: Transcript) -> dict[str, dict[str, Any]]:
    """Return the refs that were emitted, by name."""
    upserts = [m for m in transcript.messages if m.get("stream") == "refs" and m["type"] == "RECORD" and "op" not in m]
    return {message["key"]: message["data"] for message in upserts}


def deleted(transcript: Transcript) -> list[str]:
    """Return the names of the refs that were deleted."""
    return [message["key"] for message in transcript.messages if message.get("op") == "delete"]


def empty_tree(path: Path) -> bytes:
    """Store the empty tree, and return its name."""
    return git(path, "mktree").encode()


def test_reads_every_commit(tmp_path: Path) -> None:
    """Commits come parents first, with both persons, both offsets, and the committer's time in UTC."""
    repository(tmp_path, "one", "two\nlines\n\nand a body")
    first, second = run(tmp_path).records("commits")
    assert second == {
        "sha": git(tmp_path, "rev-parse", "HEAD"),
        "tree": git(tmp_path, "rev-parse", "HEAD^{tree}"),
        "parents": [first["sha"]],
        "author": {"name": "Ann", "email": "ann@example.org", "at": "2023-11-15T00:13:20+02:00"},
        "committer": {"name": "Bob", "email": "bob@example.org", "at": "2023-11-14T16:44:20-05:30"},
        "source_created_at": "2023-11-14T22:14:20Z",
        "subject": "two lines",
        "message": "two\nlines\n\nand a body\n",
        "lossy": False,
    }


def test_a_second_run_emits_nothing(tmp_path: Path) -> None:
    """Where nothing changed, neither a commit nor a ref comes again."""
    repository(tmp_path, "one")
    again = run(tmp_path, run(tmp_path).state)
    assert (again.records("commits"), again.records("refs")) == ([], [])


def test_new_commits_come_alone(tmp_path: Path) -> None:
    """The next run walks what the tips of the last do not reach."""
    state = run(repository(tmp_path, "one", "two")).state
    commit(tmp_path, "three")
    again = run(tmp_path, state)
    assert subjects(again) == ["three"]
    assert again.state["commits"]["tips"] == [git(tmp_path, "rev-parse", "HEAD")]


def test_a_merge_has_its_parents_in_order(tmp_path: Path) -> None:
    """A merge names the branch that was merged into first, and both sides come before it."""
    repository(tmp_path, "base")
    git(tmp_path, "switch", "--quiet", "--create", "side")
    side = commit(tmp_path, "side")
    git(tmp_path, "switch", "--quiet", "main")
    main = commit(tmp_path, "main")
    git(tmp_path, "merge", "--quiet", "--no-ff", "-m", "merged", "side")
    transcript = run(tmp_path)
    assert transcript.records("commits")[-1]["parents"] == [main, side]
    assert sorted(subjects(transcript)) == ["base", "main", "merged", "side"]
    assert len(transcript.state["commits"]["tips"]) == 1


def test_a_force_push_brings_the_new_commits(tmp_path: Path) -> None:
    """After a branch was rewritten, only what is new comes, and the ref points there."""
    state = run(repository(tmp_path, "one", "two")).state
    git(tmp_path, "reset", "--quiet", "--soft", "HEAD~1")
    sha = commit(tmp_path, "two, better")
    again = run(tmp_path, state)
    assert subjects(again) == ["two, better"]
    assert refs(again)["refs/heads/main"]["target"] == sha


def test_a_tip_that_was_pruned_is_ignored(tmp_path: Path) -> None:
    """A tip that is no object any more excludes nothing, and stops nothing."""
    state = run(repository(tmp_path, "one", "two")).state
    git(tmp_path, "reset", "--quiet", "--soft", "HEAD~1")
    commit(tmp_path, "three")
    git(tmp_path, "reflog", "expire", "--expire=now", "--all")
    git(tmp_path, "gc", "--quiet", "--prune=now")
    assert subjects(run(tmp_path, state)) == ["one", "three"]


def test_a_deleted_branch_is_deleted(tmp_path: Path) -> None:
    """A name that a whole listing lacks is gone; its commits stay known."""
    repository(tmp_path, "one")
    git(tmp_path, "branch", "away")
    state = run(tmp_path).state
    git(tmp_path, "branch", "-D", "away")
    again = run(tmp_path, state)
    assert deleted(again) == ["refs/heads/away"]
    assert deleted(run(tmp_path, again.state)) == []


def test_a_broken_ref_deletes_nothing(tmp_path: Path) -> None:
    """Where git passes a ref over, no name is taken for gone, and a later whole listing tells."""
    repository(tmp_path, "one")
    git(tmp_path, "branch", "away")
    state = run(tmp_path).state
    (tmp_path / ".git" / "refs" / "heads" / "away").write_bytes(b"")
    broken = run(tmp_path, state)
    (tmp_path / ".git" / "refs" / "heads" / "away").unlink()
    assert deleted(broken) == []
    assert [m["reason"] for m in broken.messages if m["type"] == "SKIP_RESULT"] == ["broken_refs"]
    assert deleted(run(tmp_path, broken.state)) == ["refs/heads/away"]


def test_refs_have_their_kinds(tmp_path: Path) -> None:
    """Branches, tags, remote branches and the rest are told apart, and an annotated tag is peeled."""
    sha = git(repository(tmp_path, "one"), "rev-parse", "HEAD")
    git(tmp_path, "tag", "-a", "v1", "-m", "first")
    git(tmp_path, "update-ref", "refs/remotes/origin/main", sha)
    git(tmp_path, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    git(tmp_path, "update-ref", "refs/notes/x", sha)
    found = refs(run(tmp_path))
    assert {name: ref["kind"] for name, ref in found.items()} == {
        "HEAD": "head",
        "refs/heads/main": "branch",
        "refs/notes/x": "other",
        "refs/remotes/origin/HEAD": "remote",
        "refs/remotes/origin/main": "remote",
        "refs/tags/v1": "tag",
    }
    tag = found["refs/tags/v1"]
    assert (tag["target"] != sha, tag["peeled"], tag["peeled_type"]) == (True, sha, "commit")
    assert found["HEAD"]["symbolic_target"] == "refs/heads/main"
    assert found["refs/remotes/origin/HEAD"]["symbolic_target"] == "refs/remotes/origin/main"


def test_a_detached_head_is_walked(tmp_path: Path) -> None:
    """A commit that only HEAD reaches is collected, and HEAD stands for no branch."""
    repository(tmp_path, "one")
    git(tmp_path, "switch", "--quiet", "--detach")
    sha = commit(tmp_path, "loose")
    transcript = run(tmp_path)
    assert subjects(transcript) == ["one", "loose"]
    head = refs(transcript)["HEAD"]
    assert (head["target"], head["symbolic_target"]) == (sha, None)


def test_an_empty_repository(tmp_path: Path) -> None:
    """Before its first commit a repository has a HEAD without a target, and that is no failure."""
    transcript = run(repository(tmp_path))
    assert transcript.records("commits") == []
    assert [(r["name"], r["target"], r["symbolic_target"]) for r in transcript.records("refs")] == [
        ("HEAD", None, "refs/heads/main")
    ]
    commit(tmp_path, "one")
    assert subjects(run(tmp_path, transcript.state)) == ["one"]


@pytest.mark.parametrize("place", ["bare.git", "main/sub/folder", "linked", "main/.git"])
def test_any_folder_of_a_repository_will_do(tmp_path: Path, place: str) -> None:
    """A bare clone, a subfolder, a linked work tree and the `.git` folder show the same commits."""
    main = repository(tmp_path / "main", "one")
    (main / "sub" / "folder").mkdir(parents=True)
    git(tmp_path, "clone", "--quiet", "--bare", "main", "bare.git")
    git(main, "worktree", "add", "--quiet", "../linked")
    assert subjects(run(tmp_path / place)) == ["one"]


@pytest.mark.parametrize(("place", "words"), [("", "not a git repository"), ("missing", "There is no folder")])
def test_a_path_that_is_no_repository_fails(tmp_path: Path, place: str, words: str) -> None:
    """The owner is told in a sentence what is wrong with the path."""
    transcript = collect(CONNECTOR, options={"path": str(tmp_path / place)})
    assert transcript.done["status"] == "failed"
    assert words in transcript.done["error"]["message"]


def test_a_foreign_owner_is_no_hindrance(tmp_path: Path) -> None:
    """A repository that belongs to another user is read all the same."""
    repository(tmp_path, "one")
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    for place in (tmp_path, tmp_path / ".git"):
        os.chown(place, 12345, 12345)
    assert subjects(run(tmp_path)) == ["one"]


def test_a_message_that_is_not_utf8(tmp_path: Path) -> None:
    """Bytes that do not fit are replaced, and the record says so."""
    tree = empty_tree(repository(tmp_path))
    person = b"J\xf6rg <j@example.org> 1700000000 +0000"
    written(tmp_path, b"tree %s\nauthor %s\ncommitter %s\n\nna\xefve\0end\n" % (tree, person, person))
    (record,) = run(tmp_path).records("commits")
    assert (record["message"], record["author"]["name"]) == ("na\ufffdve\ufffdend\n", "J\ufffdrg")
    assert record["lossy"] is True


@pytest.mark.parametrize(
    ("encoding", "subject", "lossy"), [(b"ISO-8859-1", "naïve", False), (b"x-none", "na\ufffdve", True)]
)
def test_an_encoding_that_the_commit_names(tmp_path: Path, encoding: bytes, subject: str, lossy: bool) -> None:
    """A named encoding is used if it is known, and otherwise text is replaced."""
    tree = empty_tree(repository(tmp_path))
    person = b"A <a@b> 1700000000 +0000"
    head = b"tree %s\nauthor %s\ncommitter %s\nencoding %s\n\n" % (tree, person, person, encoding)
    written(tmp_path, head + b"na\xefve\n")
    (record,) = run(tmp_path).records("commits")
    assert (record["subject"], record["lossy"]) == (subject, lossy)


@pytest.mark.parametrize("when", [b"99999999999999999 +0000", b"soon", b""])
def test_a_time_that_is_no_time(tmp_path: Path, when: bytes) -> None:
    """An absurd or missing time is null, and the record still has a time to be shared by."""
    tree = empty_tree(repository(tmp_path))
    written(tmp_path, b"tree %s\nauthor A <a@b> 1 +0000\ncommitter A <a@b> %s\n\nx\n" % (tree, when))
    (record,) = run(tmp_path).records("commits")
    assert (record["committer"]["at"], record["source_created_at"]) == (None, "1970-01-01T00:00:00Z")
    assert record["lossy"] is True


def test_refs_whose_names_are_not_utf8(tmp_path: Path) -> None:
    """Two names that differ in a broken byte stay two refs."""
    repository(tmp_path, "one")
    git(tmp_path, "branch", b"na\xefve")
    git(tmp_path, "branch", b"na\xeeve")
    found = refs(run(tmp_path))
    assert {name for name, ref in found.items() if ref["lossy"]} == {"refs/heads/na\\xefve", "refs/heads/na\\xeeve"}


def test_a_ref_without_its_object(tmp_path: Path) -> None:
    """A ref to a missing object is told of, and the other branches are collected."""
    repository(tmp_path, "one")
    (tmp_path / ".git" / "refs" / "heads" / "lost").write_text("1" * 40 + "\n")
    transcript = run(tmp_path)
    assert subjects(transcript) == ["one"]
    assert refs(transcript)["refs/heads/lost"]["peeled"] is None


def test_a_missing_commit_fails_with_words(tmp_path: Path) -> None:
    """History with a hole is no success: the run fails and claims nothing that it did not emit."""
    repository(tmp_path, "one", "two")
    hole = git(tmp_path, "rev-parse", "HEAD~1")
    (tmp_path / ".git" / "objects" / hole[:2] / hole[2:]).unlink()
    transcript = collect(CONNECTOR, options={"path": str(tmp_path)})
    assert transcript.done["status"] == "failed"
    assert "commits" not in transcript.state


def test_a_tag_of_something_else_is_no_commit(tmp_path: Path) -> None:
    """A tag may name a tree or a blob; it is a ref, and no commit is made of it."""
    repository(tmp_path, "one")
    git(tmp_path, "tag", "blob", git(tmp_path, "hash-object", "-w", "--stdin", sent=b"x"))
    transcript = run(tmp_path)
    assert refs(transcript)["refs/tags/blob"]["peeled_type"] == "blob"
    assert subjects(transcript) == ["one"]


def test_every_cursor_of_a_walk_is_true(tmp_path: Path) -> None:
    """From each cursor that a long walk saves, a run emits exactly the commits that came after it."""
    repository(tmp_path)
    script = []
    for n in range(2_500):
        source = b"" if n < 2 else b"from :%d\n" % (n - 1)
        merged = b"merge :%d\n" % n if n % 100 == 99 else b""
        branch = b"commit refs/heads/%s\nmark :%d\n" % (b"main" if n % 2 else b"side", n + 1)
        script.append(branch + b"committer B <b@c> %d +0000\ndata 1\nx\n" % (1_700_000_000 + n) + source + merged)
    git(tmp_path, "fast-import", "--quiet", sent=b"\n".join(script))
    messages = run(tmp_path).messages
    places = [i for i, m in enumerate(messages) if m["type"] == "STATE" and m["stream"] == "commits"]
    assert len(places) == 3
    for place in places:
        later = [m["key"] for m in messages[place:] if m["type"] == "RECORD" and m["stream"] == "commits"]
        again = run(tmp_path, {"commits": messages[place]["cursor"]})
        assert sorted(record["sha"] for record in again.records("commits")) == sorted(later)


def test_a_shallow_clone_that_is_deepened(tmp_path: Path) -> None:
    """Commits behind the tips that a fetch brings later are collected then."""
    origin = repository(tmp_path / "origin", "one", "two", "three")
    git(tmp_path, "clone", "--quiet", "--depth=1", origin.as_uri(), "clone")
    first = run(tmp_path / "clone")
    git(tmp_path / "clone", "fetch", "--quiet", "--unshallow")
    assert (subjects(first), subjects(run(tmp_path / "clone", first.state))) == (["three"], ["one", "two", "three"])


def test_a_repository_may_run_nothing(tmp_path: Path) -> None:
    """Programs that the repository's own configuration names are not started."""
    repository(tmp_path, "one")
    trap, sprung = tmp_path / "trap", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\n")
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "core.pager", "gpg.program", "core.sshCommand", "core.editor", "pager.log"):
        git(tmp_path, "config", name, str(trap))
    git(tmp_path, "config", "log.showSignature", "true")
    run(tmp_path)
    assert not sprung.exists()
