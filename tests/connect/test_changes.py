"""What a change of the configuration does to a connection: the whole table, and what each command answers to it."""

import pytest
from connect.conftest import refused
from connect.world import TOKEN
from msgspec.structs import replace

from headwater.connect.changes import binding_of, standing_of
from headwater.connect.looking import description_of
from headwater.connect.state import state_of
from headwater.manifest.auth import Identity

OTHER_PROBE = replace(TOKEN, identity=Identity("api", "user", "/me", "/id"))

# What is changed, how the connection then stands, its state, whether it is told as stale, what a read is told to do
# (None: it is served), and what a connect is told to do.
CHANGES = {
    "nothing": ({}, "current", "ready", False, None, "repair_connection"),
    "operations": ({"configuration_revision": "c2"}, "moved", "ready", False, None, "repair_connection"),
    "executable": ({"executable": "declared/2"}, "other_executable", "ready", False, None, "repair_connection"),
    "path of the endpoint": (
        {"configuration_revision": "c2", "endpoint": "https://shop.example/v2"},
        "followable",
        "pending",
        True,
        "revalidate_connection",
        "revalidate_connection",
    ),
    "trust": (
        {"configuration_revision": "c2", "trust": "digest"},
        "followable",
        "pending",
        True,
        "revalidate_connection",
        "revalidate_connection",
    ),
    "lifetime of evidence": (
        {"configuration_revision": "c2", "methods": (replace(TOKEN, evidence_lifetime_ms=30_000),)},
        "changed",
        "pending",
        True,
        "create_connection",
        "revoke_connection",
    ),
    "method gone": (
        {"configuration_revision": "c2", "methods": (replace(TOKEN, key="other"),)},
        "changed",
        "pending",
        True,
        "create_connection",
        "revoke_connection",
    ),
    "authority": (
        {"configuration_revision": "c2", "authority": "https://b.example", "endpoint": "https://b.example"},
        "foreign",
        "pending",
        True,
        "check_configuration",
        "check_configuration",
    ),
    "authentication": (
        {"configuration_revision": "c2", "methods": (OTHER_PROBE,)},
        "foreign",
        "pending",
        True,
        "check_configuration",
        "check_configuration",
    ),
}
each = pytest.mark.parametrize(
    ("change", "standing", "state", "stale", "read", "connect"), CHANGES.values(), ids=list(CHANGES)
)
CHANGED = pytest.mark.clause(
    "CLI-302", "CLI-303", "CLI-304", "CLI-305", "CLI-463", "CLI-464", "CLI-465", "CLI-467", "CLI-468", "CLI-469",
    "CLI-470", "CLI-472", "CLI-473", "CLI-906",
)  # fmt: skip


@CHANGED
@each
def test_a_change_of_the_configuration(world, change, standing, state, stale, read, connect):
    world.connect()
    world.configure(**change)
    shown = description_of(world.held, world.target, world.clock.millis)
    assert standing_of(world.held, world.target, world.clock.millis) == standing
    assert (shown["state"], shown["stale"]) == (state, stale)
    with refused("lifecycle_conflict", connect, "admission"):
        world.connect()
    if read is None:
        assert (world.token(), world.asked) == ("anna", 1)
        world.reconnect("anna2")
        return
    with refused("lifecycle_conflict", read, "admission"):
        world.use()
    with refused("lifecycle_conflict", read, "admission"):
        world.reconnect("anna2")
    assert world.asked == 1


@pytest.mark.clause("CLI-467", "CLI-468")
@pytest.mark.parametrize("what", ["stale", "expired", "refused"])
def test_what_cannot_be_followed_is_made_anew(world, what):
    """A connection of no good credential, or one that was refused under this very configuration, is not followed."""
    world.connect()
    held = world.held
    evidence = replace(held.evidence, credential_expires_at_ms=world.clock.millis)
    ended = {
        "stale": {"lifecycle": "stale"},
        "expired": {"evidence": evidence},
        "refused": {"refused_configuration_revision": "c2"},
    }
    world.registry.publish(held, replace(held, **ended[what]), world.clock.millis)
    world.configure(configuration_revision="c2", trust="digest")
    with refused("lifecycle_conflict", "create_connection", "admission"):
        world.use()
    with refused("lifecycle_conflict", "revoke_connection", "admission"):
        world.connect()


