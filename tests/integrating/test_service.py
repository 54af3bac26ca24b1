"""The common integration service: what is listed, enabled, refreshed and disconnected, whichever face asks."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import apsw
import pytest
from owner.conftest import Machine

CONFIRMED = {"workflow": "official", "basis": "Terms", "source": "https://acme.example/terms", "date": "2026-11-01"}


class Person(Machine):
    """A person with an account at Acme, whose credentials are in a sealed file."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        super().__init__(folder)
        self.endpoint = endpoint
        self.key, self.vault, self.entry = folder / "key", folder / "vault", folder / "entry"
        self.secret(self.key, os.urandom(48).hex())
        collect = self.config.with_name("collect.toml")
        custody = f'[custody]\nbinding = "sealed_file"\nfile = "{self.vault}"\nkey_file = "{self.key}"\n'
        self.secret(collect, f'format = "headwater-collect/1"\n\n{custody}')
        self.instance("me", endpoint)
        self.type("instances", "add", "acme_tickets/me", "--set", f"endpoint={endpoint}")

    def secret(self, path: Path, text: str) -> None:
        path.touch(0o600)
        path.write_text(text)

    def connect(self, status: int = 0, profile: str = "password", **fields: str):
        entered = fields or {"user": "ada", "password": "correct horse"}
        self.secret(self.entry, json.dumps(entered))
        words = ["acme_tickets/me", "--profile", profile, "--credential-file", str(self.entry)]
        return self.type("connections", "connect", *words, status=status)

    def disconnect(self, status: int = 0):
        return self.type("connections", "disconnect", "acme_tickets/me", status=status)

    def collect(self, status: int = 0):
        return self.type("collect", "acme_tickets/me", status=status)

    def standing(self):
        (row, *_) = self.type("connections", "list", "acme_tickets/me")["connections"][-1:]
        return row["state"]

    def manifest(self, **members):
        path = self.folder / "me" / "integration.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **members}))


@pytest.fixture
def person(tmp_path, acme):
    made = Person(tmp_path, acme.endpoint)
    yield made
    made.close()


@pytest.fixture
def ada(person):
    """A person whose account is connected, and collected from."""
    person.type("connectors", "enable", "acme_tickets")
    person.connect()
    person.collect()
    return person


@pytest.mark.clause("INT-106")
def test_one_that_is_not_enabled_is_listed_and_connects_nobody(person, acme):
    (row,) = [one for one in person.type("connectors", "integrations")["integrations"] if one["key"] == "acme-tickets"]
    assert not row["enabled"]
    failure = person.connect(status=1)
    assert (failure["code"], failure["command"]) == ("forbidden", "headwater connectors enable acme_tickets")
    assert acme.asked == []
    assert not person.vault.exists()
    assert person.type("connectors", "enable", "acme_tickets") == {
        "connector": "acme_tickets",
        "key": "acme-tickets",
        "enabled": True,
    }
    assert person.connect()["connection"]
    person.type("connectors", "disable", "acme_tickets")
    assert person.collect()["status"] == "succeeded"


@pytest.mark.clause("INT-102", "INT-424")
def test_the_catalog_is_listed_without_asking_anybody(person, acme):
    """What each can do, how one signs in, and who is left out; no provider is asked."""
    (row,) = [one for one in person.type("connectors", "integrations")["integrations"] if one["key"] == "acme-tickets"]
    assert [method["flow"] for method in row["methods"]] == ["token", "password", "verification_code"]
    assert row["actions"] == ["disconnect", "refresh"]
    assert row["warnings"] == ["Nobody has confirmed that the provider permits this."]
    person.manifest(version="1", colour="red")
    told = person.type("connectors", "integrations")
    assert {one["pointer"] for one in told["left_out"]} == {"/version", "/colour"}
    assert "acme-tickets" not in {one["key"] for one in told["integrations"]}
    assert acme.asked == []


@pytest.mark.clause("INT-521")
def test_a_confirmation_is_shown_as_long_as_it_is_young(person):
    confirmed = person.folder / "me" / "permission.json"
    for day, warned in (("2026-11-01", False), ("2020-01-01", True)):
        confirmed.write_text(json.dumps({"workflows": [{**CONFIRMED, "date": day}]}))
        (row,) = [
            one for one in person.type("connectors", "integrations")["integrations"] if one["key"] == "acme-tickets"
        ]
        assert bool(row["warnings"]) is warned


@pytest.mark.clause("INT-360", "INT-361", "INT-362", "INT-366")
def test_an_account_is_disconnected_once_and_for_all(ada, acme):
    """The provider is told, custody is empty, records stay and are inactive; saying it again says the same."""
    told = ada.disconnect()
    assert (told["revocation"], told["credential"], told["records"]) == ("done", "cleared", "kept")
    assert acme.asked.count("POST /sign-out") == 1
    assert ada.standing() == "revoked"
    (stream,) = ada.type("streams", "list", "acme_tickets/me")["streams"]
    assert (stream["records"], stream["inactive_since_ms"]) == (1, told["inactive_since_ms"])
    page = ada.type("records", "list", "acme_tickets/me", "events")
    assert (len(page["items"]), page["inactive_since_ms"]) == (1, told["inactive_since_ms"])
    assert ada.type("records", "history", "acme_tickets/me", "events", "1")["versions"]
    ada.type("setup", "owner-stop")
    assert ada.disconnect() == told
    assert acme.asked.count("POST /sign-out") == 1
    assert ada.collect(status=1)["code"] == "revoked"


