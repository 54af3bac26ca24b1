"""The numbered migrations: their sum is the schema of the database."""

from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "migrations"


@cache
def migrations() -> tuple[tuple[int, str], ...]:
    """Return the numbered migrations, in order."""
    files = sorted(_FOLDER.glob("[0-9]*.sql"))
    return tuple((int(file.name[:4]), file.read_text(encoding="utf-8")) for file in files)


@cache
def newest() -> int:
    """Return the number of the last migration: the level of a database of this release."""
    return max(int(file.name[:4]) for file in _FOLDER.glob("[0-9]*.sql"))
