"""Connections in the database: who writes first, what is not known, what is erased and when, and pages."""

import asyncio

import apsw
import pytest
from connect.conftest import refused
from connect.world import World
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from headwater import limits
from headwater.connect.looking import observation_of, page_of
from headwater.connect.model import Acquisition
from headwater.connect.paging import after, place
from headwater.connect.retention import erase_old
from headwater.connect.revoking import of_revocable, revoke
from headwater.errors import HeadwaterError, refuse

DAY = limits.CREDENTIAL_RETENTION_SECONDS


def erase(world: World) -> None:
    asyncio.run(erase_old(world.registry, world.vault, world.target.owner))


def kept(world: World) -> set[str]:
    return {version for _, version in world.vault.kept}


def test_a_write_from_an_old_look_is_none(world):
    connection = world.connect().connection
    assert world.registry.publish(connection, replace(connection, profile="a"), world.clock.millis)
    assert not world.registry.publish(connection, replace(connection, profile="b"), world.clock.millis)
    assert world.held.profile == "a"


@pytest.mark.clause("CLI-382", "CLI-025")
def test_a_commit_of_which_nothing_is_known(world, monkeypatch):
    """It is told as unknown; looking tells, and nothing is asked or exchanged for that."""
    connection = world.registry._connection

    class Torn:
        """A database whose answer to one commit is lost."""

        lost = False

        def execute(self, sql, *values):
            result = connection.execute(sql, *values)
            if sql == "COMMIT" and not self.lost and world.registry.held(1000, "shop.me"):
                self.lost = True
                raise apsw.IOError
            return result

        def __getattr__(self, name):
            return getattr(connection, name)

    monkeypatch.setattr(world.registry, "_connection", Torn())
    with refused("outcome_unknown", "retry_status", "publication"):
        world.connect()
    held = world.held
    ((row,),) = connection.execute("SELECT reference FROM acquisitions").fetchall()
    shown = observation_of(world.registry.acquisition(1000, row), world.clock.millis)
    assert (shown["state"], shown["connection"]) == ("completed", held.reference)
    assert (world.provider.probes, world.asked) == (1, 1)


@pytest.mark.clause("CLI-382", "CLI-903")
def test_a_commit_that_failed_for_certain(world, monkeypatch):
    connection = world.registry._connection

    class Full:
        def execute(self, sql, *values):
            if sql == "COMMIT":
                raise apsw.FullError
            return connection.execute(sql, *values)

        def __getattr__(self, name):
            return getattr(connection, name)

    monkeypatch.setattr(world.registry, "_connection", Full())
    with refused("metadata_unavailable", "retry_status"):
        world.connect()
    assert not connection.in_transaction


@pytest.mark.clause("CLI-903")
@pytest.mark.parametrize("harm", ["UPDATE connections SET binding = '{'", "DROP TABLE connections"])
def test_a_database_that_is_broken(world, harm):
    reference = world.connect().connection.reference
    world.registry._connection.execute(harm)
    with refused("metadata_unavailable", "retry_status", "observation"):
        world.registry.find(1000, reference)


@pytest.mark.clause("CLI-310", "CLI-321", "CLI-381")
@pytest.mark.parametrize(("exchanged", "reason"), [(False, "expired"), (True, "exchange_unknown")])
def test_a_connect_that_was_killed_is_ended_by_the_next(world, exchanged, reason):
    """Whoever has the turn knows that nobody else is alive: five minutes need not be waited for."""
    cut_off = Acquisition("cut_off", 1000, 1000, 1000, "shop.me", "c", "c1", 0, world.clock.millis + 300_000)
    world.registry.begin(cut_off)
    if exchanged:
        world.registry.consume(cut_off, world.clock.millis)
    world.connect()
    shown = observation_of(world.registry.acquisition(1000, "cut_off"), world.clock.millis)
    assert (shown["state"], shown["reason"]) == ("failed", reason)


