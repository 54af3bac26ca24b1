"""Who wrote a database last, and which programs may use it after that."""

import hashlib
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import HeadwaterError
from headwater.store.sqlite.database import open_database
from headwater.store.sqlite.schema import newest
from headwater.store.sqlite.writer import model, shape
from headwater.version import RELEASE, order


def marker(path):
    connection = apsw.Connection(str(path))
    try:
        return connection.execute("SELECT version, model FROM store_writer").fetchall()
    finally:
        connection.close()


def marked(path, version, digest=None):
    """Make a database whose marker says something else."""
    open_database(path).close()
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE store_writer SET version = ?, model = ?", (version, digest or model()))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path


def refusal(path, **how):
    with pytest.raises(HeadwaterError) as refused:
        open_database(path, **how)
    return refused.value


def test_the_release_is_that_of_the_package():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["version"] == RELEASE


@pytest.mark.clause("CLI-080")
def test_the_first_write_leaves_one_marker(tmp_path):
    open_database(tmp_path / "h.db").close()
    assert marker(tmp_path / "h.db") == [(RELEASE, model())]
    assert len(model()) == 64


@pytest.mark.clause("CLI-081")
def test_the_digest_covers_what_is_kept_and_not_what_it_is_called(tmp_path):
    bare = shape("CREATE TABLE a (b TEXT CHECK (b <> ''));")
    assert (
        shape("-- why\nCREATE TABLE a (\n  b TEXT CONSTRAINT not_empty CHECK (b <> '')  -- never\n);")
        .replace("( b", "(b")
        .replace(") )", "))")
        == bare
    )
    assert shape("CREATE TABLE a (b TEXT CHECK (b <> ''), c TEXT);") != bare


@pytest.mark.clause("CLI-082")
def test_releases_are_ordered_as_semver_says():
    """The list of section 11, and what counts for nothing."""
    rising = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11"]
    rising += ["1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "2.0.0", "10.0.0"]
    assert [order(version) for version in rising] == sorted(order(version) for version in rising)
    assert len({order(version) for version in rising}) == len(rising)
    assert order("1.0.0+x") == order("1.0.0")


@pytest.mark.parametrize(
    "version", ["", "1", "1.0", "v1.0.0", "1.0.0-", "1.0.0-01", "01.0.0", "1.0.0-" + "a" * 41, "x"]
)
def test_what_is_no_version_has_no_order(version):
    assert order(version) is None


@given(st.text(max_size=30))
def test_any_text_has_an_order_or_none(text):
    order(text)


@pytest.mark.clause("CLI-083")
def test_the_marker_never_goes_down(tmp_path):
    """An older program's is raised, a newer one's stays."""
    assert marker(marked(tmp_path / "new.db", "99.0.0")) == [("99.0.0", model())]
    open_database(tmp_path / "new.db").close()
    assert marker(tmp_path / "new.db") == [("99.0.0", model())]
    marked(tmp_path / "old.db", "0.0.1", "0" * 64)
    open_database(tmp_path / "old.db").close()
    assert marker(tmp_path / "old.db") == [(RELEASE, model())]


@pytest.mark.clause("CLI-085", "CLI-086")
@pytest.mark.parametrize("readonly", [True, False])
def test_a_newer_program_with_other_records_is_left_alone(tmp_path, readonly):
    """Both versions are told, and not a byte changes."""
    path = marked(tmp_path / "h.db", "99.0.0", "0" * 64)
    before = path.read_bytes()
    error = refusal(path, readonly=readonly)
    assert (error.code, error.stage, error.next_action, error.kind) == (
        "metadata_schema_newer",
        "admission",
        "upgrade",
        "operational",
    )
    assert error.data == {"store_version": "99.0.0", "binary_version": RELEASE}
    assert path.read_bytes() == before


@pytest.mark.clause("CLI-085", "CLI-086")
def test_every_command_that_opens_it_refuses_alike(tmp_path):
    """Looking, checking, connecting, collecting."""
    config, state = tmp_path / "c" / "config.toml", tmp_path / "s"
    where = [sys.executable, "-m", "headwater", "--config", str(config), "--state-dir", str(state), "--output", "json"]
    config.parent.mkdir(mode=0o700)
    subprocess.run([*where, "setup", "init"], check=True, capture_output=True)
    config.write_text(config.read_text() + "\n[connectors.git.instances.here]\n")
    marked(state / "headwater.db", "99.0.0", "0" * 64)
    before = hashlib.sha256((state / "headwater.db").read_bytes()).digest()
    told = []
    for words in (["runs", "list"], ["streams", "list"], ["connections", "list", "git/here"], ["setup", "check"]):
        ended = subprocess.run([*where, *words], capture_output=True, text=True)
        assert ended.returncode == 1
        data = json.loads(ended.stderr)["error"]["data"]
        assert data.pop("request_id")
        told.append(data)
    assert all(one == told[0] for one in told)
    assert (told[0]["code"], told[0]["store_version"], told[0]["binary_version"]) == (
        "metadata_schema_newer",
        "99.0.0",
        RELEASE,
    )
    assert hashlib.sha256((state / "headwater.db").read_bytes()).digest() == before


@pytest.mark.clause("CLI-087")
def test_a_newer_program_with_the_same_records_is_admitted(tmp_path):
    """And a database without a marker gets one at the next write."""
    path = marked(tmp_path / "h.db", "99.0.0")
    open_database(path, readonly=True).close()
    connection = apsw.Connection(str(path))
    connection.execute("DELETE FROM store_writer")
    connection.close()
    open_database(path, readonly=True).close()
    assert marker(path) == []
    open_database(path).close()
    assert marker(path) == [(RELEASE, model())]


@pytest.mark.clause("CLI-088")
@pytest.mark.parametrize("version", ["banana", "1.0.0-" + "a" * 41])
def test_a_version_that_cannot_be_ordered(tmp_path, version):
    """Refused as unrecorded with other records, admitted and kept with the same."""
    assert refusal(marked(tmp_path / "other.db", version, "0" * 64)).data["store_version"] == "unrecorded"
    path = marked(tmp_path / "same.db", version)
    open_database(path).close()
    assert marker(path) == [(version, model())]


@pytest.mark.clause("CLI-089")
def test_a_level_that_is_not_known(tmp_path):
    """Before anything of it is interpreted."""
    open_database(tmp_path / "h.db").close()
    connection = apsw.Connection(str(tmp_path / "h.db"))
    connection.execute("DROP TABLE store_writer")
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    error = refusal(tmp_path / "h.db")
    assert (error.code, error.data["store_version"]) == ("metadata_schema_newer", "unrecorded")
    assert newest() < 999


@pytest.mark.clause("CLI-090")
def test_one_that_is_not_sound_is_never_told_to_be_newer(tmp_path):
    path = marked(tmp_path / "h.db", "99.0.0", "0" * 64)
    content = bytearray(path.read_bytes())
    content[100:4096] = b"\xff" * 3996
    path.write_bytes(bytes(content))
    for readonly in (True, False):
        assert refusal(path, readonly=readonly).code == "metadata_unavailable"


@pytest.mark.clause("CLI-093")
def test_what_is_in_one_state_directory_is_not_in_another(tmp_path):
    open_database(tmp_path / "a.db").execute("INSERT INTO instances VALUES (1, 'x', 'x', 'x', 'x')")
    assert open_database(tmp_path / "b.db").execute("SELECT count(*) FROM instances").get == 0
