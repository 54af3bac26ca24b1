"""The git program as this connector uses it: it reads, asks nobody, and runs nothing that a repository names."""

import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Final

SECONDS: Final = 600
ERROR_BYTES: Final = 2_000
_COMMAND: Final = (
    "git",
    "--no-pager",
    "-c",
    "safe.directory=*",
    "-c",
    "log.showSignature=false",
    "-c",
    "core.fsmonitor=false",
    "-c",
    f"core.hooksPath={os.devnull}",
    "-c",
    "protocol.allow=never",
)
_WALK: Final = ("rev-list", "--ignore-missing", "--all", "--reverse", "--topo-order", "--stdin")
_ENVIRONMENT: Final = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


class GitError(Exception):
    """Git refused; its own words say why."""


@dataclass(frozen=True)
class Ref:
    """A ref as git lists it; `name` and `symbolic_target` are bytes, for git holds them to no encoding."""

    name: bytes
    target: str | None
    symbolic_target: bytes


class Repository:
    """One repository, found from any folder in it."""

    def __init__(self, path: str) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self._environment = {**inherited, **_ENVIRONMENT}
        self._command = (*_COMMAND, "-C", path)
        self._run("rev-parse", "--git-dir")

    def refs(self) -> tuple[list[Ref], str]:
        """List HEAD, then all refs; return also what git says of refs that it could not read, and leaves out."""
        target = self._run("rev-parse", "--quiet", "--verify", "HEAD", accept=(0, 1)).stdout
        symbolic = self._run("symbolic-ref", "--quiet", "HEAD", accept=(0, 1)).stdout
        refs = [Ref(b"HEAD", _sha(target), symbolic.rstrip(b"\n"))]
        listed = self._run("for-each-ref", "--format=%(objectname)%00%(symref)%00%(refname)")
        for line in listed.stdout.split(b"\n")[:-1]:
            sha, symbolic, name = line.split(b"\0")
            refs.append(Ref(name, sha.decode("ascii"), symbolic))
        return refs, _words(listed.stderr) if listed.stderr else ""

    def peel(self, names: Iterable[str]) -> list[tuple[str, str] | None]:
        """Return the sha and type of what each object leads to through tags; None where it is missing."""
        asked = "".join(f"{name}^{{}}\n" for name in names).encode("ascii")
        answers = self._run("cat-file", "--batch-check=%(objectname) %(objecttype)", sent=asked).stdout
        words = [line.decode("utf-8", "replace").split(" ") for line in answers.split(b"\n")[:-1]]
        return [(a[0], a[1]) if len(a) == 2 and a[1] != "missing" else None for a in words]

    def shallow(self) -> str:
        """Return the commits at which a shallow clone was cut off."""
        place = self._run("rev-parse", "--path-format=absolute", "--git-path", "shallow").stdout
        try:
            with open(place.removesuffix(b"\n"), "rb") as file:
                return " ".join(sorted(file.read().decode("ascii", "replace").split()))
        except FileNotFoundError:
            return ""

    def commits(self, known: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Read all commits that a ref or a HEAD reaches and the known ones do not, parents before children."""
        with tempfile.TemporaryFile() as errors:
            walk = self._start(_WALK, subprocess.PIPE, errors)
            assert walk.stdin is not None
            assert walk.stdout is not None
            read = self._start(("cat-file", "--batch", "--buffer"), walk.stdout, errors)
            walk.stdout.close()
            assert read.stdout is not None
            try:
                _send(walk.stdin, known)
                yield from _objects(read.stdout)
                statuses = walk.wait(SECONDS), read.wait(SECONDS)
            finally:
                for process in (read, walk):
                    process.kill()
                    process.wait()
                read.stdout.close()
            if any(statuses):
                errors.seek(0)
                raise GitError(_words(errors.read(ERROR_BYTES)))

    def _run(
        self, *arguments: str, sent: bytes = b"", accept: tuple[int, ...] = (0,)
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            done = subprocess.run(
                (*self._command, *arguments),
                input=sent,
                capture_output=True,
                env=self._environment,
                timeout=SECONDS,
                check=False,
            )
        except OSError as error:
            raise GitError(f"the program git cannot be run ({error.strerror})") from error
        except subprocess.TimeoutExpired as error:
            raise GitError(f"git gave no answer within {SECONDS} seconds") from error
        if done.returncode not in accept:
            raise GitError(_words(done.stderr))
        return done

    def _start(self, arguments: tuple[str, ...], stdin: int | IO[bytes], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            (*self._command, *arguments), stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, env=self._environment
        )


def _sha(line: bytes) -> str | None:
    word = line.strip().decode("ascii", "replace")
    return word if len(word) in (40, 64) else None


def _send(pipe: IO[bytes], known: Iterable[str]) -> None:
    """Name the commits to leave out; a git that ended early says so by its status."""
    try:
        with pipe:
            for sha in known:
                pipe.write(f"^{sha}\n".encode("ascii"))
    except BrokenPipeError:
        pass


def _objects(pipe: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """Read what `cat-file --batch` writes: a line with name, type and size, then the object."""
    while header := pipe.readline():
        words = header.decode("utf-8", "replace").split()
        if len(words) != 3:
            raise GitError(f"an object is missing: {header.decode('utf-8', 'replace').strip()}")
        content = pipe.read(int(words[2]) + 1)
        if len(content) != int(words[2]) + 1:
            raise GitError("an object is cut short")
        yield words[0], content[:-1]


def _words(stderr: bytes) -> str:
    """Return the first line in which git says what is wrong."""
    lines = stderr[:ERROR_BYTES].decode("utf-8", "replace").splitlines()
    telling = [line for line in lines if line.startswith(("fatal: ", "error: "))] or lines or ["git gave no reason"]
    return telling[0].removeprefix("fatal: ").removeprefix("error: ")