@pytest.mark.clause("CLI-330", "CLI-331", "CLI-332", "CLI-334")
def test_a_revocation_is_final(world):
    """It asks nobody, needs no custody, and is told again when it is repeated."""
    connection = world.connect().connection
    world.vault.fails = dict.fromkeys(("read", "delete", "write_new"), refuse("custody_unavailable"))
    gone = revoke(world.registry, world.target, connection, "1")
    assert (gone.lifecycle, gone.revision, gone.evidence.checks) == ("revoked", 2, {})
    found = world.registry.find(1000, connection.reference)
    assert revoke(world.registry, world.target, found, "1") == found
    assert world.provider.probes == 1
    assert not world.registry.publish(found, replace(found, lifecycle="live"), world.clock.millis)
    assert kept(world) == {"v1"}


@pytest.mark.clause("CLI-348", "CLI-336")
def test_a_revision_is_compared_until_it_is_revoked(world):
    connection = world.connect().connection
    with refused("lifecycle_conflict", "retry_status", "admission", field="expected_revision"):
        revoke(world.registry, world.target, connection, "2")
    gone = revoke(world.registry, world.target, connection, "1")
    assert revoke(world.registry, world.target, gone, "77").revision == 2


@pytest.mark.clause("CLI-333")
def test_a_revocation_wins_over_a_renewal_that_came_first(world):
    """Evidence that was renewed between looking and writing moves no revision: the revocation is tried again."""
    connection = world.connect().connection
    world.registry.publish(connection, connection, world.clock.millis)
    assert revoke(world.registry, world.target, connection, "1").lifecycle == "revoked"
    assert world.registry.held(1000, "shop.me") == []


@pytest.mark.clause("CLI-471")
def test_what_an_instance_left_behind_can_be_revoked(world):
    """A connection of an instance id that nothing configures any more, through the entry that moved."""
    connection = world.connect().connection
    world.configure(instance_id="shop.new")
    found = of_revocable(world.registry, world.target, connection.reference, {"shop.new"})
    assert revoke(world.registry, world.target, found, "1").lifecycle == "revoked"
    with refused("not_found", "check_configuration", "admission"):
        of_revocable(world.registry, world.target, connection.reference, {"shop.new", "shop.me"})
    elsewhere = replace(world.target, connector="other")
    with refused("not_found", "check_configuration", "admission"):
        of_revocable(world.registry, elsewhere, connection.reference, {"shop.new"})


def test_an_old_credential_is_erased_after_a_day(world):
    world.connect()
    world.reconnect("anna2")
    world.clock.move(seconds=DAY - 1)
    erase(world)
    assert kept(world) == {"v1", "v2"}
    world.clock.move(seconds=1)
    erase(world)
    assert (kept(world), world.token()) == ({"v2"}, "anna2")


def test_the_credential_of_a_revoked_connection_is_erased_too(world):
    connection = world.connect().connection
    revoke(world.registry, world.target, connection, "1")
    world.clock.move(seconds=DAY)
    erase(world)
    assert kept(world) == set()


def test_any_use_erases_what_another_instance_left(world):
    """Who revokes an account and never comes back to it leaves no credential behind."""
    revoke(world.registry, world.target, world.connect().connection, "1")
    world.configure(instance_id="shop.other")
    world.connect("bert")
    world.clock.move(seconds=DAY)
    assert world.token() == "bert"
    assert kept(world) == {"v2"}


def test_a_candidate_that_was_never_published_is_erased(world):
    """It was written, and then its time was over."""
    world.provider.meanwhile = lambda: world.clock.move(seconds=limits.ACQUISITION_SECONDS)
    with refused("lifecycle_conflict"):
        world.connect()
    assert kept(world) == {"v1"}
    world.clock.move(seconds=DAY)
    erase(world)
    assert kept(world) == set()


def test_not_many_old_credentials_wait(world):
    """A provider that hands out a new one each minute would fill the keyring."""
    world.connect()
    for number in range(limits.CREDENTIAL_VERSIONS + 3):
        world.clock.move(seconds=1)
        world.reconnect("anna2" if number % 2 else "anna")
    assert len(kept(world)) == limits.CREDENTIAL_VERSIONS + 1
    assert world.held.version in kept(world)


def test_a_version_that_is_being_erased_is_linked_to_by_nothing(world):
    """The fence stands before custody is asked: what was retired is never published."""
    world.connect()
    world.reconnect("anna2")
    world.clock.move(seconds=DAY)
    assert world.registry.retire(1000, world.clock.millis) == [(world.held.reference, "v1")]
    held = world.held
    assert not world.registry.publish(held, replace(held, version="v1"), world.clock.millis)


