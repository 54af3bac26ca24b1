"""Where a credential may be entered: a hidden prompt, a file, or stdin. Never an argument, never the environment.

A source is checked on what was opened, read once and bounded. What is wrong is told without its path or content.
"""

import fcntl
import os
import select
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from headwater import clock, limits
from headwater.cli.entry_refusals import unavailable
from headwater.connect.fields import entry_fields, read_entry
from headwater.errors import refuse
from headwater.manifest.auth import Method
from headwater.secret import Secret


@dataclass(frozen=True)
class Source:
    """One of the ways, as a command line chose it."""

    kind: Literal["prompt", "file", "stdin"]
    path: str = ""

    def read(self, method: Method) -> Mapping[str, Secret]:
        """Return what is entered for a method: exactly its fields, within five minutes.

        Raise `protected_entry_unavailable` where the source is not one to trust, `invalid_input` where its document
        does not fit the method, `interrupted`, or `timeout`.
        """
        if self.kind == "prompt":
            from headwater.cli.hidden import Hidden

            with Hidden.opened() as terminal:
                return {field.name: terminal.ask(field.label) for field in entry_fields(method)}
        document = _from_file(self.path) if self.kind == "file" else _from_stdin()
        try:
            return read_entry(method, document)
        finally:
            document[:] = bytes(len(document))


def chosen(*, prompt: bool, file: str | None, stdin: bool) -> Source | None:
    """Return the source that the flags choose, None where they choose none. Raise where they choose two (CLI-350)."""
    found = [Source("prompt")] * prompt + [Source("file", file or "")] * (file is not None) + [Source("stdin")] * stdin
    if len(found) > 1:
        raise unavailable("Two sources of the credential are named, and one is meant.")
    return found[0] if found else None


def _from_file(path: str) -> bytearray:
    from headwater.owned import read_private

    try:
        return bytearray(read_private(Path(path), limits.ENTRY_BYTES).reveal())
    except (OSError, ValueError):
        raise unavailable("The file of the credential is not one that only you can read.") from None


def _from_stdin() -> bytearray:
    status = os.fstat(0)
    is_pipe = stat.S_ISFIFO(status.st_mode)
    with suppress(OSError):
        if status.st_uid == os.geteuid() and (_is_own_pipe() if is_pipe else _is_own_file(status)):
            return _all_of_stdin()
    raise unavailable("What stands at stdin is no place for a credential.")


def _is_own_pipe() -> bool:
    """Whether the pipe has no name, and the process that gave it is this user's and of this session."""
    named = os.readlink("/proc/self/fd/0") if Path("/proc/self").exists() else "pipe:"
    parent = os.getppid()
    same = os.getsid(parent) == os.getsid(0)
    mine = not Path("/proc/self").exists() or Path(f"/proc/{parent}").stat().st_uid == os.geteuid()
    return named.startswith("pipe:") and same and mine


def _is_own_file(status: os.stat_result) -> bool:
    """Whether a regular file at stdin is one that `--credential-file` would take."""
    from headwater.owned import folder

    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1 or status.st_mode & 0o077:
        return False
    with folder(_path_of_stdin().parent) as within:
        found = os.stat(_path_of_stdin().name, dir_fd=within, follow_symlinks=False)
    return os.path.samestat(found, status)


def _path_of_stdin() -> Path:
    if hasattr(fcntl, "F_GETPATH"):
        return Path(os.fsdecode(fcntl.fcntl(0, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0")))
    return Path("/proc/self/fd/0").readlink()


def _all_of_stdin() -> bytearray:
    document = bytearray()
    until = clock.monotonic() + limits.ENTRY_SECONDS
    while len(document) <= limits.ENTRY_BYTES:
        left = until - clock.monotonic()
        if left <= 0 or not select.select([0], [], [], left)[0]:
            raise refuse("timeout", "The credential did not come in time.", stage="protected_entry")
        part = os.read(0, limits.ENTRY_BYTES + 1 - len(document))
        if not part:
            break
        document += part
    return document
