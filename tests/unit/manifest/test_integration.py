"""An integration's manifest: the spec's own example, each rule broken in turn, and every fault at once."""

import json
import re
import socket
from copy import deepcopy
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import HeadwaterError
from headwater.manifest.capabilities import RECORDS, TICKETS, Capability, standard, vocabulary
from headwater.manifest.integration import examine_integration, read_integration
from headwater.manifest.patterns import matches, pattern_fault

TICKET = {
    "key": "acme-tickets",
    "version": "1.0.0",
    "provider": {"name": "tickets.acme.example"},
    "displayName": "Acme Tickets",
    "description": "Import events and fulfill ticket purchases.",
    "capabilities": [
        *("account", "groups", "events", "ticket_inventory"),
        *("ticket_fulfillment", "manual_sync", "scheduled_sync"),
    ],
    "fulfillment": {"retrySafety": "manual_reconciliation"},
    "auth": {
        "methods": [
            {
                "key": "token",
                "label": "Access token",
                "flow": "token",
                "fields": [{"name": "token", "label": "Access token", "type": "token", "required": True}],
            }
        ]
    },
    "catalog": {"authType": "token", "enabledByDefault": False},
    "actions": {"refresh": True, "configure": False, "disconnect": True},
}
METHOD = ("auth", "methods", 0)
FIELD = (*METHOD, "fields", 0)
GONE = object()


def changed(*edits):
    """Return the example with members set, or taken out."""
    manifest = deepcopy(TICKET)
    for path, value in edits:
        holder = manifest
        for step in path[:-1]:
            holder = holder[step]
        if value is GONE:
            del holder[path[-1]]
        else:
            holder[path[-1]] = value
    return manifest


def faults(manifest):
    integration, found = examine_integration(json.dumps(manifest).encode())
    assert (integration is None) is bool(found)
    return [(fault.pointer, fault.rule) for fault in found]


@pytest.mark.clause("INT-102")
def test_the_example_of_the_contract_is_read():
    integration = read_integration(json.dumps(TICKET).encode())
    assert integration.key == "acme-tickets"
    assert integration.provider == "tickets.acme.example"
    assert integration.capabilities == set(TICKET["capabilities"])
    assert integration.retry_safety == "manual_reconciliation"
    assert integration.actions == {"refresh", "disconnect"}
    assert not integration.enabled_by_default
    (method,) = integration.methods.values()
    assert (method.flow, method.fields[0].type, method.fields[0].is_secret) == ("token", "token", True)


@pytest.mark.clause("INT-102")
@pytest.mark.parametrize("member", [name for name in TICKET if name != "fulfillment"])
def test_each_member_is_missed(member):
    assert (f"/{member}", "required") in faults(changed(((member,), GONE)))


