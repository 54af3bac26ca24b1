"""Notes of what went wrong inside Headwater: where in the program, and nothing of what it was working on.

A note holds the types of the exceptions and the places in the code. It holds no message, no value and no word that was
typed, so that it can be handed on.
"""

import os
import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from traceback import walk_tb

from headwater import clock, limits


def note_crash(folder: Path, error: BaseException) -> Path:
    """Write a note of an exception into `folder`, for the owner alone; the oldest notes give way.

    Raise `OSError` where it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for old in sorted(folder.glob("crash_*.txt"))[: 1 - limits.CRASH_NOTES]:
        old.unlink(missing_ok=True)
    note = folder / f"{clock.identifier('crash')}.txt"
    descriptor = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(f"headwater {version('headwater')}, Python {platform.python_version()}, {platform.system()}\n")
        file.writelines(f"{line}\n" for line in _lines(error, limits.CRASH_EXCEPTIONS))
    return note


def _lines(error: BaseException, left: int) -> Iterator[str]:
    """Yield an exception's type and the places that it passed, then what it came from."""
    yield f"{type(error).__module__}.{type(error).__qualname__}"
    frames = [(frame.f_code, line) for frame, line in walk_tb(error.__traceback__)]
    for code, line in frames[-limits.CRASH_FRAMES :]:
        yield f"  {'/'.join(Path(code.co_filename).parts[-3:])}:{line}:{code.co_name}"
    if left == 0:
        return
    for inner in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        yield "holding"
        yield from _lines(inner, left - 1)
    cause = error.__cause__ or error.__context__
    if cause is not None:
        yield "because of"
        yield from _lines(cause, left - 1)
