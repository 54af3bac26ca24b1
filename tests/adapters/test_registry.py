"""The registry: whole or not at all for what ships, the rest without those that are not in order."""

import json
import shutil
from datetime import date
from pathlib import Path

import pytest
from adapters.conftest import ACME

from headwater.adapters.confirmation import confirmations
from headwater.adapters.registry import Integrations, Operator
from headwater.catalog.folders import ConnectorFolder, bundled
from headwater.errors import HeadwaterError

NOBODY = Operator({}, {})
CONFIRMED = {
    "workflows": [
        {
            "workflow": "official",
            "basis": "Terms, section 4",
            "source": "https://acme.example/terms",
            "date": "2026-11-01",
        }
    ]
}


@pytest.fixture
def place(tmp_path):
    """Write copies of the guest, with members changed and code replaced."""

    def write(name, code=None, confirmed=CONFIRMED, origin="added", **members):
        folder = tmp_path / name
        shutil.copytree(ACME, folder, ignore=shutil.ignore_patterns("__pycache__"))
        manifest = json.loads((folder / "integration.json").read_text())
        (folder / "integration.json").write_text(json.dumps({**manifest, "key": name, **members}))
        if code is not None:
            (folder / "integration.py").write_text(f"from headwater.sdk.integration import *\n{code}")
        if confirmed is not None:
            (folder / "permission.json").write_text(json.dumps(confirmed))
        return ConnectorFolder(name, folder, origin)

    return write


def faults_of(integrations, connector):
    (out,) = [one for one in integrations.left_out if one.connector == connector]
    return [(fault.pointer, fault.rule, fault.message) for fault in out.faults]


@pytest.mark.clause("INT-101", "INT-107")
def test_a_bundled_one_with_a_fault_stops_everything(place):
    """All the faults of all of them in one refusal, each with its connector and its place."""
    bad = [place(name, origin="bundled", version="1", actions={"export": True}) for name in ("one", "two")]
    good = [place(name, origin="bundled") for name in ("three", "four", "five")]
    with pytest.raises(HeadwaterError) as refusal:
        _ = Integrations([*good, *bad], NOBODY).all
    assert refusal.value.code == "invalid_manifest"
    assert refusal.value.exit_status == 2
    assert {fault["pointer"] for fault in refusal.value.data["faults"]} == {
        f"/{name}{pointer}" for name in ("one", "two") for pointer in ("/version", "/actions/export")
    }


def test_an_added_one_with_a_fault_is_told_of_and_left_out(place):
    integrations = Integrations([place("good"), place("bad", version="1")], NOBODY)
    assert [*integrations.all] == ["good"]
    assert [pointer for pointer, _, _ in faults_of(integrations, "bad")] == ["/version"]
    with pytest.raises(HeadwaterError) as refusal:
        integrations.find("bad")
    assert refusal.value.code == "invalid_manifest"
    with pytest.raises(HeadwaterError) as refusal:
        integrations.find("none")
    assert refusal.value.code == "not_found"


@pytest.mark.clause("INT-103")
def test_a_key_stands_once_among_all(place):
    integrations = Integrations([place("one"), place("two", key="one")], NOBODY)
    assert [*integrations.all] == ["one"]
    assert faults_of(integrations, "two") == [("/key", "repeated", "is the key of one too")]


@pytest.mark.clause("INT-104")
@pytest.mark.parametrize("names", [["tickets.acme.example", "Tickets.Acme.Example"], ["tickets.acme.example."]])
def test_a_provider_has_one_record(place, names):
    integrations = Integrations([place("one")], Operator({}, {name: {} for name in names}))
    assert [rule for _, rule, _ in faults_of(integrations, "one")] == ["records"]


@pytest.mark.clause("INT-106")
def test_one_that_is_not_enabled_is_listed_and_cannot_be_used(place):
    folders = [place("one")]
    closed = Integrations(folders, NOBODY)
    assert not closed.all["one"].is_enabled
    with pytest.raises(HeadwaterError) as refusal:
        closed.usable("one")
    assert refusal.value.code == "forbidden"
    assert refusal.value.command == "headwater connectors enable one"
    assert Integrations(folders, Operator({"one": True}, {})).usable("one").integration.key == "one"


HOOKS = """
class Acme(Integration):
    def start_auth(self, ctx, method, fields): return 1
    def complete_auth(self, ctx, method, state, answer): return 1
    async def refresh_credential(self, ctx, envelope): return 1
    def get_account(self, ctx): return 1
    def list_groups(self, ctx, cursor): return 1
    def list_events(self, ctx, cursor): return 1
    def list_ticket_inventory(self, ctx, cursor): return 1
"""
EMPTY = '    def configure(self, ctx, values):\n        """Change settings."""\n        raise NotImplementedError\n'
SEEDED = [
    ("INT-134", HOOKS.replace("list_events", "list_other"), {}, "needs list_events"),
    ("INT-134", HOOKS + "    def quote(self, ctx, order): return 1\n", {}, "quote is implemented"),
    ("INT-134", HOOKS.replace("list_events(self, ctx, cursor)", "list_events(self, ctx)"), {}, "list_events must take"),
    ("INT-134", HOOKS.replace("(self, ctx, cursor)", "(self, ctx, cursor, *more)"), {}, "list_groups must take"),
    ("INT-152", HOOKS, {"actions": {"configure": True}}, "needs configure"),
    (
        "INT-152",
        HOOKS + EMPTY,
        {"actions": {"configure": True}},
        "needs configure",
    ),
    ("INT-155", HOOKS + "    def configure(self, ctx, values): return 1\n", {}, "configure is implemented"),
    ("INT-134", "class Acme(", {}, "not valid Python"),
]