BROKEN = [
    ("INT-103", [(("key",), "Acme_Tickets")], ("/key", "shape")),
    ("INT-103", [(("key",), "acme--tickets")], ("/key", "shape")),
    ("INT-103", [(("version",), "1.0")], ("/version", "shape")),
    ("INT-103", [(("version",), "01.0.0")], ("/version", "shape")),
    ("INT-103", [(("colour",), "red")], ("/colour", "unknown_member")),
    ("INT-103", [(("displayName",), "Acme \x1b[31mTickets")], ("/displayName", "text")),
    ("INT-103", [(("displayName",), "Acme\u202eTickets")], ("/displayName", "text")),
    ("INT-103", [(("description",), "x" * 2001)], ("/description", "text")),
    ("INT-104", [(("provider", "name"), "not a host")], ("/provider/name", "shape")),
    ("INT-104", [(("provider", "name"), "localhost")], ("/provider/name", "shape")),
    ("INT-105", [(("catalog", "authType"), "oauth")], ("/catalog/authType", "unused_flow")),
    ("INT-105", [(("catalog", "enabledByDefault"), "false")], ("/catalog/enabledByDefault", "type")),
    ("INT-130", [(("capabilities", 0), "telepathy")], ("/capabilities/0", "unknown_capability")),
    ("INT-130", [(("capabilities", 1), "account")], ("/capabilities/1", "repeated")),
    ("INT-151", [(("capabilities",), ["account"]), (("fulfillment",), GONE)], ("/actions/refresh", "dependency")),
    ("INT-157", [(("actions", "export"), True)], ("/actions/export", "unknown_member")),
    ("INT-157", [(("actions", "refresh"), "yes")], ("/actions/refresh", "type")),
    ("INT-170", [((*METHOD, "key"), "accessToken")], ("/auth/methods/0/key", "shape")),
    ("INT-170", [((*METHOD, "flow"), "magic")], ("/auth/methods/0/flow", "enum")),
    ("INT-171", [((*FIELD, "type"), "number")], ("/auth/methods/0/fields/0/type", "enum")),
    ("INT-173", [((*FIELD, "pattern"), "(a+)+")], ("/auth/methods/0/fields/0/pattern", "pattern")),
    ("INT-173", [((*FIELD, "pattern"), "(")], ("/auth/methods/0/fields/0/pattern", "pattern")),
    ("INT-173", [((*FIELD, "pattern"), "a)(b")], ("/auth/methods/0/fields/0/pattern", "pattern")),
    ("INT-332", [(("sync",), {"resourceConcurrency": 0})], ("/sync/resourceConcurrency", "type")),
    ("INT-332", [(("sync",), {"resourceConcurrency": -1})], ("/sync/resourceConcurrency", "type")),
    ("INT-332", [(("sync",), {"resourceConcurrency": 2.5})], ("/sync/resourceConcurrency", "type")),
    ("INT-332", [(("sync",), {"resourceConcurrency": "4"})], ("/sync/resourceConcurrency", "type")),
    ("INT-332", [(("sync",), {"resourceConcurrency": True})], ("/sync/resourceConcurrency", "type")),
    ("INT-380", [(("fulfillment",), GONE)], ("/fulfillment", "required")),
    ("INT-380", [(("fulfillment", "retrySafety"), "hope")], ("/fulfillment/retrySafety", "enum")),
]


@pytest.mark.clause("INT-103", "INT-104", "INT-105", "INT-130", "INT-151", "INT-157")
@pytest.mark.clause("INT-170", "INT-171", "INT-173", "INT-332", "INT-380")
@pytest.mark.parametrize(("clause", "edits", "fault"), BROKEN)
def test_each_rule_refuses_and_tells_the_place(clause, edits, fault):
    assert fault in faults(changed(*edits))


@pytest.mark.clause("INT-170")
def test_a_method_stands_once():
    method = TICKET["auth"]["methods"][0]
    assert ("/auth/methods/1/key", "repeated") in faults(changed((("auth", "methods"), [method, method])))


@pytest.mark.clause("INT-107")
def test_every_fault_is_told_at_once():
    """With its place and its rule, whatever stood before it."""
    edits = [(("key",), "A"), (("version",), "1"), (("actions", "export"), True), ((*FIELD, "type"), "number")]
    found = faults(changed(*edits))
    assert {"/key", "/version", "/actions/export", "/auth/methods/0/fields/0/type"} <= {pointer for pointer, _ in found}
    with pytest.raises(HeadwaterError) as refusal:
        read_integration(json.dumps(changed(*edits)).encode())
    assert refusal.value.code == "invalid_manifest"
    assert len(refusal.value.data["faults"]) == len(found)


@pytest.mark.clause("INT-331")
@pytest.mark.parametrize(("given", "held", "warned"), [(1, 1, False), (10, 10, False), (11, 10, True), (50, 10, True)])
def test_the_concurrency_is_held_to_ten(given, held, warned):
    integration = read_integration(json.dumps(changed((("sync",), {"resourceConcurrency": given}))).encode())
    assert integration.resource_concurrency == held
    assert bool(integration.warnings) is warned
    assert read_integration(json.dumps(TICKET).encode()).resource_concurrency == 4


