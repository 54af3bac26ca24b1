"""The owner's token: whoever can read its file may do what the owner may."""

import os
import stat
from pathlib import Path
from typing import Final

from headwater import clock
from headwater.errors import refuse

_CHARACTERS: Final = 43  # 32 bytes as base64url


def owner_token(path: Path) -> str:
    """Return the token that a file holds; make one of 32 random bytes where there is no file.

    One process at a time. Raise `invalid_configuration` where others can read the file, or it holds no token.
    """
    if not path.exists():
        _make(path)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise refuse("invalid_configuration", "The owner's token must be in a file that only you can read.")
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise refuse("invalid_configuration", "The owner's token cannot be read.") from error
    if len(token) < _CHARACTERS:
        raise refuse("invalid_configuration", "The owner's token is too short; remove its file to get a new one.")
    return token


def _make(path: Path) -> None:
    """Write a token beside its place and move it there, so that no file ever holds a part of one."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{clock.token()}\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    except OSError as error:
        message = "The state directory cannot be written."
        raise refuse("metadata_unavailable", message, safe="Nothing was started.") from error