@pytest.mark.clause("INT-134", "INT-152")
@pytest.mark.parametrize(("clause", "code", "members", "told"), SEEDED)
def test_hooks_are_those_of_the_capabilities(place, clause, code, members, told):
    """Told by the text alone: one that is missing, one too many, one of another shape, one that does nothing."""
    integrations = Integrations([place("one", code, **members)], NOBODY)
    assert any(told in message for _, _, message in faults_of(integrations, "one"))


@pytest.mark.clause("INT-134", "INT-361")
def test_hooks_that_fit_are_in_order(place):
    """The optional one too."""
    folders = [place("one", HOOKS), place("two", HOOKS + "    def disconnect(self, ctx): return 1\n")]
    assert len(Integrations(folders, NOBODY).all) == 2


BUYING = f"""{HOOKS}
    def quote(self, ctx, order): return 1
    def fulfill(self, ctx, order, idempotency_key): return 1
"""
FOUND = "    def get_fulfillment(self, ctx, reference): return 1\n"


@pytest.mark.clause("INT-381")
@pytest.mark.parametrize("safety", ["idempotent", "lookup", "manual_reconciliation", "hope"])
def test_whoever_buys_says_how_a_lost_answer_is_met_and_can_look_an_order_up(place, safety):
    capabilities = ["account", "groups", "events", "ticket_inventory", "credential_refresh", "ticket_fulfillment"]
    members = {"capabilities": capabilities, "fulfillment": {"retrySafety": safety}, "actions": {}}
    whole = Integrations([place("one", BUYING + FOUND, **members)], NOBODY)
    if safety == "hope":
        assert ("/fulfillment/retrySafety", "enum") in [found[:2] for found in faults_of(whole, "one")]
        return
    assert "one" in whole.all, faults_of(whole, "one")
    lacking = Integrations([place("two", BUYING, **members)], NOBODY)
    assert any("needs get_fulfillment" in message for _, _, message in faults_of(lacking, "two"))


@pytest.mark.clause("INT-108")
def test_no_code_runs_to_check_it(place):
    """An integration that would end the process is read like any other."""
    assert "one" in Integrations([place("one", f"import os\nos._exit(9)\n{HOOKS}")], NOBODY).all


@pytest.mark.clause("INT-176")
def test_the_settings_of_a_provider_are_the_operators(place):
    """A manifest that brings its own is refused."""
    told = Operator({}, {"tickets.acme.example": {"client_id": "x"}})
    integrations = Integrations([place("one")], told)
    assert integrations.settings(integrations.all["one"]) == {"client_id": "x"}
    provider = {"name": "tickets.acme.example", "client_secret": "y"}
    assert faults_of(Integrations([place("two", provider=provider)], told), "two")[0][1] == "unknown_member"


@pytest.mark.clause("INT-520", "INT-521")
def test_what_a_provider_permits_is_confirmed_and_grows_old(place):
    """With a basis, a source and a day; after a year the operator is told; a bundled one does not ship without."""
    registered = Integrations([place("one")], NOBODY).all["one"]
    assert registered.warnings(date(2027, 10, 31)) == ()
    assert "more than a year ago" in registered.warnings(date(2027, 11, 2))[0]
    unconfirmed = Integrations([place("two", confirmed=None)], NOBODY).all["two"]
    assert "Nobody has confirmed" in unconfirmed.warnings(date(2026, 11, 2))[0]
    with pytest.raises(HeadwaterError):
        _ = Integrations([place("three", confirmed=None, origin="bundled")], NOBODY).all


@pytest.mark.parametrize("row", [{}, {"date": "yesterday"}, {"workflow": "secret"}, {"more": 1}])
def test_a_confirmation_is_whole(tmp_path, row):
    good = {**CONFIRMED["workflows"][0], **row} if row else {}
    (tmp_path / "permission.json").write_text(json.dumps({"workflows": [good]}))
    confirmed, faults = confirmations(tmp_path)
    assert not confirmed
    assert faults


@pytest.mark.clause("INT-101", "INT-520")
def test_what_ships_is_in_order():
    """Every integration that Headwater brings along, with the permission of its provider."""
    with_manifest = {folder.name for folder in bundled() if (Path(folder.path) / "integration.json").is_file()}
    assert {*Integrations(bundled(), NOBODY).all} == with_manifest
