"""Opening the database: private, WAL, fully synchronous, migrated forward, and never from an unsafe SQLite."""

import errno
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

import apsw

from headwater import limits
from headwater.errors import refuse
from headwater.store.sqlite.schema import migrations, newest
from headwater.store.sqlite.writer import admit, is_marked, mark

_HERE = Path(__file__).parent
_OLDEST_SQLITE: Final = (3, 51, 3)  # older ones can corrupt a WAL file that several processes use
_PRAGMAS: Final = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    "cache_size = -32768",
    "wal_autocheckpoint = 4000",
    "temp_store = MEMORY",
    "trusted_schema = OFF",
)


@cache
def queries(name: str = "queries") -> Mapping[str, str]:
    """Return every statement of `queries.sql`, or of another file of its form, by its name.

    They come without comments: SQLite hashes the text at each call.
    """
    text = (_HERE / f"{name}.sql").read_text(encoding="utf-8")
    found = re.findall(r"^-- name: (\w+)\n(.*?)(?=^-- name: |\Z)", text, re.MULTILINE | re.DOTALL)
    return {name: re.sub(r"^--.*\n", "", body, flags=re.MULTILINE).strip() for name, body in found}


def open_database(path: Path, *, readonly: bool = False) -> apsw.Connection:
    """Open the store's database; create and migrate it unless `readonly`.

    Raise `metadata_schema_newer` for a database of a later release, `metadata_unavailable` where it
    cannot be opened or is no database of ours.
    """
    if not sqlite_version()[1]:
        raise refuse("metadata_unavailable", "The SQLite library is too old to be safe; reinstall Headwater.")
    flags = apsw.SQLITE_OPEN_READWRITE | (0 if readonly else apsw.SQLITE_OPEN_CREATE)
    try:
        if readonly and not path.exists():
            raise refuse("metadata_unavailable", "Nothing has been collected yet.", command="headwater demo")
        connection = apsw.Connection(str(path), flags=flags)
        try:
            _prepare(connection, path, readonly=readonly)
        except BaseException:
            with suppress(apsw.Error):
                connection.close()
            raise
    except (apsw.Error, OSError) as error:
        raise refuse("metadata_unavailable", _plainly(error), safe="It was left as it is.") from error
    return connection


def nothing() -> apsw.Connection:
    """Open an empty database in memory: what there is where there is no database yet."""
    connection = apsw.Connection(":memory:")
    for _, script in migrations():
        connection.execute(script)
    return connection


def _prepare(connection: apsw.Connection, path: Path, *, readonly: bool) -> None:
    connection.set_busy_timeout(int(limits.BUSY_SECONDS * 1000))
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    if not readonly:
        path.chmod(0o600)
    _migrate(connection, readonly=readonly)
    if readonly:
        connection.execute("PRAGMA query_only = ON")


def sqlite_version() -> tuple[str, bool]:
    """Return the version of the SQLite library, and whether it is safe for a store of ours."""
    version = apsw.sqlite_lib_version()
    return version, tuple(int(part) for part in version.split(".")) >= _OLDEST_SQLITE


def _migrate(connection: apsw.Connection, *, readonly: bool) -> None:
    version = _version(connection)
    admit(connection, version)
    if version == newest():
        if not readonly and not is_marked(connection):
            with transaction(connection):
                mark(connection)
        return
    if version == 0 and connection.execute("SELECT count(*) FROM sqlite_master").get:
        message = "The file is the database of another program."
        raise refuse("metadata_unavailable", message, safe="It was left as it is.")
    if readonly:
        raise refuse("metadata_unavailable", "The database is of an older release; collect once to bring it forward.")
    for number, script in migrations():
        with transaction(connection):
            if number > _version(connection):
                connection.execute(script)
                connection.execute(f"PRAGMA user_version = {number}")
                if number == newest():
                    mark(connection)


def _version(connection: apsw.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").get)


@contextmanager
def reading(path: Path) -> Iterator[apsw.Connection]:
    """Open the database for looking at it. Raise `metadata_unavailable` then, or where it turns out not to be sound."""
    connection = open_database(path, readonly=True)
    try:
        yield connection
    except apsw.Error as error:
        raise refuse("metadata_unavailable", _plainly(error), safe="It was left as it is.") from error
    finally:
        connection.close()


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Hold the write lock from the start, so that what was read is still true when it is written."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _plainly(error: apsw.Error | OSError) -> str:
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return f"The database was locked for {limits.BUSY_SECONDS:g} seconds by another program."
        case apsw.FullError() | OSError(errno=errno.ENOSPC):
            return "The disk is full."
        case apsw.NotADBError() | apsw.CorruptError():
            return "The file is not a sound Headwater database."
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError():
            return "The database cannot be opened for writing."
        case PermissionError() | OSError(errno=errno.EROFS):
            return "The database may not be written by this user, or not at all."
        case apsw.IOError() | OSError():
            return "The disk reported an error."
    return "The database cannot be used."


@contextmanager
def translated() -> Iterator[None]:
    """Turn what SQLite or a file raises while writing into `storage_failed`; nothing of the transaction was kept."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        message = f"{_plainly(error)} The last batch was not kept."
        raise refuse("storage_failed", message, safe="What was stored before is whole.") from error