def test_an_erasure_that_fails_is_tried_again(world):
    world.connect()
    world.reconnect("anna2")
    world.clock.move(seconds=DAY)
    world.vault.fails["delete"] = refuse("custody_unavailable")
    erase(world)
    del world.vault.fails["delete"]
    erase(world)
    assert kept(world) == {"v2"}
    erase(world)
    assert world.vault.calls["delete"] == 2


def test_old_attempts_are_forgotten(world, monkeypatch):
    """As many as an instance may have are remembered, the newest; one that is under way is never forgotten."""
    monkeypatch.setattr(limits, "ACQUISITIONS_PER_INSTANCE", 3)
    late = world.clock.millis + 300_000
    open_ = Acquisition("acquisition_0", 1000, 1000, 1000, "shop.me", "c", "c1", 1, late)
    world.registry.begin(open_)
    made = [world.connect().acquisition, *(world.reconnect("anna2").acquisition for _ in range(3))]
    found = [world.registry.acquisition(1000, reference) is not None for reference in made]
    assert found == [False, True, True, True]
    assert world.registry.acquisition(1000, open_.reference) == open_


def test_an_instance_has_a_thousand_connections(world, monkeypatch):
    monkeypatch.setattr(limits, "CONNECTIONS_PER_INSTANCE", 1)
    revoke(world.registry, world.target, world.connect().connection, "1")
    with refused("capacity"):
        world.connect()
    assert world.asked == 1


@pytest.mark.clause("CLI-321", "CLI-322")
@given(
    state=st.sampled_from(["pending", "completing", "completed", "failed"]),
    reason=st.sampled_from(["rejected", "exchange_unknown", "expired"]),
    generation=st.integers(0, 3),
    late=st.booleans(),
)
def test_an_acquisition_is_shown_in_three_states(state, reason, generation, late):
    given_reason = reason if state == "failed" else None
    acquisition = Acquisition("a", 1000, 1000, 1000, "i", "c", "r", generation, 1_000, state, given_reason)
    shown = observation_of(acquisition, 1_000 if late else 999)
    assert shown["state"] in ("pending", "completed", "failed")
    assert ("reason" in shown) is (shown["state"] == "failed")
    assert ("connection" in shown) is (shown["state"] == "completed")
    if state in ("pending", "completing") and late:
        assert (shown["state"], shown["reason"]) == ("failed", "expired")


@pytest.mark.clause("CLI-324", "CLI-326")
def test_a_page_is_as_fresh_as_its_oldest_row(world):
    made = world.connect().connection
    older = replace(made, evidence=replace(made.evidence, valid_until_ms=made.evidence.valid_until_ms - 1_000))
    page = page_of([made, older], world.target, world.clock.millis)
    assert (page["stale"], page["valid_until_ms"]) == (False, older.evidence.valid_until_ms)
    assert not {"source", "stale", "observed_at_ms"} & page["connections"][0].keys()
    late = page_of([made, older], world.target, older.evidence.valid_until_ms)
    assert late["stale"] is True
    empty = page_of([], world.target, world.clock.millis)
    assert (empty["stale"], "valid_until_ms" in empty) == (True, False)


@pytest.mark.clause("CLI-329")
def test_a_cursor_is_of_one_list(world):
    """Another instance, owner, page size or configuration, a list that changed, and a later time: all stale."""
    now, target = world.clock.millis, world.target
    cursor = place("last", target, 7, 100, now)
    assert after(cursor, target, 7, 100, now + 299_999) == "last"
    others = [
        (cursor, target, 7, 100, now + 300_000),
        (cursor, target, 8, 100, now),
        (cursor, target, 7, 99, now),
        (cursor, replace(target, owner=1), 7, 100, now),
        (cursor, replace(target, instance_id="x"), 7, 100, now),
        (cursor, replace(target, configuration_revision="x"), 7, 100, now),
    ]
    for other in others:
        with refused("stale_cursor", "retry_explicitly", "observation"):
            after(*other)


@pytest.mark.clause("CLI-329")
@given(st.text(max_size=60))
def test_what_is_no_cursor_is_stale(text):
    from connect.world import TARGET

    with pytest.raises(HeadwaterError) as caught:
        after(text, TARGET, 7, 100, 0)
    assert caught.value.code == "stale_cursor"
