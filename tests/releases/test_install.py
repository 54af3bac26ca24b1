"""`headwater definitions install`: what it keeps, what it says, and what it leaves as it was."""

import ctypes
import fcntl
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from journeys.conftest import Answer, Headwater
from releases.making import FILES, MISMATCH, TAG, UNAVAILABLE, UNWRITTEN, Person, packed

PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2


def run(person: Person, mode: str, *words: str) -> Answer:
    """Type a command."""
    where = ["--config", str(person.settings.config_path), "--state-dir", str(person.settings.state_dir)]
    return Headwater(person.home).run([sys.executable, "-m", "headwater", *where, "--output", mode, *words], "")


def typed(person: Person, *words: str) -> Answer:
    return run(person, "json", "definitions", "install", *words)


class TestCommand:
    @pytest.mark.clause("CLI-500", "CLI-519", "CLI-521", "CLI-524")
    def test_a_release_is_kept_whole_and_named(self, person):
        digest = person.publish(features=["query_fixed"])
        told = typed(person, "--source", str(person.source), "--tag", TAG).result
        entry = person.settings.releases_dir / digest
        named = {"source": str(person.source), "tag": TAG, "commit": "0123456789" * 4, "index_sha256": digest}
        assert told == {
            **named,
            "features": ["query_fixed"],
            "files": 3,
            "lock_path": str(person.settings.config_path.with_name("definitions.lock")),
            "cache_path": str(entry),
            "cache_entry": "created",
        }
        assert person.lock() == {"format": "connectors-definitions-lock/1", **named}
        assert stat.S_IMODE(person.settings.definitions_lock_path.stat().st_mode) == 0o600
        held = {f"files/{path}": content for path, content in FILES.items()}
        held["index.json"] = (person.source / TAG / "index.json").read_bytes()
        files = [path for path in entry.rglob("*") if path.is_file()]
        assert {str(path.relative_to(entry)): path.read_bytes() for path in files} == held
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o444}
        folders = [entry, *(path for path in entry.rglob("*") if path.is_dir())]
        assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o555}
        assert typed(person, "--source", str(person.source), "--tag", TAG).result == {**told, "cache_entry": "existing"}

    @pytest.mark.clause("CLI-501")
    @pytest.mark.parametrize("words", [("--tag", TAG), ("--source", "."), ()])
    def test_source_and_tag_have_to_be_said(self, words, person):
        answer = typed(person, *words)
        assert (answer.status, json.loads(answer.stderr)["error"]["code"]) == (2, "cli_parse")

    @pytest.mark.clause("CLI-505")
    def test_a_configuration_is_needed(self, person):
        person.publish()
        person.settings.config_path.unlink()
        answer = typed(person, "--source", str(person.source), "--tag", TAG)
        told = {name: answer.failure[name] for name in ("code", "stage", "next_action", "configuration_rule")}
        assert answer.status == 2
        assert tuple(told.values()) == (
            "invalid_configuration",
            "configuration",
            "check_configuration",
            "config_missing",
        )
        person.settings.config_path.touch(mode=0o600)
        assert typed(person, "--source", str(person.source), "--tag", TAG).failure["code"] == "invalid_configuration"
        assert person.kept() == {}

    @pytest.mark.clause("CLI-505", "CLI-506", "CLI-507")
    def test_nothing_else_becomes_of_it(self, person):
        """Connectors, instances and connections are the same, whatever the lock says; no owner runs."""
        with person.settings.config_path.open("a") as file:
            file.write("[connectors.github.instances.work]\n")
        named = ("instances describe github/work", "connections list github/work", "operations list github/work")
        looks = [look.split() for look in ("list", "instances list", *named)]
        person.publish({"github/api.toml": b"name = 'another'\n"})
        before = [{**run(person, "json", *words).result, "observed_at_ms": 0} for words in looks]
        state = {path.name for path in person.settings.state_dir.iterdir()}
        database = person.settings.database_path.read_bytes()
        typed(person, "--source", str(person.source), "--tag", TAG).result  # noqa: B018
        assert {path.name for path in person.settings.state_dir.iterdir()} - state == {"installed-definitions"}
        assert person.settings.database_path.read_bytes() == database
        assert [{**run(person, "json", *words).result, "observed_at_ms": 0} for words in looks] == before
        person.settings.definitions_lock_path.write_text("not a lock")
        assert [{**run(person, "json", *words).result, "observed_at_ms": 0} for words in looks] == before

    @pytest.mark.clause("CLI-505")
    def test_no_credential_is_read_and_nothing_is_started(self, person):
        """The sealed file of the credentials is not opened, no process begins and nobody is called."""
        sealed = f'binding = "sealed_file"\nfile = "{person.home}/own/sealed"\nkey_file = "{person.home}/own/key"\n'
        for name, content in (
            ("key", "k" * 43),
            ("collect.toml", f'format = "headwater-collect/1"\n[custody]\n{sealed}'),
        ):
            (person.home / "own" / name).touch(mode=0o600)
            (person.home / "own" / name).write_text(content)
        person.publish()
        begun = {"subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "socket.connect"}
        child = os.fork()
        if child == 0:

            def watch(event: str, arguments: tuple[object, ...]) -> None:
                if event in begun or (event == "open" and str(arguments[0]).endswith(("key", "sealed"))):
                    os._exit(1)

            sys.addaudithook(watch)
            person.install()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0

    @pytest.mark.clause("CLI-518")
    def test_a_release_of_connectors_that_nobody_knows_installs(self, person):
        person.publish({"nonesuch/api.toml": b"\0\xff"}, under="99.0")
        assert person.install(tag="99.0")["files"] == 1

    def test_a_person_is_told_where_it_is(self, person):
        person.publish()
        words = ["--source", str(person.source), "--tag", TAG]
        assert "Release 0.3.0 is installed: 3 files." in run(person, "human", "definitions", "install", *words).stdout
        assert "was there already" in run(person, "human", "definitions", "install", *words).stdout
        person.publish(features=["graphql_reads"])
        assert "  feature: graphql_reads\n" in run(person, "human", "definitions", "install", *words).stderr


def weakly(person: Person, weaken: Callable[[], object]) -> tuple[str, str, str, int]:
    """Install by a command that is weakened first; return how it is refused."""
    where = ["--config", str(person.settings.config_path), "--state-dir", str(person.settings.state_dir)]
    words = ["--output", "json", "definitions", "install", "--source", str(person.source), "--tag", TAG]
    line = [sys.executable, "-m", "headwater", *where, *words]
    done = subprocess.run(line, preexec_fn=weaken, capture_output=True)
    told = json.loads(done.stderr)["error"]["data"]
    return told["code"], told["stage"], told["next_action"], done.returncode


def without_privileges() -> None:
    """Let go of what lets root read and write everything; for anybody else that is nothing."""
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


class TestEntries:
    @pytest.mark.clause("CLI-523", "CLI-524")
    def test_entries_stay_beside_each_other_and_the_lock_names_the_last(self, person):
        first, second = person.publish(), person.publish({"b": b"2"}, under="0.4.0")
        for tag, digest, entry in ((TAG, first, "created"), ("0.4.0", second, "created"), (TAG, first, "existing")):
            assert person.install(tag=tag)["cache_entry"] == entry
            assert person.lock()["index_sha256"] == digest
        assert {path.name for path in person.settings.releases_dir.iterdir()} == {first, second}

    @pytest.mark.clause("CLI-523")
    def test_the_same_files_under_another_index_are_another_entry(self, person):
        person.publish()
        person.install()
        person.publish(commit="f" * 64)
        assert person.install()["cache_entry"] == "created"
        assert len(list(person.settings.releases_dir.iterdir())) == 2

    def test_a_release_without_files_is_kept_too(self, person):
        person.publish({}, packed({}))
        assert person.install()["files"] == 0
        assert person.install()["cache_entry"] == "existing"


def put(path: Path, change: Callable[[Path], object]) -> None:
    """Change what has a path, in a folder that cannot be written."""
    mode = stat.S_IMODE(path.parent.stat().st_mode)
    path.parent.chmod(0o700)
    change(path)
    path.parent.chmod(mode)


def alter(path: Path, content: bytes) -> None:
    path.chmod(0o600)
    path.write_bytes(content)
    path.chmod(0o444)


def touch(path: Path) -> None:
    os.close(os.open(os.fsencode(path), os.O_CREAT, 0o444))


def turn_into_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir(0o555)


def turn_into_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o444)


