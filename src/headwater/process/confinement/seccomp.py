"""A seccomp filter against the sockets that no namespace and no rule on files can hold.

A socket of the file system or of the abstract kind (AF_UNIX) leads to the owner's session, agents and daemons, and a
virtual machine's (AF_VSOCK) to its host. io_uring would do what the filter forbids, and the kernel's keyrings are the
owner's. Landlock knows TCP alone, so where it is relied on there is TCP alone. See seccomp(2) and linux/filter.h.
"""

import platform
import struct
from collections.abc import Mapping, Sequence
from typing import Final, Literal

Sockets = Literal["local", "all", "tcp", "none"]

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 13  # SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO with EACCES
_NUMBER, _ARCHITECTURE = 0, 4
_ARGUMENTS = (16, 24, 32, 40)  # the low half of each, on little-endian machines
_X32, _FAST_OPEN, _KIND_OF_SOCKET = 0x40000000, 0x20000000, 0xF  # MSG_FASTOPEN connects by sending
_UNIX, _INET, _INET6, _NETLINK, _STREAM, _TCP = 1, 2, 10, 16, 1, 6
_IO_URING_SETUP = 425

# By machine: its AUDIT_ARCH, and the numbers of socket, sendto, sendmsg, sendmmsg, add_key, request_key, keyctl.
_GENERIC: Final = (198, 206, 211, 269, 217, 218, 219)
_MACHINES: Final[Mapping[str, tuple[int, tuple[int, ...]]]] = {
    "x86_64": (0xC000003E, (41, 44, 46, 307, 248, 249, 250)),
    "aarch64": (0xC00000B7, _GENERIC),
    "riscv64": (0xC00000F3, _GENERIC),
}

Line = str | tuple[int, int] | tuple[int, int, str, str]


def seccomp_filter(sockets: Sockets, machine: str | None = None) -> bytes | None:
    """Return the filter's program, None for a machine that it is not written for.

    It leaves `all` internet sockets, with the `local` ones or without, `tcp` alone with no connection but by `connect`,
    or `none`.
    """
    known = _MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    architecture, (socket, sendto, sendmsg, sendmmsg, *keyrings) = known
    sending = {sendmsg: "third", sendto: "fourth", sendmmsg: "fourth"} if sockets == "tcp" else {}
    wanted = {**dict.fromkeys([*keyrings, _IO_URING_SETUP], "refuse"), socket: sockets, **sending}
    return _assembled(
        [
            (_LOAD, _ARCHITECTURE),
            (_EQUAL, architecture, "", "refuse"),
            (_LOAD, _NUMBER),
            (_AT_LEAST, _X32, "refuse", ""),
            *((_EQUAL, number, label, "") for number, label in wanted.items()),
            (_RETURN, _ALLOW),
            *_SOCKETS,
        ]
    )


_SOCKETS: Final[Sequence[Line]] = (
    "local",
    (_LOAD, _ARGUMENTS[0]),
    (_EQUAL, _UNIX, "allow", ""),
    "all",
    (_LOAD, _ARGUMENTS[0]),
    (_EQUAL, _INET, "allow", ""),
    (_EQUAL, _INET6, "allow", ""),
    (_EQUAL, _NETLINK, "allow", "refuse"),
    "tcp",
    (_LOAD, _ARGUMENTS[0]),
    (_EQUAL, _NETLINK, "allow", ""),
    (_EQUAL, _INET, "stream", ""),
    (_EQUAL, _INET6, "stream", "refuse"),
    "stream",
    (_LOAD, _ARGUMENTS[1]),
    (_AND, _KIND_OF_SOCKET),
    (_EQUAL, _STREAM, "", "refuse"),
    (_LOAD, _ARGUMENTS[2]),
    (_EQUAL, 0, "allow", ""),
    (_EQUAL, _TCP, "allow", "refuse"),
    "third",
    (_LOAD, _ARGUMENTS[2]),
    (_ANY_BIT, _FAST_OPEN, "refuse", "allow"),
    "fourth",
    (_LOAD, _ARGUMENTS[3]),
    (_ANY_BIT, _FAST_OPEN, "refuse", "allow"),
    "allow",
    (_RETURN, _ALLOW),
    "none",
    "refuse",
    (_RETURN, _REFUSE),
)


def _assembled(lines: Sequence[Line]) -> bytes:
    """Return instructions as `struct sock_filter`s; a label stands for the instruction after it, "" for the next."""
    places: dict[str, int] = {}
    instructions: list[tuple[int, int] | tuple[int, int, str, str]] = []
    for line in lines:
        if isinstance(line, str):
            places[line] = len(instructions)
        else:
            instructions.append(line)
    program = b""
    for place, (code, value, *targets) in enumerate(instructions):
        jumps = [places[str(label)] - place - 1 if label else 0 for label in targets] or [0, 0]
        program += struct.pack("=HBBI", code, *jumps, value)
    return program
