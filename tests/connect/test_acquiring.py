"""Connecting and reconnecting, with a fault at every step."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from connect.conftest import refused
from connect.world import TOKEN, World, other
from msgspec.structs import replace

from headwater.connect.admission import selected
from headwater.connect.envelope import Credential, Envelope
from headwater.connect.looking import observation_of
from headwater.connect.model import Connection
from headwater.connect.revoking import revoke
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.auth import OAuth
from headwater.secret import Secret


def revoked(world: World, connection: Connection) -> Connection:
    return revoke(world.registry, world.target, connection, str(connection.revision))


@pytest.mark.clause("CLI-300", "CLI-380", "INT-196")
def test_a_connection_is_made(world):
    """It has the account that the provider named, and its credential is in custody."""
    made = world.connect()
    assert world.held == made.connection
    assert (made.connection.identity.kind, made.connection.identity.subject) == ("user", "anna")
    assert (world.token(), world.vault.calls["probe"], world.vault.calls["write_new"]) == ("anna", 1, 1)


@pytest.mark.clause("CLI-380", "CLI-381")
@pytest.mark.parametrize("step", ["probe", "write_new"])
def test_custody_that_fails_leaves_nothing(world, step):
    world.vault.fails[step] = refuse("custody_unavailable")
    with refused("custody_unavailable"):
        world.connect()
    assert world.registry.held(world.target.owner, world.target.instance_id) == []


@pytest.mark.clause("INT-244")
def test_custody_is_tried_before_anybody_is_asked(world):
    world.vault.fails["probe"] = refuse("custody_unavailable")
    with refused("custody_unavailable"):
        world.connect()
    assert (world.asked, world.provider.probes) == (0, 0)


@pytest.mark.clause("CLI-381")
def test_an_unknown_custody_write_is_not_stored(world):
    """It is told as unknown; nothing is published, and the next connect is admitted."""
    world.vault.fails["write_new"] = refuse("outcome_unknown", stage="custody")
    with refused("outcome_unknown"):
        world.connect()
    assert world.registry.held(world.target.owner, world.target.instance_id) == []
    del world.vault.fails["write_new"]
    assert world.connect().connection == world.held


FAILURES = {
    "credential_invalid": ("service_failure", "retry_explicitly", "dispatch", {"service_code": "unauthorized"}),
    "insufficient_scope": ("forbidden", "request_permission", "admission", {}),
    "provider_rate_limited": ("service_failure", "retry_explicitly", "dispatch", {"service_code": "rate_limited"}),
    "provider_unavailable": ("unavailable", "retry_explicitly", "admission", {}),
    "provider_timeout": ("timeout", "retry_explicitly", "dispatch", {}),
    "provider_protocol_error": (
        "service_failure",
        "retry_explicitly",
        "dispatch",
        {"service_code": "upstream_protocol"},
    ),
    "exchange_unknown": ("outcome_unknown", "retry_status", "dispatch", {}),
}


@pytest.mark.clause("CLI-910", "CLI-913", "CLI-915", "CLI-922", "CLI-923", "CLI-924", "CLI-925", "CLI-322")
@pytest.mark.parametrize("said", FAILURES)
def test_what_the_provider_says_to_a_connect(world, said):
    """The acquisition's own code answers, and names the acquisition, which tells the same later."""
    code, next_action, stage, data = FAILURES[said]
    world.provider.says = [said]
    with refused(code, next_action, stage, **data):
        world.connect()
    assert world.vault.calls["write_new"] == 0


@pytest.mark.clause("CLI-321", "CLI-322", "CLI-323")
@pytest.mark.parametrize(
    ("said", "reason"), [("credential_invalid", "rejected"), ("exchange_unknown", "exchange_unknown")]
)
def test_a_failed_acquisition_tells_why(world, said, reason):
    world.provider.says = [said]
    with pytest.raises(HeadwaterError) as caught:
        world.connect()
    acquisition = world.registry.acquisition(world.target.owner, caught.value.data["acquisition"])
    shown = observation_of(acquisition, world.clock.millis)
    assert (shown["state"], shown["reason"]) == ("failed", reason)
    assert "connection" not in shown
    assert world.provider.probes == 1


@pytest.mark.clause("INT-245", "CLI-377")
def test_too_few_scopes_store_nothing(world):
    world.declare(oauth=OAuth("https://shop.example/token", minimum_scopes=("read", "mail")))
    world.provider.scopes = ("read",)
    with refused("not_granted", "retry_explicitly", "admission"):
        world.acquire(Credential(Envelope(Secret("anna"))))
    assert world.vault.calls["write_new"] == 0


@pytest.mark.clause("CLI-301", "CLI-302", "CLI-347")
def test_an_occupied_instance_is_told_before_anything(world):
    world.connect()
    asked, probes = world.asked, world.provider.probes
    with refused("lifecycle_conflict", "repair_connection", "admission"):
        asyncio.run(world.acquiring.connect(None, lambda _: pytest.fail("a source was asked for")))
    assert (world.asked, world.provider.probes) == (asked, probes)


