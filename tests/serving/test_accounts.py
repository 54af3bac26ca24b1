"""What programs do over HTTP is what a person types: the same calls, the same objects."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from serving.conftest import PASSWORD

from headwater.host import Host
from headwater.server.app import ways
from headwater.settings import Settings
from headwater.syncing import Syncs

# What the contract names, and what this server has beside it.
CONTRACT = {
    "GET /v1/integrations",
    "GET /v1/integrations/{key}",
    "POST /v1/integrations/{key}/auth/{method}/start",
    "POST /v1/integrations/{key}/auth/{method}/complete",
    "GET /v1/connections",
    "GET /v1/connections/{id}",
    "GET /v1/connections/{id}/resources",
    "POST /v1/connections/{id}/refresh",
    "POST /v1/connections/{id}/configure",
    "POST /v1/connections/{id}/disconnect",
    "POST /v1/connections/{id}/reconnect/{method}/start",
    "GET /v1/syncs/{id}",
    "POST /v1/quotes",
    "POST /v1/fulfillments",
    "GET /v1/fulfillments/{id}",
    "POST /v1/fulfillments/{id}/reconcile",
    "POST /v1/webhooks/{endpoint}",
}
OURS = {
    "GET /v1/connections/{id}/webhook",
    "POST /v1/connections/{id}/webhook",
    "GET /v1/instances",
    "GET /v1/syncs",
    "POST /v1/connections/{id}/reconnect/{method}/complete",
    "GET /v1/state/{connector_id}",
    "PUT /v1/state/{connector_id}",
}


def timeless(told):
    """Return an object without what another moment changes."""
    if isinstance(told, dict):
        return {name: timeless(value) for name, value in told.items() if name != "observed_at_ms"}
    return [timeless(value) for value in told] if isinstance(told, list) else told


@pytest.mark.clause("INT-421")
def test_the_routes_are_those_of_the_contract_and_of_the_reference(tmp_path):
    """The page lists each, and no other."""
    host = Host(Settings(tmp_path / "config.toml", tmp_path))
    routes = {f"{way.method} {way.path.replace(':path', '')}" for way in ways(host, Syncs(host))}
    page = (Path(__file__).parents[2] / "docs" / "reference" / "server.md").read_text(encoding="utf-8")
    listed = {f"{method} {path}" for method, path in re.findall(r"^\| (GET|POST|PUT) \| `([^`]+)`", page, re.MULTILINE)}
    assert routes == CONTRACT | OURS
    assert listed == routes


@pytest.mark.clause("INT-421", "INT-422")
def test_an_account_is_connected_looked_at_and_disconnected(program, acme):
    """Each answer is what the command line prints for the same state."""
    person = program.person
    assert program.get("integrations").ok() == person.type("connectors", "integrations")
    (row,) = [one for one in program.get("integrations").ok()["integrations"] if one["key"] == "acme-tickets"]
    assert program.get("integrations/acme-tickets").ok() == row
    assert program.get("instances").ok() == person.type("instances", "list")
    connection = program.connected()
    page = program.get("connections?instance=acme_tickets/me").ok()
    assert timeless(page) == timeless(person.type("connections", "list", "acme_tickets/me"))
    shown = program.get(f"connections/{connection}").ok()
    assert timeless(shown) == timeless(person.type("connections", "describe", "acme_tickets/me"))
    run = program.ended(program.post(f"connections/{connection}/refresh").ok(202)["sync_id"])
    assert run == person.type("runs", "show", run["run_id"])
    assert program.get("syncs").ok() == person.type("runs", "list")
    assert program.get(f"connections/{connection}/resources").ok() == person.type("streams", "list", "acme_tickets/me")
    gone = program.post(f"connections/{connection}/disconnect").ok()
    assert gone == person.disconnect()
    assert program.post(f"connections/{connection}/disconnect").ok() == gone
    assert acme.asked.count("POST /sign-out") == 1


@pytest.mark.clause("INT-421")
def test_a_sign_in_goes_on_by_its_state_and_ends_connected(program):
    """A code that was sent is answered in a request of its own, for the way to sign in that it was sent for."""
    pending = program.sign_in("code", email="ada@example.com").ok(202)
    assert pending["challenge"]["target"] == "a***@example.com"
    assert [field["name"] for field in pending["challenge"]["fields"]] == ["code"]
    assert "upstream" not in pending["challenge"]
    asked = {"instance": "me", "auth_state": pending["auth_state"], "answer": {"code": "123456"}}
    other = program.post("integrations/acme-tickets/auth/password/complete", asked)
    assert (other.status, other.error["integration_code"]) == (400, "auth_state_invalid")
    path = "integrations/acme-tickets/auth/code/complete"
    again = program.post(path, {**asked, "auth_state": pending["auth_state"][:-2] + "AA"})
    assert (again.status, again.error["integration_code"]) == (400, "auth_state_invalid")
    told = program.post(path, asked).ok()
    assert program.get(f"connections/{told['connection']}").ok()["connection"]["profile"] == "code"
    assert program.post(path, asked).refused == (409, "lifecycle_conflict")


@pytest.mark.clause("INT-285")
def test_a_refused_sign_in_is_told_as_the_command_line_tells_it(program):
    """Whose word it was, whether it may be repeated, and what comes next."""
    shown = program.sign_in(user="ada", password="wrong horse").error
    typed = program.person.connect(status=1, user="ada", password="wrong horse")
    shared = ("code", "message", "retryable", "next_action", "integration_code", "service_code")
    assert {name: shown[name] for name in shared} == {name: typed[name] for name in shared}
    assert (shown["integration_code"], shown["retryable"]) == ("credential_invalid", False)


@pytest.mark.clause("INT-421", "INT-422")
def test_a_credential_is_replaced_where_its_revision_was_seen(program):
    """By the way to sign in that the connection was made by, and for the same account."""
    connection = program.connected()
    path = f"connections/{connection}/reconnect"
    stale = program.post(f"{path}/password/start", {"expected_revision": "7", "fields": PASSWORD})
    assert (stale.refused, stale.error["field"]) == ((409, "lifecycle_conflict"), "expected_revision")
    other = program.post(f"{path}/token/start", {"expected_revision": "1", "fields": {"token": "token-of-ada"}})
    assert other.refused == (409, "unsupported")
    told = program.post(f"{path}/password/start", {"expected_revision": "1", "fields": PASSWORD}).ok()
    assert told["connection"] == connection


OTHERWISE = [
    ("connections/{}/refresh", {"connection": "connection_other"}),
    ("connections/{}/refresh", {"instance": "acme_tickets/other"}),
    ("connections/{}/disconnect", {"connection": "connection_other"}),
    ("connections/{}/configure", {"options": {}, "connection": "connection_other"}),
    ("connections/{}/reconnect/password/start", {"expected_revision": "1", "fields": PASSWORD, "instance": "other"}),
    ("connections/{}/reconnect/password/start", {"expected_revision": "1", "fields": PASSWORD, "method": "token"}),
    ("integrations/acme-tickets/auth/password/start", {"instance": "me", "fields": PASSWORD, "method": "token"}),
    ("integrations/acme-tickets/auth/password/start", {"instance": "me", "fields": PASSWORD, "key": "other"}),
]


@pytest.mark.clause("CLI-342")
def test_a_body_that_says_something_else_than_its_path_is_refused(program, acme):
    """What the path selects is no member of a body: it is said once."""
    connection = program.connected()
    before = list(acme.asked)
    for path, body in OTHERWISE:
        assert program.post(path.format(connection), body).refused == (400, "invalid_request"), (path, body)
    assert acme.asked == before
    assert program.get(f"connections/{connection}").ok()["connection"]["revision"] == 1


@pytest.mark.clause("INT-423")
def test_a_refresh_is_a_run_that_goes_on_by_itself(program, acme):
    """It answers at once; the run can be looked at meanwhile and afterwards, and renews no credential."""
    person = program.person
    connection = program.connected()
    source = person.folder / "me" / "connector.py"
    source.write_text(source.read_text().replace("    stream.save", "    import time; time.sleep(60)\n    stream.save"))
    begun = program.post(f"connections/{connection}/refresh")
    run_id = begun.ok(202)["sync_id"]
    assert begun.headers["Location"] == f"/v1/syncs/{run_id}"
    assert program.get(f"syncs/{run_id}").ok()["status"] == "running"
    again = program.post(f"connections/{connection}/refresh")
    assert (again.refused, again.error["run_id"], again.error["retryable"]) == ((409, "run_active"), run_id, True)
    assert person.type("runs", "cancel", run_id)["status"] == "cancelling"
    assert program.ended(run_id)["status"] == "cancelled"
    assert "POST /refresh" not in acme.asked
    assert program.get(f"connections/{connection}").ok()["connection"]["revision"] == 1


@pytest.mark.clause("INT-423")
def test_the_servers_end_is_the_end_of_its_runs(program):
    """Nothing is left running, and what was stored stays."""
    connection = program.connected()
    source = program.person.folder / "me" / "connector.py"
    source.write_text(source.read_text().replace("    stream.save", "    import time; time.sleep(60)\n    stream.save"))
    run_id = program.post(f"connections/{connection}/refresh").ok(202)["sync_id"]
    assert program.stop() == (0, "", "")
    assert program.person.type("runs", "show", run_id)["status"] == "cancelled"


@pytest.mark.clause("INT-421")
@pytest.mark.parametrize("path", ["quotes", "fulfillments", "fulfillments/f1/reconcile", "GET fulfillments/f1"])
def test_orders_are_refused_as_not_supported(program, acme, path):
    """Nothing of them is built; nobody is asked anything."""
    method, _, path = path.rpartition(" ")
    answer = program.ask(method or "POST", f"/v1/{path}", None if method else {"quote": "q1"})
    assert answer.refused == (409, "unsupported")
    assert acme.asked == []


def test_what_is_unknown_disabled_or_not_declared_is_refused_alike_everywhere(program):
    """404, 403 and 409; the command line has the same codes."""
    person = program.person
    assert program.get("integrations/nothing").refused == (404, "not_found")
    assert program.sign_in("telepathy").refused == (404, "not_found")
    unknown = {"instance": "you", "fields": PASSWORD}
    assert program.post("integrations/acme-tickets/auth/password/start", unknown).refused == (404, "not_found")
    assert program.get("syncs/run_x").refused == (404, "not_found")
    person.type("connectors", "disable", "acme_tickets")
    assert program.sign_in().refused == (403, "forbidden")
    person.type("connectors", "enable", "acme_tickets")
    connection = program.connected()
    changed = program.post(f"connections/{connection}/configure", {"options": {"currency": "CHF"}})
    assert changed.refused == (409, "unsupported")
    person.manifest(actions={})
    for action in ("refresh", "disconnect"):
        assert program.post(f"connections/{connection}/{action}").refused == (409, "unsupported")


def test_a_revoked_connection_is_not_the_one_that_took_its_place(program):
    """An action that was meant for the old one does nothing to the new one."""
    person = program.person
    old = program.connected()
    person.type("connections", "revoke", "acme_tickets/me", "--expected-revision", "1")
    assert program.post(f"connections/{old}/refresh").refused == (409, "revoked")
    new = program.connected()
    assert new != old
    for action in ("refresh", "disconnect"):
        assert program.post(f"connections/{old}/{action}").refused == (409, "revoked")
    assert program.get(f"connections/{new}").ok()["connection"]["state"] == "ready"


@pytest.mark.clause("INT-422")
def test_settings_are_changed_at_the_service_as_the_command_line_does(program):
    """All or none; what does not fit is not told to the service."""
    person = program.person
    person.manifest(actions={"configure": True, "refresh": True, "disconnect": True})
    folder = person.folder / "me"
    with (folder / "connector.toml").open("a") as file:
        file.write('properties.currency = { type = "string", enum = ["CHF", "EUR"] }\n')
    with (folder / "integration.py").open("a") as file:
        file.write("\n    def configure(self, ctx: Context, values: Mapping[str, Any]) -> Mapping[str, Any]:\n")
        file.write("        return values\n")
    path = f"connections/{program.connected()}/configure"
    told = program.post(path, {"options": {"currency": "CHF"}}).ok()
    assert told["options"] == {"currency": "CHF"}
    assert told == person.type("connections", "configure", "acme_tickets/me", "--set", "currency=CHF")
    for options in ({"currency": 7}, {"currency": "XYZ"}, {"colour": "red"}, {"currency=CHF": "x"}):
        assert program.post(path, {"options": options}).refused == (422, "invalid_options")
    assert program.person.type("connections", "configure", "acme_tickets/me", "--set", "currency=EUR")


def test_the_example_of_the_page_runs(program):
    """With nothing but the standard library: connected, collected and disconnected."""
    page = (Path(__file__).parents[2] / "docs" / "howto" / "use-accounts-from-a-program.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert "http://127.0.0.1:7663" in example
    example = example.replace("127.0.0.1:7663", f"127.0.0.1:{program.port}")
    usual = program.person.folder / ".local" / "state" / "headwater"
    usual.parent.mkdir(parents=True)
    usual.symlink_to(program.person.state)
    environment = {"HOME": str(program.person.folder), "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-c", example], env=environment, capture_output=True, text=True)
    assert re.fullmatch(r"succeeded \[.*'accepted': 1.*\]\ndone\n", done.stdout), done.stderr