# INT-132, as it stands there: of each group at least one.
NEEDS = {
    "groups": [{"account"}],
    "events": [{"account"}],
    "ticket_inventory": [{"events"}],
    "ticket_fulfillment": [{"ticket_inventory"}],
    "manual_sync": [{"account"}, {"groups", "events", "ticket_inventory", "records"}],
    "scheduled_sync": [{"manual_sync"}],
    "webhooks": [{"manual_sync"}],
    "records": [{"account"}],
}


@pytest.mark.clause("INT-131", "INT-132")
def test_every_set_of_capabilities_is_judged_by_the_table():
    """All the subsets of the vocabulary: refused exactly where the table says so, naming both capabilities."""
    names = sorted(standard())
    for size in range(1, len(names) + 1):
        for chosen in combinations(names, size):
            extra = {"refresh": "manual_sync" in chosen, "disconnect": True}
            manifest = changed((("capabilities",), list(chosen)), (("actions",), extra))
            manifest["auth"]["methods"].append({**TICKET["auth"]["methods"][0], "key": "login", "flow": "password"})
            manifest.pop("fulfillment")
            if "ticket_fulfillment" in chosen:
                manifest["fulfillment"] = {"retrySafety": "lookup"}
            if "webhooks" in chosen:
                manifest["webhooks"] = {"signature": "hmac_sha256"}
            missing = {name for name in chosen for group in NEEDS.get(name, []) if not group & set(chosen)}
            _, found = examine_integration(json.dumps(manifest).encode())
            assert {fault.message.split()[0] for fault in found} == missing, chosen


@pytest.mark.clause("INT-132")
def test_capabilities_rest_on_methods_too():
    """An account on any method, a refresh on a flow that can return a refresh token, webhooks on a signature."""
    without = changed((("auth",), {"methods": []}))
    assert ("/capabilities", "dependency") in faults(without)
    renewing = changed((("capabilities",), ["account", "credential_refresh"]), (("fulfillment",), GONE))
    renewing["actions"] = {}
    assert faults(renewing) == [("/capabilities", "dependency")]
    renewing["auth"]["methods"][0]["flow"] = "password"
    renewing["catalog"]["authType"] = "password"
    assert faults(renewing) == []
    hooked = changed((("capabilities",), [*TICKET["capabilities"], "webhooks"]))
    assert faults(hooked) == [("/webhooks", "required")]


@pytest.mark.clause("INT-133")
def test_a_family_is_checked_before_any_manifest():
    """A name twice, a need of nothing, a circle: nothing is read by such a vocabulary."""
    assert "messages" in vocabulary(TICKETS, RECORDS, (Capability("messages", (("account",),), lists=True),))
    for family in (
        (Capability("events"),),
        (Capability("messages", (("mailboxes",),)),),
        (Capability("a", (("b",),)), Capability("b", (("a",),))),
        (Capability("loop", (("manual_sync",),), lists=True),),
    ):
        with pytest.raises(ValueError, match="capabilit"):
            vocabulary(TICKETS, family)


@pytest.mark.clause("INT-108")
def test_reading_opens_no_socket(monkeypatch):
    monkeypatch.setattr(socket, "socket", lambda *_: pytest.fail("a socket was opened"))
    read_integration(json.dumps(TICKET).encode())