@pytest.mark.clause("CLI-307")
def test_a_second_connect_names_the_first(world):
    """While one is being entered, another one is refused with its reference, which can be followed until it ends."""

    def second():
        with other(world) as elsewhere, pytest.raises(HeadwaterError) as caught:
            elsewhere.connect()
        return caught.value

    def ask(method):
        error = ThreadPoolExecutor().submit(second).result()
        assert (error.code, error.stage, error.next_action) == ("lifecycle_conflict", "admission", "retry_status")
        under_way = world.registry.acquisition(world.target.owner, error.data["acquisition"])
        assert observation_of(under_way, world.clock.millis)["state"] == "pending"
        return world.entering("anna")(method).ask(method)

    made = world.connect_by(ask)
    shown = observation_of(world.registry.acquisition(world.target.owner, made.acquisition), world.clock.millis)
    assert (shown["state"], shown["connection"]) == ("completed", made.connection.reference)


@pytest.mark.clause("CLI-309")
def test_twenty_connects_publish_one(world):
    def one(_number):
        with other(world) as elsewhere:
            try:
                return elsewhere.connect().connection
            except HeadwaterError as error:
                return error.code

    ended = list(ThreadPoolExecutor(20).map(one, range(20)))
    assert ended.count("lifecycle_conflict") == 19
    assert world.held in ended


@pytest.mark.clause("CLI-309")
def test_two_publications_never_both_stand(world):
    """Even where nothing kept two processes apart, the second one writes nothing."""
    first = world.connect().connection
    second = replace(first, reference="another")
    assert not world.registry.publish(None, second, world.clock.millis)
    assert world.held == first


@pytest.mark.clause("CLI-310")
def test_what_failed_or_was_revoked_is_in_nobodys_way(world):
    world.provider.says = ["credential_invalid"]
    with refused("service_failure"):
        world.connect()
    first = world.connect().connection
    revoked(world, first)
    second = world.connect("bert").connection
    assert (second.identity.subject, second.reference != first.reference) == ("bert", True)


@pytest.mark.clause("CLI-310", "CLI-369", "CLI-321")
def test_an_acquisition_has_five_minutes(world):
    """What is entered later is not looked at, and is told as expired."""

    def ask(method):
        world.clock.move(seconds=300)
        return world.entering("anna")(method).ask(method)

    with refused("timeout", "retry_explicitly", "dispatch"):
        world.connect_by(ask)
    assert world.provider.probes == 0
    assert world.connect().connection == world.held


def test_a_publication_after_the_deadline_is_none(world):
    """The provider answered too late: its answer is not published."""
    world.provider.meanwhile = lambda: world.clock.move(seconds=300)
    with refused("lifecycle_conflict"):
        world.connect()
    assert world.registry.held(world.target.owner, world.target.instance_id) == []


@pytest.mark.clause("CLI-318", "CLI-319")
def test_a_reconnect_keeps_reference_and_revision(world):
    before = world.connect().connection
    after = world.reconnect("anna2").connection
    assert (after.reference, after.revision) == (before.reference, before.revision)
    assert (after.generation, world.token()) == (before.generation + 1, "anna2")
    assert world.reconnect("anna").connection.revision == 1


@pytest.mark.clause("CLI-311", "INT-197", "CLI-320")
def test_another_account_changes_nothing(world):
    world.connect()
    before = world.held
    with refused("identity_mismatch", "revoke_connection", "admission"):
        world.reconnect("bert")
    assert (world.held, world.token()) == (before, "anna")
    assert world.vault.calls["write_new"] == 1


@pytest.mark.clause("INT-243")
def test_a_name_that_changed_is_the_same_account(world):
    world.connect()
    world.provider.accounts["anna2"] = "anna"
    assert world.reconnect("anna2").connection.identity.subject == "anna"


@pytest.mark.clause("CLI-320")
def test_a_reconnect_that_fails_leaves_the_old_credential(world):
    world.connect()
    for said in ("credential_invalid", "exchange_unknown", "provider_timeout"):
        world.provider.says = [said]
        with pytest.raises(HeadwaterError):
            world.reconnect("anna2")
    assert world.token() == "anna"


@pytest.mark.clause("CLI-320")
def test_a_reconnect_that_fails_heals_nothing(world):
    """A connection that was cut off stays so until another credential is published."""
    world.connect()
    world.provider.says = ["credential_invalid"]
    with refused("service_failure"):
        world.revalidate()
    world.provider.says = ["credential_invalid"]
    with refused("service_failure", "retry_explicitly"):
        world.reconnect("anna2")
    assert world.held.lifecycle == "stale"
    assert world.reconnect("anna2").connection.lifecycle == "live"


@pytest.mark.clause("CLI-333")
def test_nothing_is_published_across_a_revoke(world):
    connection = world.connect().connection
    world.provider.meanwhile = lambda: revoked(world, world.registry.find(connection.owner, connection.reference))
    with refused("revoked", "create_connection"):
        world.reconnect("anna2")
    assert world.registry.find(connection.owner, connection.reference).lifecycle == "revoked"


