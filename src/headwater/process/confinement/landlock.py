"""Landlock: rules that a process lays on itself, on the files that are there and on TCP. See landlock(7)."""

import ctypes
import os
import struct
from collections.abc import Iterable, Sequence
from typing import Final

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ABI_VERSION = 1
_PATH_BENEATH, _NET_PORT = 1, 2
_NO_NEW_PRIVILEGES = 38

# Rights: execute, write, read, list; truncate is 1 << 14, and control a device 1 << 15.
READ: Final = 1 << 0 | 1 << 2 | 1 << 3
WRITE: Final = (1 << 15) - 1
DEVICE: Final = 1 << 1 | 1 << 2 | 1 << 15
_ON_A_FILE: Final = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15
_BIND, _CONNECT = 1 << 0, 1 << 1
_ABSTRACT_SOCKETS, _SIGNALS = 1 << 0, 1 << 1

# The rights on files that each version knows; later versions know those of 5.
_KNOWN: Final = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
TCP_SINCE: Final = 4
SCOPES_SINCE: Final = 6

_libc = ctypes.CDLL(None, use_errno=True)


def landlock_version() -> int:
    """Return the version of the kernel's Landlock, 0 where there is none or it is switched off."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, _ABI_VERSION)))


class Ruleset:
    """Rules under the making. What no rule allows is refused, of all that this kernel's Landlock can refuse.

    `files` holds files, `tcp` TCP connections (since version `TCP_SINCE`), and `binding` listening with it.
    """

    def __init__(self, *, files: bool, tcp: bool, binding: bool) -> None:
        version = landlock_version()
        self._rights = _KNOWN.get(version, (1 << 16) - 1) if files else 0
        network = (_CONNECT | (_BIND if binding else 0)) if tcp else 0
        scopes = (_ABSTRACT_SOCKETS | _SIGNALS) if version >= SCOPES_SINCE else 0
        attributes = (ctypes.c_uint64 * 3)(self._rights, network, scopes)
        size = 8 if version < TCP_SINCE else 16 if version < SCOPES_SINCE else 24
        self._descriptor = _checked(_libc.syscall(_CREATE_RULESET, ctypes.byref(attributes), size, 0))
        self._has_tcp = tcp

    def allow(self, paths: Iterable[str], rights: int) -> None:
        """Allow rights on files, and on folders with all that is in them; a path that is not there is passed."""
        for path in paths:
            try:
                descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            granted = rights & self._rights
            if not os.path.isdir(path):
                granted &= _ON_A_FILE
            rule = struct.pack("=Qi", granted, descriptor)
            _checked(_libc.syscall(_ADD_RULE, self._descriptor, _PATH_BENEATH, rule, 0))
            os.close(descriptor)

    def allow_ports(self, ports: Sequence[int]) -> None:
        """Allow connections to TCP ports, at any address: Landlock knows ports alone."""
        for port in ports if self._has_tcp else ():
            rule = (ctypes.c_uint64 * 2)(_CONNECT, port)
            _checked(_libc.syscall(_ADD_RULE, self._descriptor, _NET_PORT, ctypes.byref(rule), 0))

    def lay(self) -> None:
        """Lay the rules on this thread, and on every program that it becomes or starts. There is no way back."""
        _checked(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        _checked(_libc.syscall(_RESTRICT_SELF, self._descriptor, 0))
        os.close(self._descriptor)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
