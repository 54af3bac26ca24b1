"""Asking the provider again: explicitly with retries, or once before a read."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from connect.conftest import refused
from connect.world import TOKEN, other
from msgspec.structs import replace

from headwater import limits
from headwater.connect.looking import description_of
from headwater.connect.retries import pause_after
from headwater.connect.revoking import revoke
from headwater.connect.using import need_of
from headwater.connect.using import refused as refused_in_use
from headwater.errors import HeadwaterError, refuse
from headwater.store.locks import exclusive

PASSING = {
    "provider_unavailable": "unavailable",
    "provider_timeout": "timeout",
    "provider_rate_limited": "rate_limited",
}
FINAL = ("credential_invalid", "insufficient_scope", "provider_protocol_error")


@pytest.mark.clause("CLI-481", "CLI-482")
@pytest.mark.parametrize("said", PASSING)
def test_what_passes_is_tried_three_times(world, said):
    world.connect()
    world.provider.says = [said, said, None]
    world.revalidate()
    assert (world.provider.probes, world.pauses) == (4, [0.2, 1.0])


@pytest.mark.clause("CLI-485", "CLI-487", "CLI-488")
@pytest.mark.parametrize("said", PASSING)
def test_three_failures_tell_the_last(world, said):
    """Code, stage and next action are those of a single failure; the connection is as it was."""
    world.connect()
    before = world.held
    world.provider.says = [said] * 3
    with pytest.raises(HeadwaterError) as caught:
        world.revalidate()
    assert (caught.value.data["cause"], caught.value.data["attempts"]) == (PASSING[said], 3)
    assert caught.value.next_action == "retry_explicitly"
    assert (world.held, world.token()) == (before, "anna")


@pytest.mark.clause("CLI-483", "CLI-487", "CLI-922")
@pytest.mark.parametrize("said", FINAL)
def test_what_is_final_is_not_repeated(world, said):
    world.connect()
    world.provider.says = [said]
    with pytest.raises(HeadwaterError) as caught:
        world.revalidate()
    assert (world.provider.probes, world.pauses) == (2, [])
    assert not caught.value.data.keys() & {"cause", "attempts"}


@pytest.mark.clause("CLI-481", "CLI-484")
@pytest.mark.parametrize(
    ("attempt", "transient", "last", "left", "pause"),
    [
        (1, True, 0.0, 30.0, 0.2),
        (2, True, 0.0, 30.0, 1.0),
        (3, True, 0.0, 30.0, None),
        (1, False, 0.0, 30.0, None),
        (1, True, 1.0, 1.7, 0.2),
        (1, True, 1.0, 1.69, None),
        (2, True, 2.0, 3.5, 1.0),
        (2, True, 2.0, 3.49, None),
    ],
)
def test_a_retry_has_to_fit(attempt, transient, last, left, pause):
    assert pause_after(attempt, transient=transient, last_seconds=last, left_seconds=left) == pause


@pytest.mark.clause("CLI-451", "CLI-455", "CLI-319")
def test_a_check_moves_evidence_only(world):
    world.connect()
    before = world.held
    world.clock.move(seconds=61)
    after = world.revalidate()
    assert after.evidence.collected_at_ms == world.clock.millis
    kept = ("reference", "revision", "generation", "version", "identity", "lifecycle")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]
    assert (world.vault.calls["write_new"], world.asked) == (1, 1)


def test_a_credential_that_is_refused_needs_another_one(world):
    world.connect()
    del world.provider.accounts["anna"]
    with refused("service_failure", "retry_explicitly", "dispatch", service_code="unauthorized"):
        world.revalidate()
    assert world.held.lifecycle == "stale"
    with refused("not_granted", "repair_connection", "admission"):
        world.revalidate()
    assert world.reconnect("anna2").connection.lifecycle == "live"


def test_another_account_cuts_off(world):
    world.connect()
    world.provider.accounts["anna"] = "bert"
    with refused("identity_mismatch", "revoke_connection", "admission"):
        world.revalidate()
    assert world.held.lifecycle == "stale"


@pytest.mark.clause("CLI-464", "CLI-478")
def test_a_check_records_the_configuration_that_moved(world):
    world.connect()
    world.configure(configuration_revision="c2")
    assert world.held.binding.configuration_revision == "c1"
    after = world.revalidate()
    assert (after.binding.configuration_revision, after.revision) == ("c2", 1)


@pytest.mark.clause("CLI-303", "CLI-319", "CLI-478")
def test_a_configuration_is_followed(world):
    """That is the change that a caller has to see: the revision moves."""
    world.connect()
    world.configure(configuration_revision="c2", trust="digest")
    after = world.revalidate()
    assert (after.revision, world.held.binding.configuration_revision) == (2, "c2")
    assert world.token() == "anna"


@pytest.mark.clause("CLI-476")
@pytest.mark.parametrize("how", ["refused", "another account"])
def test_an_upgrade_that_is_refused_is_remembered(world, how):
    """Under the configuration it was made by the connection stays good."""
    world.connect()
    old = world.target
    world.configure(configuration_revision="c2", trust="digest")
    if how == "refused":
        world.provider.says = ["credential_invalid"]
    else:
        world.provider.accounts["anna"] = "bert"
    with pytest.raises(HeadwaterError) as caught:
        world.revalidate()
    assert caught.value.next_action == "create_connection"
    with refused("lifecycle_conflict", "create_connection"):
        world.use()
    world.provider.accounts["anna"] = "anna"
    new, world.target = world.target, old
    assert world.token() == "anna"
    world.target = new
    assert world.revalidate().refused_configuration_revision is None


@pytest.mark.clause("CLI-465")
def test_another_executable_asks_once(world):
    world.connect()
    world.configure(executable="declared/2")
    assert [world.token(), world.token(), world.provider.probes] == ["anna", "anna", 2]


@pytest.mark.clause("CLI-466")
def test_another_executable_that_finds_another_account_changes_nothing(world):
    world.connect()
    before = world.held
    world.configure(executable="declared/2")
    world.provider.accounts["anna"] = "bert"
    with refused("identity_mismatch", "revoke_connection", "admission"):
        world.use()
    assert world.held == before


@pytest.mark.clause("CLI-452")
@pytest.mark.parametrize(
    ("left", "span", "deadline", "need"),
    [
        (20, 60, 30, "early"),
        (40, 60, 30, "none"),
        (20, 60, 10, "none"),
        (30, 60, 45, "none"),
        (29, 60, 30, "early"),
        (10, 20, 30, "none"),
        (9, 20, 30, "early"),
        (0, 60, 30, "now"),
        (-1, 60, 30, "now"),
    ],
)
def test_when_evidence_is_collected_anew(world, left, span, deadline, need):
    """Its own span counts, and not the lifetime that the method allows."""
    connection = world.connect().connection
    now = world.clock.millis
    evidence = replace(
        connection.evidence, collected_at_ms=now - (span - left) * 1000, valid_until_ms=now + left * 1000
    )
    assert need_of(replace(connection, evidence=evidence), "current", now, deadline * 1000) == need


@pytest.mark.clause("CLI-450", "CLI-383")
def test_a_read_checks_by_itself(world):
    """Over any number of lifetimes: one question each, and nobody is asked."""
    world.connect()
    for _ in range(5):
        world.clock.move(seconds=61)
        assert world.token() == "anna"
    assert (world.provider.probes, world.asked, world.held.revision) == (6, 1, 1)


def test_a_read_under_fresh_evidence_asks_nobody(world):
    world.connect()
    assert (world.token(), world.provider.probes) == ("anna", 1)


@pytest.mark.clause("CLI-454", "CLI-459")
def test_evidence_that_lapses_before_its_use(world):
    world.connect()
    world.clock.move(seconds=61)
    world.provider.valid_until = world.clock.at + timedelta(seconds=1)
    read = world.vault.read

    async def slow(*where):
        world.clock.move(seconds=1)
        return await read(*where)

    world.vault.read = slow
    with refused("not_granted", "revalidate_connection", "admission"):
        world.use()


@pytest.mark.clause("CLI-456", "CLI-921")
def test_a_credential_that_is_refused_on_a_read(world):
    world.connect()
    world.clock.move(seconds=61)
    del world.provider.accounts["anna"]
    with refused("service_failure", "repair_connection", "dispatch", service_code="unauthorized"):
        world.use()
    with refused("not_granted", "repair_connection", "admission"):
        world.use()
    assert (world.held.lifecycle, world.provider.probes) == ("stale", 2)


@pytest.mark.clause("CLI-457")
@pytest.mark.parametrize("said", [*PASSING, "insufficient_scope", "provider_protocol_error"])
def test_an_early_check_that_fails_serves_the_read(world, said):
    world.connect()
    world.clock.move(seconds=45)
    world.provider.says = [said]
    assert (world.token(), world.provider.probes) == ("anna", 2)


@pytest.mark.clause("CLI-457", "CLI-330")
def test_an_early_check_that_fails_serves_nothing_revoked(world):
    """It was revoked while the provider was asked."""
    connection = world.connect().connection
    world.clock.move(seconds=45)
    world.provider.says = ["provider_timeout"]
    world.provider.meanwhile = lambda: revoke(world.registry, world.target, connection, "1")
    with refused("revoked", "create_connection", "admission"):
        world.use()


@pytest.mark.clause("CLI-457")
def test_an_early_check_that_is_refused_does_not(world):
    world.connect()
    world.clock.move(seconds=45)
    world.provider.says = ["credential_invalid"]
    with refused("service_failure", "repair_connection"):
        world.use()


@pytest.mark.clause("CLI-458")
@pytest.mark.parametrize("said", PASSING)
def test_expired_evidence_that_cannot_be_renewed_is_the_answer(world, said):
    world.connect()
    world.clock.move(seconds=61)
    world.provider.says = [said]
    with pytest.raises(HeadwaterError) as caught:
        world.use()
    assert caught.value.code in ("unavailable", "timeout", "service_failure")
    assert (world.provider.probes, world.vault.calls["read"]) == (2, 1)
    assert not caught.value.data.keys() & {"cause", "attempts"}


@pytest.mark.clause("CLI-460")
@pytest.mark.parametrize("how", ["stale", "expired", "scopes"])
def test_a_connection_of_no_good_credential_asks_nobody(world, how):
    world.connect()
    held = world.held
    checks = {**held.evidence.checks, "scope_check": "insufficient"}
    changed = {
        "stale": {"lifecycle": "stale"},
        "expired": {"evidence": replace(held.evidence, credential_expires_at_ms=world.clock.millis)},
        "scopes": {"evidence": replace(held.evidence, checks=checks)},
    }
    world.registry.publish(held, replace(held, **changed[how]), world.clock.millis)
    with refused("not_granted", "repair_connection", "admission"):
        world.use()
    assert world.provider.probes == 1


@pytest.mark.clause("CLI-384")
def test_a_version_that_is_gone_is_a_failure(world):
    """No other version takes its place, and who looks is told. One that is there again counts again, once checked."""
    world.connect()
    kept, world.vault.kept = world.vault.kept, {}
    with refused("custody_unavailable", "repair_connection", "custody"):
        world.use()
    shown = description_of(world.held, world.target, world.clock.millis)
    assert (world.held.lifecycle, shown["state"]) == ("live", "reauthorization_required")
    world.vault.kept = kept
    world.revalidate()
    assert world.token() == "anna"


@pytest.mark.clause("CLI-384")
def test_custody_that_is_locked_is_a_failure(world):
    world.connect()
    world.vault.fails["read"] = refuse("custody_unavailable")
    with refused("custody_unavailable", "unlock_keyring", "custody"):
        world.use()
    del world.vault.fails["read"]
    world.clock.move(seconds=61)
    assert world.token() == "anna"
    assert world.held.evidence.checks["custody_reachable"] == "ok"


@pytest.mark.clause("CLI-489")
def test_two_reads_on_lapsed_evidence_make_one_check(world):
    """The second one waits for its turn, and finds what the first one has found."""
    world.connect()
    lapsed = world.held
    world.clock.move(seconds=61)
    world.token()
    assert asyncio.run(world.validating.recheck(lapsed)).evidence == world.held.evidence
    assert world.provider.probes == 2


@pytest.mark.clause("CLI-489")
def test_readers_at_once_make_one_check(world):
    """Whoever comes while another one asks the provider waits for what that one finds."""
    world.connect()
    world.clock.move(seconds=61)

    def read(_number):
        with other(world) as elsewhere:
            return elsewhere.token()

    assert list(ThreadPoolExecutor(4).map(read, range(4))) == ["anna"] * 4
    assert world.provider.probes == 2


def test_a_turn_that_does_not_come(world, monkeypatch):
    """A process that holds an instance for ever is waited for as long as the bound says."""
    world.connect()
    monkeypatch.setattr(limits, "CONNECTION_TURN_SECONDS", 0.0)
    with exclusive(world.place / "locks" / "shop.me.lock"), refused("timeout", "retry_explicitly"):
        world.revalidate()
    world.revalidate()


def test_a_credential_that_was_refused_in_use(world):
    """A provider refused it in a run: the connection is cut off, unless it has another credential by now."""
    used = world.connect().connection
    world.reconnect("anna2")
    refused_in_use(world.registry, used)
    assert world.held.lifecycle == "live"
    refused_in_use(world.registry, world.held)
    assert world.held.lifecycle == "stale"


def test_a_longer_lifetime_than_allowed_is_cut(world):
    world.configure(methods=(replace(TOKEN, evidence_lifetime_ms=900_000),))
    evidence = world.connect().connection.evidence
    assert evidence.valid_until_ms - evidence.collected_at_ms == 300_000


@pytest.mark.clause("CLI-904")
def test_a_check_whose_connection_changed_meanwhile_publishes_nothing(world):
    """Somebody else's commit came between what was read and what was to be written."""
    connection = world.connect().connection

    def meanwhile():
        world.provider.meanwhile = lambda: None
        held = world.held
        world.registry.publish(held, replace(held, revision=held.revision + 1), world.clock.millis)

    world.provider.meanwhile = meanwhile
    with refused("revision_conflict", "retry_explicitly", "publication"):
        world.revalidate()
    assert world.held.evidence == connection.evidence