def link(path: Path) -> None:
    target = path.with_name("moved")
    path.rename(target)
    path.symlink_to(target.name)


API = "files/acme/api.toml"
ALTERED = {
    "a file with other bytes": ("acme/api.toml", lambda at: alter(at / API, b"name = 'evil'\n")),
    "a longer file": ("acme/api.toml", lambda at: alter(at / API, FILES["acme/api.toml"] + b"\n")),
    "a file that can be written": ("acme/api.toml", lambda at: (at / API).chmod(0o644)),
    "a program": ("acme/api.toml", lambda at: (at / API).chmod(0o555)),
    "a file that is gone": ("acme/api.toml", lambda at: put(at / API, Path.unlink)),
    "a file that is a folder": ("acme/api.toml", lambda at: put(at / API, turn_into_a_folder)),
    "a pipe": ("empty.toml", lambda at: put(at / "files/empty.toml", turn_into_a_pipe)),
    "a link to a file": ("acme/api.toml", lambda at: put(at / API, link)),
    "a surplus file": ("acme/more/x", lambda at: put(at / "files/acme/more/x", touch)),
    "a surplus folder": ("x", lambda at: put(at / "files/x", lambda path: path.mkdir(0o555))),
    "a name that is no text": ("?", lambda at: put(at / "files/\udcff", touch)),
    "a link to a folder": ("acme", lambda at: put(at / "files/acme", link)),
    "a folder that can be written": ("acme", lambda at: (at / "files/acme").chmod(0o755)),
    "another index": ("index.json", lambda at: alter(at / "index.json", b"{}")),
    "an index that can be written": ("index.json", lambda at: (at / "index.json").chmod(0o644)),
    "no index": ("index.json", lambda at: put(at / "index.json", Path.unlink)),
    "a surplus file at the top": ("", lambda at: put(at / "x", touch)),
    "an entry that can be written": ("", lambda at: at.chmod(0o755)),
    "files that can be written": ("", lambda at: (at / "files").chmod(0o755)),
    "a link to the entry": ("", link),
}