DECLARED = {
    "key": "sign_in",
    "label": "Sign in",
    "flow": "oauth",
    "scheme": "oauth2_grant",
    "identity": {"source": "api", "kind": "acme.user", "path": "me", "subject": "/id"},
    "oauth": {
        "tokenUrl": "https://acme.example/token",
        "authorizeUrl": "/authorize",
        "clientId": "headwater",
        "requestedScopes": ["read", "write"],
        "minimumScopes": ["read"],
    },
}
MISDECLARED = [
    ({"flow": "token"}, "/scheme"),
    ({"oauth": {**DECLARED["oauth"], "tokenUrl": "http://acme.example/token"}}, "/oauth/tokenUrl"),
    ({"oauth": {**DECLARED["oauth"], "tokenUrl": "https://u:p@acme.example/"}}, "/oauth/tokenUrl"),
    ({"oauth": {**DECLARED["oauth"], "tokenUrl": "//acme.example/token"}}, "/oauth/tokenUrl"),
    ({"oauth": {**DECLARED["oauth"], "minimumScopes": ["admin"]}}, "/oauth/minimumScopes"),
    ({"oauth": {"tokenUrl": "https://acme.example/token"}}, "/oauth"),
    ({"oauth": {**DECLARED["oauth"], "clientAuthentication": "post"}}, "/oauth/clientAuthentication"),
    (
        {"oauth": {**DECLARED["oauth"], "confidential": True, "clientAuthentication": "jwt"}},
        "/oauth/clientAuthentication",
    ),
    (
        {"identity": {"source": "api", "kind": "k", "path": "https://x.example/me", "subject": "/id"}},
        "/identity/path",
    ),
    ({"identity": {"source": "api", "kind": "k", "path": "a/../b", "subject": "/id"}}, "/identity/path"),
    ({"identity": {"source": "api", "kind": "k", "path": "me", "subject": "id"}}, "/identity/subject"),
    ({"identity": {"source": "api", "kind": "k", "path": "me"}}, "/identity/subject"),
    ({"header": "X Y"}, "/header"),
    ({"prefix": "two words"}, "/prefix"),
    ({"evidenceLifetimeMs": 300_001}, "/evidenceLifetimeMs"),
    ({"fields": [{"name": "a", "label": "A", "type": "text"}]}, "/fields"),
]


@pytest.mark.parametrize(("members", "place"), MISDECLARED)
def test_a_method_that_the_host_does_itself_is_whole(members, place):
    methods = [TICKET["auth"]["methods"][0], {**DECLARED, **members}]
    assert f"/auth/methods/1{place}" in {
        pointer for pointer, _ in faults(changed((("auth", "methods"), methods), (("catalog", "authType"), "token")))
    }


def test_a_declared_method_is_read():
    methods = [TICKET["auth"]["methods"][0], DECLARED]
    integration = read_integration(json.dumps(changed((("auth", "methods"), methods))).encode())
    method = integration.methods["sign_in"]
    assert method.oauth.requested_scopes == ("read", "write")
    assert method.identity.subject == "/id"
    assert integration.needs_hooks


@pytest.mark.parametrize(("members", "how"), [({}, "basic"), ({"clientAuthentication": "post"}, "post")])
def test_how_a_client_sends_its_secret_is_declared(members, how):
    declared = {**DECLARED, "oauth": {**DECLARED["oauth"], "confidential": True, **members}}
    methods = [TICKET["auth"]["methods"][0], declared]
    method = read_integration(json.dumps(changed((("auth", "methods"), methods))).encode()).methods["sign_in"]
    assert method.oauth.client_authentication == how
    # A connection of before there was a choice is still of the same authentication.
    assert method.authentication["oauth"].get("client_authentication", "basic") == how
    assert ("client_authentication" in method.authentication["oauth"]) is (how == "post")


@pytest.mark.clause("INT-173")
@given(st.from_regex(r"[a-z0-9@.\-]{0,30}", fullmatch=True))
def test_a_pattern_fits_the_whole_value(value):
    """As the language's own engine says, for patterns that both know."""
    for pattern in ("[0-9]{6}", "[^@ ]+@[^@ ]+", "a|b", r"[a-z]+(-[a-z]+){0,3}"):
        assert pattern_fault(pattern) is None
        assert matches(pattern, value) is (re.fullmatch(pattern, value) is not None)


LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
NAMES = st.sampled_from([*TICKET, "methods", "fields", "name", "type"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=20,
)


@given(VALUES)
def test_any_json_is_read_or_refused(root):
    """Never a traceback, whatever stands there."""
    _, found = examine_integration(json.dumps(root).encode())
    assert found


@given(st.sampled_from([*TICKET]), VALUES)
def test_any_member_may_be_of_any_type(member, value):
    examine_integration(json.dumps({**TICKET, member: value}).encode())


def test_the_guest_is_in_order():
    acme = Path(__file__).parents[2] / "guests" / "acme_tickets"
    assert read_integration((acme / "integration.json").read_bytes()).key == "acme-tickets"
