"""Planning: a scope that is explicit and never wider than asked, a mode, and the bindings to announce."""

import json
from typing import Any

import msgspec
import pytest

from headwater.collect.plan import Authority, RunPlan, match_bindings, plan_mode, plan_scope
from headwater.collect.session import Session
from headwater.errors import HeadwaterError, OperationalError, UsageError
from headwater.manifest.declaration import Declaration
from headwater.manifest.reading import examine, read
from headwater.wire.encode import encode
from headwater.wire.messages import CollectionScope

SCHEMA = {
    "type": "object",
    "properties": {name: {} for name in ("id", "created", "title", "at", "popularity")},
    "required": ["id", "created"],
}
ALPHA = {"name": "alpha", "primary_key": ["id"], "schema": SCHEMA, "consent_time_field": "at"}
BETA = {"name": "beta", "primary_key": ["user", "day"]}


def declare(*streams: dict[str, Any], **bindings: Any) -> Declaration:
    """Read a manifest with the given streams and bindings."""
    document = {"connector_id": "c", "streams": list(streams) or [ALPHA, BETA]}
    return read(json.dumps({**document, "runtime_requirements": {"bindings": bindings}}).encode())


def scope(*streams: dict[str, Any]) -> CollectionScope:
    """Ask for streams as a request would."""
    return msgspec.convert({"streams": list(streams)}, CollectionScope)


def planned(*streams: dict[str, Any]) -> list[dict[str, Any]]:
    """Plan what was asked of the usual manifest, and return the entries as START has them."""
    return msgspec.to_builtins(plan_scope(declare(), scope(*streams)).streams)


def faults(*streams: dict[str, Any]) -> set[tuple[str, str]]:
    """Return the place and the rule of every fault of a request that is refused."""
    with pytest.raises(UsageError) as refusal:
        planned(*streams)
    assert refusal.value.code == "invalid_scope"
    return {(fault["pointer"], fault["rule"]) for fault in refusal.value.data["faults"]}


# Scope.


@pytest.mark.clause("CP-300", "CP-301")
def test_nothing_asked_for_is_every_stream_by_its_name():
    """START names each declared stream, in the manifest's order, and has no wildcard."""
    for asked in (plan_scope(declare()), plan_scope(declare(), scope({"name": "*"})), plan_scope(declare(), names="*")):
        assert msgspec.to_builtins(asked) == {"streams": [{"name": "alpha"}, {"name": "beta"}]}
    start = encode(Session(RunPlan("r", declare(), plan_scope(declare()))).start())
    assert b"*" not in start


@pytest.mark.clause("CP-301")
def test_a_wildcard_carries_its_narrowing_to_each_stream():
    """What was asked of all is asked of each, with the fields that each of them needs."""
    assert planned({"name": "*", "fields": ["id"], "resources": ["r1"]}) == [
        {"name": "alpha", "resources": ["r1"], "fields": ["at", "created", "id"]},
        {"name": "beta", "resources": ["r1"], "fields": ["day", "id", "user"]},
    ]


@pytest.mark.clause("CP-300")
def test_a_request_for_no_stream_is_refused():
    """An empty scope is not taken for everything, nor is a manifest without streams."""
    assert faults() == {("/streams", "empty")}
    with pytest.raises(HeadwaterError):
        plan_scope(Declaration("c", "1", "c", {}))


@pytest.mark.clause("CP-302")
def test_an_entry_has_four_members_and_no_other():
    """A necessity or a view cannot even be said, and what was not asked for is absent from the line."""
    window = {"since": "2026-01-01T00:00:00Z"}
    entry = {"name": "alpha", "resources": ["r1"], "time_range": window, "fields": ["at", "created", "id"]}
    assert planned(entry) == [entry]
    assert planned({"name": "alpha"}) == [{"name": "alpha"}]
    for extra in ({"necessity": "optional"}, {"view": "basic"}):
        with pytest.raises(msgspec.ValidationError):
            scope({"name": "alpha", **extra})