@pytest.mark.clause("CLI-467")
def test_a_binding_without_a_digest_is_tied_to_the_configuration(world):
    """One that was saved before digests were recorded is pending under any other revision."""
    world.connect()
    held = world.held
    world.registry.publish(
        held, replace(held, binding=replace(held.binding, credential_revision=None)), world.clock.millis
    )
    assert standing_of(world.held, world.target, world.clock.millis) == "current"
    world.configure(configuration_revision="c2")
    assert standing_of(world.held, world.target, world.clock.millis) == "followable"


@pytest.mark.clause("CLI-463")
def test_the_digest_is_of_where_a_credential_goes_and_how(world):
    """Operations and labels are no part of it; each thing that says where or how is."""
    target = world.target
    digest = binding_of(target, TOKEN).credential_revision
    same = (replace(target, configuration_revision="c2", executable="x"), replace(target, profile="api_token"))
    assert {binding_of(one, TOKEN).credential_revision for one in same} == {digest}
    assert binding_of(target, replace(TOKEN, label="Another")).credential_revision == digest
    moved = (replace(target, endpoint="https://shop.example/v2"), replace(target, trust="x"))
    ways = (replace(TOKEN, header="X-Key"), replace(TOKEN, prefix=""), OTHER_PROBE)
    digests = [binding_of(one, TOKEN).credential_revision for one in moved]
    digests += [binding_of(target, way).credential_revision for way in ways]
    assert digest not in digests
    assert len(set(digests)) == len(digests)


@pytest.mark.clause("CLI-306")
def test_the_place_of_credentials_makes_no_difference(world):
    world.connect()
    world.vault.read_only = True
    with refused("lifecycle_conflict", "repair_connection", "admission"):
        world.connect()


@pytest.mark.clause("CLI-345")
@pytest.mark.parametrize(
    ("members", "checks", "seconds", "enabled", "state"),
    [
        ({}, {}, 0, True, "ready"),
        ({}, {}, 60, True, "pending"),
        ({}, {}, -1, True, "pending"),
        ({"lifecycle": "stale"}, {}, 60, True, "reauthorization_required"),
        ({}, {"credential_present": "missing"}, 0, True, "reauthorization_required"),
        ({}, {"scope_check": "insufficient"}, 0, True, "reauthorization_required"),
        ({}, {"custody_reachable": "unavailable"}, 60, True, "custody_unavailable"),
        ({"lifecycle": "stale"}, {"custody_reachable": "unavailable"}, 0, True, "reauthorization_required"),
        ({"lifecycle": "stale"}, {}, 0, False, "disabled"),
        ({"lifecycle": "revoked"}, {"custody_reachable": "unavailable"}, 60, False, "revoked"),
    ],
)
def test_the_first_condition_that_holds_is_the_state(world, members, checks, seconds, enabled, state):
    connection = world.connect().connection
    evidence = replace(connection.evidence, checks={**connection.evidence.checks, **checks})
    world.clock.move(seconds=seconds)
    found = replace(connection, evidence=evidence, **members)
    assert state_of(found, "current", world.clock.millis, enabled=enabled) == state


def test_a_connector_that_is_disabled_does_nothing(world):
    """Its connection is shown as it is, and neither used, renewed nor made."""
    world.connect()
    world.configure(enabled=False)
    assert description_of(world.held, world.target, world.clock.millis)["state"] == "disabled"
    for act in (world.use, world.reconnect, world.revalidate, world.connect):
        with refused("invalid_configuration", "check_configuration"):
            act()
