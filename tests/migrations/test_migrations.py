"""The numbered migrations: their sum is the schema, and each is a step that can be stood on."""

import apsw
import pytest

from headwater.errors import HeadwaterError
from headwater.store.sqlite.database import open_database
from headwater.store.sqlite.schema import migrations


def schema(connection):
    """Return every table and index as it was declared, and the version."""
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name").fetchall()
    return rows, connection.execute("PRAGMA user_version").get


def test_the_migrations_one_by_one_make_the_schema_of_a_fresh_database(tmp_path):
    """A database that grew up release by release is the same as one of today."""
    grown = apsw.Connection(str(tmp_path / "grown.db"))
    for number, script in migrations():
        grown.execute(script)
        grown.execute(f"PRAGMA user_version = {number}")
    fresh = open_database(tmp_path / "fresh.db")
    assert schema(grown) == schema(fresh)
    grown.close()
    fresh.close()


@pytest.mark.parametrize("number", [number for number, _ in migrations()])
def test_a_database_of_any_release_is_brought_forward(tmp_path, number):
    """Opening it to write is enough; opening it again changes nothing."""
    path = tmp_path / "old.db"
    old = apsw.Connection(str(path))
    for step, script in migrations():
        if step <= number:
            old.execute(script)
            old.execute(f"PRAGMA user_version = {step}")
    old.close()
    first = open_database(path)
    seen = schema(first)
    first.close()
    again = open_database(path)
    fresh = open_database(tmp_path / "fresh.db")
    assert seen == schema(again) == schema(fresh)
    again.close()
    fresh.close()


def test_migrations_are_numbered_without_a_hole():
    """A number that is missing, or there twice, would be a step that some databases never took."""
    assert [number for number, _ in migrations()] == list(range(1, len(migrations()) + 1))


@pytest.mark.parametrize("readonly", [True, False])
def test_a_database_of_a_later_release_is_refused_and_left_as_it_is(tmp_path, readonly):
    """An older program does not guess what a newer one wrote."""
    path = tmp_path / "h.db"
    newer = open_database(path)
    newer.execute(f"PRAGMA user_version = {len(migrations()) + 1}")
    newer.close()
    before = path.read_bytes()
    with pytest.raises(HeadwaterError) as raised:
        open_database(path, readonly=readonly)
    assert (raised.value.code, raised.value.next_action) == ("metadata_schema_newer", "upgrade")
    assert path.read_bytes() == before


def test_a_database_is_for_its_owner_only(tmp_path):
    """Nobody else on the machine reads it."""
    open_database(tmp_path / "h.db").close()
    assert (tmp_path / "h.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"this is no database at all" * 100, b"SQLite format 3\x00" + b"\xff" * 4080])
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path, content):
    """Whatever it is, it is somebody's."""
    path = tmp_path / "h.db"
    path.write_bytes(content)
    with pytest.raises(HeadwaterError) as raised:
        open_database(path)
    assert raised.value.code == "metadata_unavailable"
    assert path.read_bytes() == content


def test_looking_does_not_make_a_database(tmp_path):
    """A question about nothing leaves nothing behind."""
    with pytest.raises(HeadwaterError) as raised:
        open_database(tmp_path / "h.db", readonly=True)
    assert raised.value.code == "metadata_unavailable"
    assert list(tmp_path.iterdir()) == []
