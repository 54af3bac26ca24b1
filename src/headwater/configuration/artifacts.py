"""The programs that a configuration pins: whether each still is the file that its digest names."""

import os
import stat
from hashlib import file_digest
from typing import Final

from headwater import limits
from headwater.configuration.model import Configuration, Executable

_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def changed(configuration: Configuration) -> list[Executable]:
    """Return the pinned programs that are not there, or are not what they were pinned as (CLI-108, CLI-164)."""
    pinned = [entry.pins.executable for entry in configuration.entries if entry.pins is not None]
    pinned += [consumer.executable for consumer in configuration.consumers.values()]
    return [executable for executable in pinned if not _is_same(executable)]


def _is_same(executable: Executable) -> bool:
    try:
        descriptor = os.open(executable.path, _OPEN)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            is_program = stat.S_ISREG(status.st_mode) and status.st_size <= limits.PROGRAM_BYTES
            return is_program and file_digest(file, "sha256").hexdigest() == executable.sha256
    except OSError:
        return False
