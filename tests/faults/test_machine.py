"""A machine that fails: full, read-only, locked, spoiled, another's, out of time, files or processes.

Each time there is a sentence and an exit status, nothing that was stored is lost, and the next run is fine.
"""

import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import needs
import pytest

GUESTS = Path(__file__).parents[1] / "guests"
CLOCK, PROCESSES = (Path(__file__).with_name(name) for name in ("clock.c", "processes.c"))
SEED = os.environ["HEADWATER_SEED"]


class Machine:
    """A Headwater over the guests' manifest, each command in a process of its own, within another if need be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "s"
        self.database = self.state / "headwater.db"
        self.within: Sequence[str] = ()
        self.limits: Callable[[], None] | None = None
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}

    def start(self, *words: str) -> "subprocess.Popen[str]":
        where = ["--config", str(self.folder / "c.toml"), "--state-dir", str(self.state), "--output", "json"]
        command = [*self.within, sys.executable, "-m", "headwater", *where, *words]
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, env=self.environment, text=True, preexec_fn=self.limits, **pipes)  # noqa: PLW1509

    def type(self, *words: str) -> tuple[int, dict[str, Any]]:
        """Type a command; return its exit status, and its result or the data of its error."""
        return answer(self.start(*words))

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        with sqlite3.connect(self.database) as connection:
            return connection.execute(sql).fetchall()

    def known(self) -> set[str]:
        return {key for (key,) in self.ask("SELECT key FROM records")}

    def dated(self) -> str:
        """Return the year in which a stream was last written to."""
        ((newest,),) = self.ask("SELECT updated_at FROM streams WHERE name = 'alpha'")
        return newest[:4]

    def collecting(self, guest: str, *words: str) -> list[str]:
        program = sys.executable if guest.endswith(".py") else "/bin/sh"
        return ["collect", "--manifest", str(GUESTS / "manifest.json"), "--", program, str(GUESTS / guest), *words]

    def collect(self, guest: str = "good.sh", *words: str, options: Sequence[str] = ()) -> tuple[int, dict[str, Any]]:
        return self.type("collect", *options, *self.collecting(guest, *words)[1:])

    def is_fine(self) -> None:
        """Run once more without a fault, and find what was stored before any fault."""
        self.within, self.limits = (), None
        status, result = self.collect()
        assert (status, result.get("status")) == (0, "succeeded"), result
        assert self.ask("PRAGMA integrity_check") == [("ok",)]
        assert self.ask("SELECT count(*) FROM runs WHERE status = 'running'") == [(0,)]
        assert self.type("records", "get", "guest/adhoc", "alpha", "a0")[0] == 0


def answer(process: "subprocess.Popen[str]") -> tuple[int, dict[str, Any]]:
    stdout, stderr = process.communicate(timeout=100)
    assert "Traceback" not in stderr, stderr
    said = json.loads(stdout or stderr)
    return process.returncode, said["result"] if said["ok"] else said["error"]["data"]


@pytest.fixture
def machine(tmp_path):
    """A Headwater that has collected once."""
    one = Machine(tmp_path)
    assert one.collect()[0] == 0
    return one


def refused(said: tuple[int, dict[str, Any]], code: str, words: str) -> None:
    """Hold a command to have failed with a code and a sentence."""
    status, data = said
    assert (status, data.get("code")) == (1, code), data
    assert words in data["message"]


# The disk.

ON_A_DISK_OF_ITS_OWN = """
mount -t tmpfs -o "size=$1,mode=700" none "$2" || exit 99
shift 2
"$@" > "$OUT/full" 2>&1; echo $? >> "$OUT/full"
mount -o remount,size=256m "$STATE"
"$@" > "$OUT/roomy" 2>&1; echo $? >> "$OUT/roomy"
mount -o remount,ro "$STATE"
"$@" > "$OUT/readonly" 2>&1; echo $? >> "$OUT/readonly"
cp "$STATE"/headwater.db* "$OUT"
"""


@needs.namespaces
@pytest.mark.clause("CP-410", "CP-411")
@pytest.mark.parametrize("size", ["64k", "200k", "1m", "3m"])
def test_a_disk_that_is_really_full(tmp_path, size):
    """Without room a run fails and says why, with room it is whole, and on a read-only disk nothing is started."""
    (tmp_path / "s").mkdir()
    (tmp_path / "out").mkdir()
    where = ["--config", str(tmp_path / "c.toml"), "--state-dir", str(tmp_path / "s"), "--output", "json"]
    guest = ["--manifest", str(GUESTS / "manifest.json"), "--", sys.executable, "-SE", str(GUESTS / "speaks_early.py")]
    headwater = [sys.executable, "-m", "headwater", *where, "collect", *guest]
    shell = ["unshare", "--map-root-user", "--mount", "sh", "-c", ON_A_DISK_OF_ITS_OWN, "sh", size, str(tmp_path / "s")]
    environment = {"PATH": os.environ["PATH"], "HOME": "/", "STATE": str(tmp_path / "s"), "OUT": str(tmp_path / "out")}
    done = subprocess.run([*shell, *headwater], env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout
    full, roomy, readonly = (ended(tmp_path / "out" / name) for name in ("full", "roomy", "readonly"))
    assert full[0] == 1
    assert full[1]["message"].startswith("The disk is full.")
    assert full[1].get("checkpoints", {"committed": []})["committed"] == []
    assert (roomy[0], roomy[1]["status"]) == (0, "succeeded")
    assert (readonly[0], readonly[1]["code"]) == (1, "metadata_unavailable")
    with sqlite3.connect(tmp_path / "out" / "headwater.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT count(*) FROM records").fetchall() == [(50_000,)]
        assert connection.execute("SELECT count(*) FROM versions").fetchall() == [(50_000,)]


def ended(path: Path) -> tuple[int, dict[str, Any]]:
    line, status = path.read_text().splitlines()
    said = json.loads(line)
    return int(status), said["result"] if said["ok"] else said["error"]["data"]


@needs.namespaces
def test_a_database_file_that_is_read_only(machine):
    """The run is refused before anything starts; what is there can go on being used afterwards."""
    bound = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    machine.within = ["unshare", "--map-root-user", "--mount", "sh", "-c", bound, str(machine.database)]
    refused(machine.collect("touches.sh", str(machine.folder / "touched")), "metadata_unavailable", "not at all")
    assert not (machine.folder / "touched").exists()
    machine.is_fine()


@needs.namespaces
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_state_directory_of_somebody_else(machine):
    """It is refused with a sentence, and nothing is started."""
    os.chown(machine.state, 54_321, 54_321)
    machine.within = ["unshare", "--map-root-user"]
    refused(machine.collect("touches.sh", str(machine.folder / "touched")), "metadata_unavailable", "cannot be written")
    refused(machine.type("runs", "list"), "metadata_unavailable", "")
    assert not (machine.folder / "touched").exists()
    os.chown(machine.state, 0, 0)
    machine.is_fine()


# The database.


def test_a_file_that_is_no_database(machine):
    """It is refused, by collecting and by looking, and left as it is."""
    kept, junk = machine.database.read_bytes(), random.Random(SEED).randbytes(40_000)
    machine.database.write_bytes(junk)
    refused(machine.collect(), "metadata_unavailable", "not a sound Headwater database")
    refused(machine.type("runs", "list"), "metadata_unavailable", "not a sound Headwater database")
    assert machine.database.read_bytes() == junk
    machine.database.write_bytes(kept)
    machine.is_fine()


def test_the_database_of_another_program(machine):
    """No table of ours is put into it."""
    kept = machine.database.read_bytes()
    machine.database.unlink()
    with sqlite3.connect(machine.database) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    refused(machine.collect(), "metadata_unavailable", "another program")
    refused(machine.type("runs", "list"), "metadata_unavailable", "")
    with sqlite3.connect(machine.database) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
    machine.database.write_bytes(kept)
    machine.is_fine()


@pytest.mark.parametrize("number", range(6))
def test_pages_that_are_spoiled(machine, number):
    """Whatever pages are lost, each command answers, or says that the file is not sound."""
    chance = random.Random(f"{SEED}:{number}")
    kept = machine.database.read_bytes()
    pages = len(kept) // 4096
    with machine.database.open("r+b") as file:
        for page in chance.sample(range(1, pages), max(1, pages * (number + 1) // 8)):
            file.seek(page * 4096)
            file.write(chance.choice([bytes(4096), chance.randbytes(4096)]))
    looks = (["runs", "list"], ["runs", "explain"], ["records", "list", "guest/adhoc", "alpha"], ["gaps", "list"])
    for words in (*looks, ["state", "show", "guest/adhoc"], machine.collecting("good.sh")):
        status, data = machine.type(*words)
        assert status in (0, 1)
        if status == 1:
            assert {data["code"], data.get("cause")} & {"metadata_unavailable", "storage_failed", "not_found"}, data
    for file in machine.state.glob("headwater.db*"):
        file.unlink()
    machine.database.write_bytes(kept)
    machine.is_fine()


def test_a_database_that_another_program_locks_for_a_while(machine):
    """The run waits for the lock, and succeeds when it is let go."""
    other = apsw.Connection(str(machine.database))
    other.execute("BEGIN IMMEDIATE")
    process = machine.start(*machine.collecting("good.sh"))
    waiting(process)
    other.execute("COMMIT")
    status, result = answer(process)
    assert (status, result["status"]) == (0, "succeeded")
    other.close()
    machine.is_fine()


def waiting(process: "subprocess.Popen[str]") -> None:
    """Return once a process has opened the database: it can then only wait for the lock."""
    while not any("headwater.db" in name for name in opened(process.pid)):
        assert process.poll() is None


def opened(pid: int) -> Iterator[str]:
    """Yield the files that a process and its children have open."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        family = [pid, *map(int, file.read().split())]
    for entry in (entry for one in family for entry in Path(f"/proc/{one}/fd").iterdir()):
        with suppress(OSError):  # it was closed meanwhile
            yield os.readlink(entry)