@pytest.mark.clause("CP-303", "CP-307", "CP-308")
def test_a_scope_is_no_wider_than_what_was_asked():
    """Only the streams and fields of the request are named, and the fields that every record needs."""
    (entry,) = planned({"name": "alpha", "fields": ["title"], "time_range": {"since": "2026-01-01T00:00:00Z"}})
    assert entry["name"] == "alpha"
    assert set(entry["fields"]) - {"id", "created", "at"} == {"title"}
    assert entry["time_range"] == {"since": "2026-01-01T00:00:00Z"}


@pytest.mark.clause("CP-305")
def test_a_window_and_resources_are_sent_as_they_were_asked():
    """Neither is widened, closed or opened on its way to START."""
    window = {"since": "2026-01-01T00:00:00Z", "until": "2026-02-01T00:00:00+02:00"}
    (entry,) = planned({"name": "alpha", "time_range": window, "resources": ["r1", "r2"]})
    assert (entry["time_range"], entry["resources"]) == (window, ["r1", "r2"])


@pytest.mark.clause("CP-310")
def test_fields_include_what_every_record_needs():
    """Required fields, the key and the consent time are added, sorted and once each."""
    (entry,) = planned({"name": "alpha", "fields": ["title", "id", "title"]})
    assert entry["fields"] == ["at", "created", "id", "title"]


@pytest.mark.clause("CP-311")
def test_resources_are_canonical_key_strings():
    """A compound key is the minified text of its array and reaches START as that one string."""
    key = '["u1","2026-04-01"]'
    assert planned({"name": "beta", "resources": [key]}) == [{"name": "beta", "resources": [key]}]


@pytest.mark.parametrize(
    ("entry", "place", "rule"),
    [
        ({"name": "ghost"}, "/streams", "unknown_stream"),
        ({"name": "alpha", "fields": ["ghost"]}, "/streams/0/fields", "unknown_field"),
        ({"name": "alpha", "resources": []}, "/streams/0/resources", "empty"),
        ({"name": "beta", "time_range": {}}, "/streams/0/time_range", "no_time_field"),
        ({"name": "alpha", "time_range": {"since": "April"}}, "/streams/0/time_range", "time"),
        ({"name": "alpha", "time_range": {"until": ""}}, "/streams/0/time_range", "time"),
    ],
)
def test_what_cannot_be_collected_is_refused_with_its_place(entry, place, rule):
    """A request that no run could honour is refused before a process exists."""
    assert faults(entry) == {(place, rule)}


def test_every_fault_is_told_at_once():
    """One look at the refusal is enough to mend the request."""
    found = faults(
        {"name": "alpha", "fields": ["ghost"], "resources": [], "time_range": {"since": "April"}},
        {"name": "alpha"},
        {"name": "ghost"},
        {"name": "beta", "time_range": {"until": "May"}},
    )
    assert {rule for _, rule in found} == {
        "unknown_field", "empty", "time", "unique", "unknown_stream", "no_time_field",
    }  # fmt: skip


@pytest.mark.parametrize("second", ["alpha", "*"])
def test_a_stream_is_asked_for_once(second):
    """Two entries for one stream leave two scopes to choose from, also where one is the wildcard."""
    assert faults({"name": "alpha", "fields": ["id"]}, {"name": second}) == {("/streams/1/name", "unique")}


# Mode.


@pytest.mark.clause("CP-013", "CP-147")
@pytest.mark.parametrize(
    ("able", "asked", "mode"),
    [
        ([False, False], None, "full_refresh"),
        ([False, False], "incremental", "full_refresh"),
        ([False, True], None, "incremental"),
        ([False, None], None, "incremental"),
        ([None, None], None, "incremental"),
        ([True, True], "full_refresh", "full_refresh"),
    ],
)
def test_the_mode_comes_from_the_streams_and_the_owner(able, asked, mode):
    """Streams that cannot resume are fetched whole; else the owner's word counts, and no authority is looked at."""
    flags = [{} if flag is None else {"incremental": flag} for flag in able]
    declaration = declare(*({"name": name, **flag} for name, flag in zip(("alpha", "beta"), flags, strict=True)))
    planned_scope = plan_scope(declaration)
    for authority in (Authority(), Authority("G1"), Authority("G1", single_use=True)):
        chosen = plan_mode(declaration, planned_scope, asked)
        plan = RunPlan("r", declaration, planned_scope, chosen, authority)
        assert Session(plan).start().collection_mode == mode


