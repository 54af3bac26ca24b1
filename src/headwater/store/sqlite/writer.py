"""Who wrote a database last: an older program leaves one alone whose records it does not know (CLI-080 to CLI-093).

The marker is compared before anything else is read, and raised by the first transaction of a newer program.
"""

import re
from functools import cache

import apsw

from headwater.errors import HeadwaterError, refuse
from headwater.store.sqlite.schema import migrations, newest
from headwater.version import RELEASE, order

UNRECORDED = "unrecorded"


@cache
def model() -> str:
    """Return the digest of the records that this program keeps."""
    from hashlib import sha256

    text = "\n".join(script for _, script in migrations())
    return sha256(shape(text).encode()).hexdigest()


def shape(script: str) -> str:
    """Return what a schema says of records, without what only people read."""
    bare = re.sub(r"--[^\n]*", "", script)
    unnamed = re.sub(r"\bCONSTRAINT\s+\w+\s+", "", bare, flags=re.IGNORECASE)
    return " ".join(unnamed.split())


def admit(connection: apsw.Connection, level: int) -> None:
    """Raise `metadata_schema_newer` for a database of a newer program whose records differ.

    Nothing but the marker is read of it before.
    """
    if level > newest():
        raise newer(UNRECORDED)
    version, digest = _marker(connection, level)
    if version is None or _is_older(version) or version == RELEASE or digest == model():
        return
    theirs, ours = order(version), order(RELEASE)
    if theirs is None or ours is None or theirs > ours:
        raise newer(UNRECORDED if theirs is None else version)


def is_marked(connection: apsw.Connection) -> bool:
    """Whether the marker is as it will be when this program has written."""
    version, _ = _marker(connection, newest())
    return version is not None and not _is_older(version)


def mark(connection: apsw.Connection) -> None:
    """Note that this program writes, where nobody newer did; call it in a transaction that writes."""
    if not is_marked(connection):
        connection.execute("INSERT OR REPLACE INTO store_writer VALUES (1, ?, ?)", (RELEASE, model()))


def _is_older(version: str) -> bool:
    """Whether a version can be told to be below this release."""
    theirs, ours = order(version), order(RELEASE)
    return theirs is not None and ours is not None and theirs < ours


def newer(version: str) -> HeadwaterError:
    """Make the refusal of a database that a newer program wrote."""
    return refuse(
        "metadata_schema_newer",
        safe="It was left as it is.",
        stage="admission",
        store_version=version,
        binary_version=RELEASE,
    )


_LEVEL = 8


def _marker(connection: apsw.Connection, level: int) -> tuple[str | None, str | None]:
    if level < _LEVEL:
        return None, None
    row = connection.execute("SELECT version, model FROM store_writer").fetchone()
    return (None, None) if row is None else (row[0], row[1])