@pytest.mark.clause("CLI-520")
@pytest.mark.parametrize(("file", "change"), ALTERED.values(), ids=ALTERED)
def test_an_entry_that_was_changed_is_told_and_left(file, change, person):
    digest = person.publish()
    person.install()
    change(person.settings.releases_dir / digest)
    assert person.code() == MISMATCH
    assert person.refusal().data == {"file": file or digest}


@pytest.mark.clause("CLI-520")
@pytest.mark.parametrize("make", [Path.touch, Path.mkdir], ids=["file", "folder"])
def test_what_stands_in_the_place_of_an_entry_is_never_replaced(make, person):
    digest = person.publish()
    person.settings.releases_dir.mkdir(mode=0o700)
    make(person.settings.releases_dir / digest)
    assert person.code() == MISMATCH
    assert person.refusal().data == {"file": digest}


class TestUnwritten:
    @pytest.mark.clause("CLI-527")
    @pytest.mark.parametrize("place", ["cache", "lock"])
    def test_a_cache_or_a_lock_that_cannot_be_written_keeps_nothing(self, place, person):
        """A file stands where the one goes; a folder where the other does."""
        person.publish()
        if place == "cache":
            person.settings.releases_dir.touch()
        else:
            person.settings.definitions_lock_path.mkdir()
        assert person.code() == UNWRITTEN
        assert list(person.settings.releases_dir.glob("*")) == []
        assert {path.name for path in person.settings.config_path.parent.iterdir()} <= {
            "config.toml",
            "definitions.lock",
        }

    @pytest.mark.clause("CLI-527")
    @pytest.mark.parametrize("mode", [0o770, 0o777])
    def test_a_cache_that_others_can_write_is_not_used(self, mode, person):
        person.publish()
        person.settings.releases_dir.mkdir()
        person.settings.releases_dir.chmod(mode)
        assert person.code() == UNWRITTEN

    @pytest.mark.clause("CLI-527")
    def test_a_cache_that_is_a_link_is_not_used(self, person):
        person.publish()
        (person.home / "elsewhere").mkdir(mode=0o700)
        person.settings.releases_dir.symlink_to(person.home / "elsewhere")
        assert person.code() == UNWRITTEN
        assert list((person.home / "elsewhere").iterdir()) == []

    @pytest.mark.clause("CLI-527")
    def test_a_path_that_no_disk_takes_keeps_nothing(self, person):
        deep, long = "/".join("a" * 200), "/".join(["b" * 250] * 20)
        for number, path in enumerate((deep, long)):
            person.publish({path: b"1"}, under=str(number))
            assert person.code(tag=str(number)) == UNWRITTEN
            assert list(person.settings.releases_dir.glob("*")) == []

    @pytest.mark.clause("CLI-523", "CLI-527")
    @pytest.mark.parametrize("size", [100, 100_000])
    def test_a_full_disk_leaves_the_old_lock_and_no_half_entry(self, size, person):
        """It is full at the lock, or within the files."""
        person.publish({"a": b"1"})
        person.install()
        person.publish({"large": os.urandom(200_000)})
        before = person.kept()
        assert weakly(person, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))) == UNWRITTEN
        assert person.kept() == before

    @pytest.mark.clause("CLI-526", "CLI-527")
    @pytest.mark.parametrize(("folder", "told"), [("state", UNWRITTEN), ("own", UNWRITTEN), ("source", UNAVAILABLE)])
    def test_a_folder_without_permission_is_told(self, folder, told, person):
        """The state and the configuration's folder can only be read; the source not even that."""
        person.publish()
        (person.home / folder).chmod(0 if folder == "source" else 0o500)
        assert weakly(person, without_privileges) == told
        (person.home / folder).chmod(0o700)
        assert person.kept() == {}
        assert person.install()["cache_entry"] == "created"

    @pytest.mark.clause("CLI-527")
    def test_two_at_once_do_not_meet(self, person):
        person.publish()
        person.install()
        home = os.open(person.settings.releases_dir, os.O_RDONLY)
        fcntl.flock(home, fcntl.LOCK_EX)
        assert person.code() == UNWRITTEN
        os.close(home)
        assert person.install()["cache_entry"] == "existing"