def test_a_database_that_another_program_never_lets_go(machine):
    """After its time the run is refused, and says for how long it waited."""
    other = apsw.Connection(str(machine.database))
    other.execute("BEGIN IMMEDIATE")
    refused(machine.collect("touches.sh", str(machine.folder / "touched")), "storage_failed", "locked for 30 seconds")
    assert not (machine.folder / "touched").exists()
    other.execute("ROLLBACK")
    other.close()
    machine.is_fine()


# The clock.


@needs.compiler
@pytest.mark.parametrize("years", [-10, 10])
def test_a_clock_that_jumps(machine, years):
    """The wall clock dates what happens and decides nothing: no deadline comes early, and no order is lost."""
    hands, *pipes = (machine.folder / name for name in ("hands", "first", "second"))
    hands.write_text("0")
    for pipe in pipes:
        os.mkfifo(pipe)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", machine.folder / "clock.so", CLOCK, "-ldl"], check=True)
    machine.environment |= {"LD_PRELOAD": str(machine.folder / "clock.so"), "HANDS": str(hands)}
    here = int(machine.dated())
    words = machine.collecting("turns.sh", *map(str, pipes))
    process = machine.start("collect", "--idle-timeout", "60", "--time-limit", "90", *words[1:])
    while "a1" not in machine.known():
        assert process.poll() is None
    hands.write_text(str(years * 366 * 86_400))
    pipes[0].read_bytes()
    while int(machine.dated()) not in (here + years, here + years + 1, here + years - 1):
        assert process.poll() is None
    hands.write_text("0")
    pipes[1].read_bytes()
    status, result = answer(process)
    assert (status, result.get("status")) == (0, "succeeded"), result
    hands.write_text(str(years * 366 * 86_400))
    assert machine.collect("silent.sh", options=["--idle-timeout", "0.5"])[1]["cause"] == "idle"
    machine.is_fine()
    causes = [run["cause"] for run in machine.type("runs", "list")[1]["items"]]
    assert causes == ["succeeded", "idle", "succeeded", "succeeded"]


# Files and processes.


@pytest.mark.parametrize("files", [*range(8, 34, 2), 64])
def test_a_machine_without_file_descriptors(machine, files):
    """The command says that the machine has none left, or that its database could not be opened, or succeeds."""
    machine.limits = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    status, data = machine.collect()
    if status == 0:
        assert data["status"] == "succeeded"
    else:
        assert {data["code"], data.get("cause")} & {"machine_exhausted", "metadata_unavailable", "storage_failed"}, data
    assert status == 0 or files < 64
    machine.is_fine()


@needs.compiler
@pytest.mark.parametrize("processes", range(7))
def test_a_machine_without_processes(machine, processes):
    """The command says so, or succeeds, and nothing is lost."""
    library = machine.folder / "processes.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, PROCESSES, "-ldl"], check=True)
    machine.environment |= {"LD_PRELOAD": str(library), "PROCESSES": str(processes)}
    status, data = machine.collect()
    if status == 0:
        assert data["status"] == "succeeded"
    else:
        assert {data["code"], data.get("cause")} & {"machine_exhausted", "storage_failed"}, data
    assert status == 0 or processes < 6
    del machine.environment["LD_PRELOAD"]
    machine.is_fine()
