"""The user's session bus: only at its fixed place or the configured one, never where an environment variable points."""

import os
import socket
import stat
from errno import EPERM
from pathlib import Path
from struct import calcsize, unpack
from typing import Any

from jeepney import Message, MessageFlag  # type: ignore[import-untyped]
from jeepney.io.blocking import DBusConnection, prep_socket  # type: ignore[import-untyped]

from headwater import limits
from headwater.owned import folder

_CREDENTIALS = "3i"  # struct ucred of Linux: pid, uid, gid


class SessionBus(DBusConnection):  # type: ignore[misc]
    """A connection on which every call is bounded, and none starts a service."""

    def send_and_get_reply(self, message: Message, *, timeout: float | None = None) -> Any:
        """Send one call and return its reply, or raise TimeoutError behind two seconds."""
        message.header.flags |= MessageFlag.no_auto_start
        return super().send_and_get_reply(message, timeout=limits.KEYRING_CALL_SECONDS)


def session_bus(configured: Path | None) -> SessionBus:
    """Connect to the bus. Raise OSError unless its socket is this user's, and this user's process listens on it."""
    user = os.geteuid()
    path = configured or Path(f"/run/user/{user}/bus")
    with folder(path.parent) as within:
        status = os.stat(path.name, dir_fd=within, follow_symlinks=False)
    if not stat.S_ISSOCK(status.st_mode) or status.st_uid != user:
        raise PermissionError(EPERM, "not a socket of this user")
    connected = prep_socket(str(path), timeout=limits.KEYRING_CALL_SECONDS)
    try:
        ucred = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, calcsize(_CREDENTIALS))
        if unpack(_CREDENTIALS, ucred)[1] != user:
            raise PermissionError(EPERM, "another user listens")
        connected.settimeout(limits.KEYRING_CALL_SECONDS)
        return SessionBus(connected)
    except BaseException:
        connected.close()
        raise