@pytest.mark.clause("CLI-340")
def test_of_two_reconnects_one_publishes(world):
    world.connect()
    world.provider.meanwhile = once(lambda: publish_another(world))
    with refused("lifecycle_conflict", "retry_status", "publication"):
        world.reconnect("anna2")
    assert world.held.generation == 2


def publish_another(world):
    held = world.held
    world.registry.publish(held, replace(held, generation=held.generation + 1, version="other"), world.clock.millis)


def once(act):
    """Do something the first time only."""
    left = [act]
    return lambda: left.pop()() if left else None


def test_evidence_that_is_renewed_meanwhile_disturbs_no_reconnect(world):
    """Somebody typed a credential: a run that checked the old one in between costs nothing."""
    world.connect()
    held = world.held
    world.provider.meanwhile = once(lambda: world.registry.publish(held, held, world.clock.millis))
    assert world.reconnect("anna2").connection.generation == 2


@pytest.mark.clause("CLI-336", "CLI-338", "CLI-346")
def test_a_revision_that_is_not_the_one_of_now(world):
    world.connect()
    with refused(
        "lifecycle_conflict",
        "retry_status",
        "admission",
        field="expected_revision",
        revision_expected="connection",
        read_with="connections describe",
    ):
        world.reconnect(revision=2)
    assert world.asked == 1


@pytest.mark.clause("CLI-337", "CLI-338")
def test_the_revision_of_the_configuration_is_another_one(world):
    world.connect()
    with refused("invalid_input", "none", "arguments", field="expected_revision", revision_given="configuration"):
        world.reconnect(revision="c1")
    assert world.asked == 1


@pytest.mark.clause("CLI-314", "CLI-313")
def test_nothing_is_held(world):
    with refused("not_found", "create_connection", "admission"):
        world.reconnect()


@pytest.mark.clause("CLI-312", "CLI-304", "CLI-315")
def test_several_are_held(world):
    """A store of old may hold several: each is usable by its name, and none is chosen."""
    first = world.connect().connection
    world.registry._run("add_connection", {**_row_of(first), "reference": "older", "now_ms": 0})
    with refused("invalid_input", "none", "arguments"):
        world.reconnect()
    with refused("lifecycle_conflict", "revoke_connection", "admission"):
        world.connect()
    assert world.reconnect("anna2", reference="older").connection.reference == "older"
    revoked(world, world.registry.find(first.owner, "older"))
    assert world.held.reference == first.reference


def _row_of(connection):
    from headwater.store.sqlite.connections import _row

    return _row(connection)


@pytest.mark.clause("CLI-341", "INT-473")
def test_a_reference_alone_reaches_nothing(world):
    """A made-up one, another instance's and another owner's are all the same: not there."""
    connection = world.connect().connection
    elsewhere = replace(world.target, instance_id="shop.other")
    foreign = replace(world.target, owner=1001)
    for target, reference in (
        (world.target, "connection_x"),
        (elsewhere, connection.reference),
        (foreign, connection.reference),
    ):
        with refused("not_found", "check_configuration", "admission"):
            selected(world.registry, target, reference)
    assert world.registry.held(1001, world.target.instance_id) == []


@pytest.mark.clause("INT-243", "INT-473")
def test_one_account_of_two_owners_is_two_connections(world):
    first = world.connect().connection
    world.configure(owner=1001)
    second = world.connect().connection
    assert first.reference != second.reference


@pytest.mark.clause("CLI-344")
def test_which_way_to_sign_in(world):
    world.configure(methods=(TOKEN, replace(TOKEN, key="other")))
    with refused("invalid_input", "none", "arguments"):
        world.connect()
    with refused("invalid_input", "none", "arguments"):
        world.connect(profile="nope")
    world.configure(profile="other")
    assert world.connect().connection.profile == "other"


def test_a_way_that_is_not_permitted(world):
    world.configure(permitted=("another",))
    with refused("forbidden", "request_permission", "admission"):
        world.connect()
    assert world.asked == 0


def test_a_failure_of_ours_ends_the_acquisition(world):
    """Whatever is raised while a credential is entered, the next connect is admitted at once."""

    def ask(_method):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.connect_by(ask)
    assert world.registry.open_connect(world.target.owner, world.target.instance_id, world.clock.millis) is None


def test_fields_that_do_not_fit(world):
    with refused("invalid_input", "select_protected_source", "protected_entry"):
        world.connect("")
    assert world.provider.probes == 0


@pytest.mark.clause("INT-472")
def test_who_owns_acts_and_for_which_team(world):
    """Three facts are recorded of an attempt; on a machine of one person they are that person."""
    made = world.connect()
    found = world.registry.acquisition(world.target.owner, made.acquisition)
    assert (found.owner, found.acting_user, found.team) == (1000, 1000, 1000)
