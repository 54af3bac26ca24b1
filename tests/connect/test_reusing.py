"""A credential that is copied from one instance's connection to another's: from which, and what prevents it."""

import asyncio
import dataclasses
from collections.abc import Callable

import pytest
from connect.conftest import refused
from connect.world import TARGET, TOKEN, World
from msgspec.structs import replace

from headwater import limits
from headwater.connect.acquiring import Acquired
from headwater.connect.changes import binding_of
from headwater.connect.entries import Copied
from headwater.connect.looking import observation_of
from headwater.connect.model import Connection, Evidence, Identity, Target
from headwater.connect.reusing import Source, sources_for
from headwater.connect.revoking import revoke
from headwater.manifest.auth import Field, Method, OAuth
from headwater.manifest.auth import Identity as Asked

NOW = 1_000
PERSON = Identity("user", "anna")
DEFINITION = replace(TARGET, instance="definition", instance_id="shop.definition", profile=TOKEN.key)
OAUTH = OAuth("https://shop.example/token", "https://shop.example/authorize", client_id="c")


def served(target: Target, method: Method, **members: object) -> Target:
    return replace(target, methods=(method,), profile=method.key, **members)


def source_of(target: Target) -> Source:
    """Return a connection that was just made under what is configured of an instance."""
    (method,) = target.methods
    names = (target.owner, target.instance_id, target.connector, target.instance, method.key)
    made = Connection("connection_1", *names, binding_of(target, method), PERSON, "v1", Evidence(NOW, NOW + 10))
    return Source(made, target)


def is_offered(method: Method = TOKEN, own: dict[str, object] | None = None, its: Method | None = None) -> bool:
    """Whether a connection of `shop/me`, configured with `own` and made by `method`, is offered to a definition."""
    source = source_of(served(TARGET, method, **(own or {})))
    return sources_for(served(DEFINITION, its or method), [source], NOW) == [source]


@pytest.mark.clause("CLI-1081", "CLI-1082")
def test_a_static_credential_may_be_copied():
    name = Field("name", "Name", "text", required=True)
    assert is_offered()
    assert is_offered(replace(TOKEN, scheme="basic", fields=(name, *TOKEN.fields)))
    assert is_offered(its=replace(TOKEN, evidence_lifetime_ms=5))


@pytest.mark.clause("CLI-1082")
@pytest.mark.parametrize(
    "method",
    [
        replace(TOKEN, scheme="oauth2_grant", flow="oauth", fields=(), oauth=OAUTH),
        replace(TOKEN, scheme="oauth2_client_credentials", flow="oauth", fields=(), oauth=OAUTH),
        replace(TOKEN, scheme="hooks"),
        replace(TOKEN, oauth=OAUTH),
        replace(TOKEN, identity=Asked("configuration", "user", "/whoami")),
    ],
)
def test_what_is_renewed_or_sent_elsewhere_or_is_one_instances_own_is_not(method):
    assert not is_offered(method)


@pytest.mark.clause("CLI-1081", "CLI-1085")
@pytest.mark.parametrize(
    "own",
    [
        {"connector": "other"},
        {"instance_id": "shop.definition"},
        {"authority": "https://other.example"},
        {"executable": "shop/1.0.0 abc"},
        {"enabled": False},
    ],
)
def test_another_connector_service_program_or_a_disabled_one(own):
    assert not is_offered(own=own)


@pytest.mark.clause("CLI-1081")
def test_another_way_to_sign_in():
    assert not is_offered(its=replace(TOKEN, header="X-Token"))
    assert sources_for(replace(DEFINITION, profile=None), [source_of(served(TARGET, TOKEN))], NOW) == []


def copy(world: World, source: Connection, seconds: int = limits.COPY_SECONDS) -> Acquired:
    """Copy a credential to the instance of a definition."""
    acquiring = dataclasses.replace(world.acquiring, target=DEFINITION, source=source, seconds=seconds)
    return asyncio.run(acquiring.connect(None, lambda _: Copied(source, world.vault)))


