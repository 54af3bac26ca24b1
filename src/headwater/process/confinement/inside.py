"""The program that holds itself to rules and becomes the connector: same process, same pipes, same end.

Its first argument is the `Rules` as JSON, the others are the connector's command. It imports little, since each run
waits for it.
"""

import ctypes
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TypedDict

from headwater.process.confinement.landlock import DEVICE, READ, TCP_SINCE, WRITE, Ruleset, landlock_version

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_NEW_USER, _NEW_IPC, _NEW_NETWORK = 0x10000000, 0x08000000, 0x40000000
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _BY_FILTER, _DROP_CAPABILITY, _CAPABILITIES = 38, 22, 2, 24, 64

_libc = ctypes.CDLL(None, use_errno=True)


class Rules(TypedDict):
    """What this process may do once it is the connector.

    `isolate` puts it into namespaces of its own, with this machine's network if `network`. `files` holds it to reading
    `read` and to changing `write`, both but for `hidden` and the folders on the way there, and to what of those lies
    inside. `tcp` holds its connections to `ports` where Landlock can, and `listen` lets it listen. `seccomp` is a
    filter in hexadecimal.
    """

    isolate: bool
    network: bool
    files: bool
    read: Sequence[str]
    write: Sequence[str]
    hidden: Sequence[str]
    read_inside: Sequence[str]
    write_inside: Sequence[str]
    tcp: bool
    listen: bool
    ports: Sequence[int]
    seccomp: str


def main() -> None:
    """Take the rules, lay them on, and become the connector."""
    rules: Rules = json.loads(sys.argv[1])
    if rules["isolate"]:
        _isolate(network=rules["network"])
    for capability in range(_CAPABILITIES):  # root has them, and with them more than root's files
        _libc.prctl(_DROP_CAPABILITY, capability, 0, 0, 0)
    _lay(rules)
    if rules["seccomp"]:
        _filter(bytes.fromhex(rules["seccomp"]))
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - no shell is wanted


def _isolate(*, network: bool) -> None:
    """Enter namespaces of our own, as the same user."""
    user, group = os.geteuid(), os.getegid()
    kinds = _NEW_USER | _NEW_IPC | (0 if network else _NEW_NETWORK)
    if _libc.unshare(kinds) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _lay(rules: Rules) -> None:
    holds_tcp = rules["tcp"] and landlock_version() >= TCP_SINCE
    if not rules["files"] and not holds_tcp:
        return
    ruleset = Ruleset(files=rules["files"], tcp=holds_tcp, binding=not rules["listen"])
    if rules["files"]:
        ruleset.allow(_without(rules["hidden"], rules["read"]), READ)
        ruleset.allow(rules["read_inside"], READ)
        ruleset.allow(_without(rules["hidden"], rules["write"]), WRITE)
        ruleset.allow(rules["write_inside"], WRITE)
        ruleset.allow(DEVICES, DEVICE)
    ruleset.allow_ports(rules["ports"])
    ruleset.lay()


def _without(hidden: Sequence[str], paths: Sequence[str]) -> Iterator[str]:
    """Yield paths, but in the place of a folder around something hidden what is in it; links would lead astray."""
    pending = list(paths)
    while pending:
        path = pending.pop()
        if path in ("/dev", *hidden):
            continue
        if any(inner.startswith(path.rstrip("/") + "/") for inner in hidden):
            pending += [entry.path for entry in _entries(path) if not entry.is_symlink()]
        else:
            yield path


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _filter(program: bytes) -> None:
    """Lay a seccomp filter on this process."""

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))

    filter_ = Program(len(program) // 8, program)
    privileges = _libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if privileges or _libc.prctl(_SET_SECCOMP, _BY_FILTER, ctypes.byref(filter_), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")