@pytest.mark.clause("CP-013", "CP-147")
def test_the_mode_reads_only_the_streams_in_scope():
    """A run over nothing but unresumable streams is a full refresh whatever else the manifest has."""
    declaration = declare({"name": "alpha", "incremental": False}, {"name": "beta", "incremental": True})
    modes = [plan_mode(declaration, plan_scope(declaration, names=[name]), None) for name in ("alpha", "beta")]
    assert modes == ["full_refresh", "incremental"]


@pytest.mark.clause("CP-013")
@pytest.mark.parametrize("flag", ["yes", 1, None, []])
def test_incremental_is_a_boolean(flag):
    """Any other value is a fault of the manifest, at its place."""
    document = {"connector_id": "c", "streams": [{"name": "alpha", "incremental": flag}]}
    declaration, found = examine(json.dumps(document).encode())
    assert declaration is None
    assert [fault.pointer for fault in found] == ["/streams/0/incremental"]


# State and namespaces.


@pytest.mark.clause("CP-403")
def test_a_single_use_reads_no_namespace():
    """Its plan has none to read from, with or without a grant, and its START says null."""
    single = Authority("G1", single_use=True)
    assert (single.namespace, Authority(single_use=True).namespace) == (None, None)
    assert Session(RunPlan("r", declare(), plan_scope(declare()), authority=single)).start().state is None


def test_a_grant_has_a_namespace_of_its_own():
    """No grant id can be spelled so that it names the global one."""
    names = {Authority(grant).namespace for grant in (None, "", "global", "G1", "G2")}
    assert len(names) == 5


# Bindings.

OFFERED = {"network": {}, "interactive": {}}


@pytest.mark.clause("CP-050", "CP-057")
def test_a_missing_binding_is_named_before_anything_starts():
    """Every required binding that the host lacks is named in the refusal and in its data."""
    declaration = declare(
        browser_automation={"required": True}, network={"required": True}, interactive={"required": True}
    )
    with pytest.raises(OperationalError, match="browser_automation, interactive") as refusal:
        match_bindings(declaration, {"network": {}})
    assert (refusal.value.code, refusal.value.data) == (
        "binding_unavailable", {"bindings": ["browser_automation", "interactive"]},
    )  # fmt: skip


@pytest.mark.clause("CP-052")
def test_an_optional_binding_never_blocks():
    """It is announced where the host has it and absent where not."""
    declaration = declare(interactive={"required": False}, browser_profile={"required": False})
    assert match_bindings(declaration, OFFERED) == {"interactive": {}}
    assert match_bindings(declaration, {}) == {}


@pytest.mark.clause("CP-053")
def test_start_announces_what_the_manifest_asks_for():
    """Each required binding has its descriptor, what nobody asked for is not announced, and none is an object."""
    declaration = declare(network={"required": True}, interactive={"required": True})
    offered = {**OFFERED, "filesystem": {}, "example.com/x": {"a": 1}}
    bindings = match_bindings(declaration, offered)
    start = Session(RunPlan("r", declaration, plan_scope(declaration), bindings=bindings)).start()
    assert start.bindings == {"network": {}, "interactive": {}}
    assert match_bindings(declare(), offered) == {}
    assert Session(RunPlan("r", declare(), plan_scope(declare()))).start().bindings == {}


def test_an_announced_descriptor_is_a_copy():
    """What one run does to its bindings does not reach the next."""
    descriptor = {"interface": "cdp"}
    match_bindings(declare(browser_automation={"required": True}), {"browser_automation": descriptor})[
        "browser_automation"
    ]["interface"] = "x"
    assert descriptor == {"interface": "cdp"}