def copies(world: World) -> list[Connection]:
    return world.registry.held(DEFINITION.owner, DEFINITION.instance_id)


def failed(world: World) -> dict:
    """Return what is told of the copy that failed."""
    query = "SELECT reference FROM acquisitions WHERE instance_id = 'shop.definition'"
    reference = world.registry._connection.execute(query).get
    return observation_of(world.registry.acquisition(DEFINITION.owner, reference), world.clock.millis)


@pytest.mark.clause("CLI-1086", "CLI-1090")
def test_a_copy_is_a_version_of_its_own(world):
    source = world.connect().connection
    made = copy(world, source).connection
    assert (copies(world), world.held) == ([made], source)
    kept = world.vault.kept
    assert made.version != source.version
    assert kept[made.reference, made.version].reveal() == kept[source.reference, source.version].reveal()
    revoke(world.registry, world.target, source, "1")
    assert copies(world) == [made]


@pytest.mark.clause("CLI-1086")
def test_an_instance_that_is_occupied(world):
    source = world.connect().connection
    copy(world, source)
    with refused("lifecycle_conflict", "repair_connection"):
        copy(world, source)


def written(world: World, source: Connection, **members: object) -> None:
    assert world.registry.publish(source, replace(source, **members), world.clock.millis)


@pytest.mark.clause("CLI-1087", "CLI-1090")
@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda world, source: revoke(world.registry, world.target, source, "1"), "revoked"),
        (written, "lifecycle_conflict"),
        (lambda world, source: written(world, source, lifecycle="stale"), "lifecycle_conflict"),
        (lambda world, source: written(world, source, version="v9", generation=2), "lifecycle_conflict"),
    ],
)
def test_a_source_that_changes_behind_the_last_look(world, act: Callable, code):
    """It changes when the copy is in custody already: the commit itself finds it changed, and publishes nothing."""
    source = world.connect().connection
    write = world.vault.write_new

    async def write_new(*words: object) -> str:
        version = await write(*words)
        act(world, source)
        return version

    world.vault.write_new = write_new
    with refused(code):
        copy(world, source)
    assert (copies(world), failed(world)["state"]) == ([], "failed")


@pytest.mark.clause("CLI-1087")
@pytest.mark.parametrize("members", [{"fence": 2}, {"generation": 2}, {"version": "v9"}, {"owner": 1}])
def test_the_commit_compares_what_was_read(world, members):
    source = world.connect().connection
    after = replace(source, reference="connection_2", instance_id="shop.definition")
    assert not world.registry.publish(None, after, NOW, source=replace(source, **members))
    assert copies(world) == []
    assert world.registry.publish(None, after, NOW, source=source)


@pytest.mark.clause("CLI-1087", "CLI-1088", "CLI-1090")
def test_another_account_behind_the_same_credential(world):
    source = world.connect().connection
    world.provider.accounts["anna"] = "bert"
    with refused("identity_mismatch", "create_connection", "admission"):
        copy(world, source)
    assert (copies(world), world.held, world.vault.calls["write_new"]) == ([], source, 1)


@pytest.mark.clause("CLI-1090")
def test_a_credential_that_cannot_be_read_leaves_the_source_unmarked(world):
    source = world.connect().connection
    world.vault.kept.clear()
    with refused("custody_unavailable"):
        copy(world, source)
    assert (copies(world), world.held) == ([], source)


@pytest.mark.clause("CLI-1087")
def test_a_copy_that_comes_too_late(world):
    source = world.connect().connection
    world.provider.meanwhile = lambda: world.clock.move(seconds=limits.COPY_SECONDS + 1)
    with refused("lifecycle_conflict"):
        copy(world, source)
    assert (copies(world), world.held) == ([], source)
    assert (failed(world)["state"], failed(world)["reason"]) == ("failed", "rejected")