# Each step of the file system that Python does shows up as one of these.
STEPS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.scandir", "fcntl.flock"}


def killed_at(step: int, person: Person) -> bool:
    """Install 0.4.0 in a process that is killed before its nth step; say whether the kill came."""
    child = os.fork()
    if child == 0:
        left = [step]

        def count(event: str, _arguments: object) -> None:
            if event in STEPS:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        person.install(tag="0.4.0")
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.clause("CLI-519", "CLI-523")
def test_a_kill_leaves_an_entry_whole_or_not_there_and_a_lock_that_names_a_whole_one(person):
    """Before every step; and the next install is whole, and sweeps away what was left."""
    old = person.publish({"a": b"1"})
    new = person.publish({"b/c": b"2" * 70_000, "d": b"3"}, under="0.4.0")
    person.install()
    home, seen, step = person.settings.releases_dir, set(), 1
    while killed_at(step, person):
        entries = {path.name for path in home.iterdir() if not path.name.startswith("unfinished")}
        seen.add((new in entries, person.lock()["index_sha256"] == new))
        assert old in entries <= {old, new}
        assert person.lock()["index_sha256"] in entries
        person.install(tag="0.4.0")
        assert {path.name for path in home.iterdir()} == {old, new}
        person.install()
        subprocess.run(["chmod", "-R", "u+w", home / new], check=True)
        shutil.rmtree(home / new)
        step += 1
    assert seen == {(False, False), (True, False), (True, True)}
    assert step > 20
