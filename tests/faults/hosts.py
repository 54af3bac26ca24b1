"""Hosts by the thousand: each command line runs in a process of its own, forked from one that has imported everything.

As a program it takes jobs from stdin, a JSON object a line: `words` of the command line (`{pid}` stands for the
host's own process), `out` and `err`, the files that it prints to, and `fault`, what its disk does. It answers each
job with the host's pid, and at its end with what `End` says.

The disk is that of the host's store, which is a process of its own. A step may end the store, or host and store.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import apsw

ERRORS = {"full": apsw.FullError, "broken": apsw.IOError}


class Disk(apsw.VFS):
    """The real disk below SQLite, which ends processes or fails at chosen steps; a step is a write or a sync.

    `at` is the first step of the fault, from 1, and `steps` how many it lasts. `kind` is "before", "torn" or "after"
    for a kill before, in the midst of or after that step, or a name of ERRORS. The kill is the host's too, unless
    `alone`.
    """

    def __init__(self, at: int = 0, kind: str = "", steps: int = 1, alone: bool = False) -> None:
        super().__init__("failing", "unix", makedefault=True)
        self.seen, self.kind, self.times, self.alone = 0, kind, range(at, at + steps), alone

    def die(self) -> None:
        for pid in [os.getpid()] if self.alone else [os.getppid(), os.getpid()]:
            os.kill(pid, signal.SIGKILL)

    def xOpen(self, name: Any, flags: list[int]) -> "DiskFile":
        return DiskFile(name, flags, self)


class DiskFile(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int], disk: Disk) -> None:
        self.disk = disk
        super().__init__("unix", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        if kind := self.fault():
            written = {"before": 0, "torn": len(data) // 2, "after": len(data)}[kind]
            super().xWrite(data[:written], offset)
            self.disk.die()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        if kind := self.fault():
            if kind == "after":
                super().xSync(flags)
            self.disk.die()
        super().xSync(flags)

    def fault(self) -> str:
        """Count a step; return how the host is killed at it, or fail where the disk does."""
        self.disk.seen += 1
        if self.disk.seen not in self.disk.times:
            return ""
        if self.disk.kind in ERRORS:
            raise ERRORS[self.disk.kind]
        return self.disk.kind


class End(NamedTuple):
    """The end of a host: its exit status, negative for a signal; the steps of its disk; its memory in bytes."""

    status: int
    steps: int
    memory: int


class Hosts:
    """The other end: starts hosts, one at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.server = subprocess.Popen([sys.executable, __file__], **pipes)

    def start(self, words: list[str], fault: dict[str, Any] | None = None) -> int:
        """Start a host and return its pid."""
        job = {"words": words, "out": str(self.folder / "out"), "err": str(self.folder / "err"), "fault": fault or {}}
        self.server.stdin.write(json.dumps(job) + "\n")
        self.server.stdin.flush()
        return int(self.server.stdout.readline())

    def end(self) -> "End":
        """Wait for the host's end."""
        return End(*map(int, self.server.stdout.readline().split()))

    @property
    def said(self) -> dict[str, Any]:
        """What the last host printed: its result, or the data of its error."""
        text = (self.folder / "out").read_text() or (self.folder / "err").read_text()
        assert "Traceback" not in text, text
        answer = json.loads(text)
        return answer["result"] if answer["ok"] else answer["error"]["data"]

    def close(self) -> None:
        self.server.stdin.close()
        self.server.wait(60)
        self.server.stdout.close()


STORE = """import sys; sys.path[:] = sys.argv[2:]
from faults.hosts import store
store(int(sys.argv[1]), {fault!r}, {steps!r})"""


def store(descriptor: int, fault: dict[str, Any], steps: str) -> None:
    """Be a host's store on a disk with a fault, and write down at the end how many steps the disk saw."""
    from headwater.store.served import serve

    disk = Disk(**fault)
    serve(descriptor)
    told = Path(steps).with_suffix(f".{os.getpid()}")
    told.write_text(str(disk.seen))
    told.replace(steps)  # whole at any time: a store may outlive its host, and the host's end is told by then


def serve() -> None:
    import headwater.cli.collect
    import headwater.cli.running
    import headwater.collect.recovery
    import headwater.manifest.reading
    import headwater.store.apart  # noqa: F401 - each host finds them all imported
    from headwater.cli.main import main
    from headwater.store import starting

    def host(words: list[str], out: str, err: str, fault: dict[str, Any], steps: str) -> None:
        for descriptor, path in ((0, os.devnull), (1, out), (2, err)):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), descriptor)
        sys.path.insert(0, str(Path(__file__).parents[1]))
        starting._PROGRAM = STORE.format(fault=fault, steps=steps)
        try:
            main([word.format(pid=os.getpid()) for word in words])
        except SystemExit as end:
            os._exit(int(end.code or 0))

    for line in sys.stdin:
        job = json.loads(line)
        steps = Path(job["out"]).with_name("steps")
        steps.write_text("0")
        if (pid := os.fork()) == 0:
            host(**job, steps=str(steps))
        print(pid, flush=True)
        _, status, used = os.wait4(pid, 0)
        print(os.waitstatus_to_exitcode(status), steps.read_text(), used.ru_maxrss * 1024, flush=True)


if __name__ == "__main__":
    serve()