@pytest.mark.clause("INT-366", "INT-196")
def test_the_same_account_comes_back_without_doubles(ada):
    before = ada.type("records", "list", "acme_tickets/me", "events")["items"]
    ada.disconnect()
    ada.connect()
    assert ada.type("records", "list", "acme_tickets/me", "events") == {"items": before}
    assert ada.collect()["status"] == "succeeded"
    assert ada.type("records", "list", "acme_tickets/me", "events")["items"] == before
    assert ada.standing() == "ready"


@pytest.mark.clause("INT-364")
@pytest.mark.parametrize("how", ["fails", "hangs"])
def test_the_credential_goes_whatever_the_provider_says(how, ada, acme):
    """Work is blocked first, so that even then nothing more is done with it."""
    acme.statuses["/sign-out"] = 503
    if how == "hangs":
        source = ada.folder / "me" / "integration.py"
        hang = 'import time; time.sleep(60)\n        ctx.http.request("POST", "/sign-out"'
        source.write_text(source.read_text().replace('ctx.http.request("POST", "/sign-out"', hang))
        ada.type("setup", "owner-stop")
    told = ada.disconnect()
    assert told["revocation"] == "failed"
    assert ada.standing() == "revoked"
    assert ada.collect(status=1)["code"] == "revoked"


@pytest.mark.clause("INT-156", "INT-361")
def test_without_the_hook_the_provider_is_not_told(ada, acme):
    source = ada.folder / "me" / "integration.py"
    source.write_text(source.read_text().replace("def disconnect", "def leave"))
    ada.type("setup", "owner-stop")
    assert ada.disconnect()["revocation"] == "unsupported"
    assert "POST /sign-out" not in acme.asked


@pytest.mark.clause("INT-153", "INT-157")
def test_an_action_that_is_not_declared_is_refused_by_the_service(ada, acme):
    """Whatever a face shows."""
    ada.manifest(actions={"refresh": True})
    failure = ada.disconnect(status=1)
    assert (failure["code"], failure["stage"]) == ("unsupported", "admission")
    assert ada.standing() != "revoked"
    assert "POST /sign-out" not in acme.asked


@pytest.mark.clause("INT-363")
def test_the_account_of_another_owner_is_not_there(ada):
    """The same database, another user: what is theirs looks like what is missing, and stays as it is."""
    database = apsw.Connection(str(ada.state / "headwater.db"))
    database.execute("UPDATE connections SET owner = owner + 1")
    database.execute("UPDATE credential_versions SET owner = owner + 1")
    before = database.execute("SELECT * FROM connections").fetchall()
    failure = ada.disconnect(status=1)
    assert (failure["code"], failure["next_action"]) == ("not_found", "create_connection")
    assert database.execute("SELECT * FROM connections").fetchall() == before
    assert ada.type("connections", "list", "acme_tickets/me")["connections"] == []
    database.close()


@pytest.mark.clause("INT-471")
def test_what_a_provider_says_of_owners_changes_no_owner(person, acme):
    """An account may be called like another user of this machine: the connection is still this one's."""
    acme.tokens["token-of-ada"] = str(os.geteuid() + 1)
    person.type("connectors", "enable", "acme_tickets")
    told = {"user": "ada", "password": "correct horse", "owner": "0"}
    assert person.connect(status=2, **told)["code"] == "invalid_input"
    person.connect(profile="token", token="token-of-ada")
    database = apsw.Connection(str(person.state / "headwater.db"))
    ((owner, subject),) = database.execute("SELECT owner, identity_subject FROM connections").fetchall()
    database.close()
    assert (owner, subject) == (os.geteuid(), str(os.geteuid() + 1))


def test_nothing_to_disconnect_is_told(person):
    failure = person.disconnect(status=1)
    assert (failure["code"], failure["next_action"]) == ("not_found", "create_connection")


@pytest.mark.clause("INT-365")
def test_a_run_that_is_under_way_is_ended_first(ada, acme):
    """It is cancelled, and nothing of it is written after the credential is gone."""
    slow = ada.folder / "me" / "connector.py"
    slow.write_text(slow.read_text().replace("    stream.save", "    import time; time.sleep(60)\n    stream.save"))
    with subprocess.Popen(
        ada.words("collect", "acme_tickets/me"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        end = time.monotonic() + 30
        while acme.asked.count("GET /events?cursor=") < 2:
            assert time.monotonic() < end
            time.sleep(0.02)
        assert ada.disconnect()["revocation"] == "done"
        assert run.wait(30) == 130
    assert ada.type("runs", "list")["items"][0]["status"] == "cancelled"


def test_the_secrets_are_nowhere(ada):
    """In no file but the sealed one and the entry itself, and in none of its bytes."""
    ada.disconnect()
    ada.entry.unlink()
    shutil.rmtree(ada.folder / "me" / "__pycache__", ignore_errors=True)
    for path in ada.folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert b"correct horse" not in content, path
            assert b"token-1" not in content, path
