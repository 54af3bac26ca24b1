"""Custody holds nothing that nobody knows of: a version is noted before it is written, and erased if it was in vain."""

import os
import signal

import apsw
import pytest
from connect.conftest import refused
from connect.test_killed import held, killed  # noqa: F401 - commands on a disk that ends them

from headwater.errors import refuse
from headwater.secret import Secret
from headwater.store.sqlite.connections import opened
from headwater.vault.sealing import Seal

OWNER = os.geteuid()


def in_custody(headwater):
    """Return what the sealed file holds, each with its connection."""
    file = headwater.place / "custody.sealed"
    seal = Seal("key_file", lambda: Secret((headwater.place / "key").read_bytes()))
    seal.ask()
    contents = seal.open(Secret(file.read_bytes())) if file.exists() else {}
    return {(scope, version) for scope, versions in contents.items() if scope != "probe" for version in versions}


def known(headwater):
    with opened(headwater.state / "headwater.db") as registry:
        return set(registry.versions(OWNER, "shop.me"))


def sql(headwater, statement):
    database = apsw.Connection(str(headwater.state / "headwater.db"))
    database.execute(statement)
    database.close()


def make_room(headwater):
    """Let it be tried as often as it takes; return the connection that is there."""
    sql(headwater, "DELETE FROM auth_attempts")
    return held(headwater)


@pytest.mark.clause("CLI-382", "CLI-403")
def test_a_kill_behind_the_write_leaves_nothing_that_is_not_erased(headwater, killed):  # noqa: F811
    """The kill is searched for that comes right behind it: before the next step of the database."""
    connect = ("connect", "shop/me", *headwater.entry(token="token-of-anna"))
    with opened(headwater.state / "headwater.db"):
        pass
    status, written = killed(*connect)
    unwritten = 0
    assert status == 0
    while written - unwritten > 1:
        if make_room(headwater) is not None:
            assert killed("revoke", "--expected-revision", "1")[0] == 0
        before, at = in_custody(headwater), (written + unwritten) // 2
        assert killed(*connect, at=at, kind="before")[0] in (-signal.SIGKILL, 0), killed.said()
        assert in_custody(headwater) <= known(headwater), at
        written, unwritten = (at, unwritten) if in_custody(headwater) > before else (written, at)
    assert killed(*connect, at=written, kind="before")[0] == -signal.SIGKILL
    assert make_room(headwater) is None
    assert set() < in_custody(headwater) <= known(headwater)
    sql(headwater, "UPDATE credential_versions SET since_ms = 0 WHERE state <> 'stored'")
    assert killed(*connect)[0] == 0
    assert in_custody(headwater) == known(headwater) == {(held(headwater).reference, held(headwater).version)}


def test_nothing_is_written_that_cannot_be_noted(world, monkeypatch):
    def note(*_words):
        raise refuse("metadata_unavailable")

    monkeypatch.setattr(world.registry, "note_candidate", note)
    with refused("metadata_unavailable"):
        world.connect()
    assert world.vault.calls["write_new"] == 0


def test_what_was_noted_and_not_written_is_forgotten_in_time(world):
    """Custody has no such version; that is what was wanted."""
    world.vault.fails["write_new"] = refuse("custody_unavailable")
    with refused("custody_unavailable"):
        world.connect()
    assert world.registry.versions(1000, "shop.me") != []
    world.vault.fails.clear()
    world.clock.move(days=1)
    world.connect()
    assert world.registry.versions(1000, "shop.me") == [(world.held.reference, world.held.version)]
