"""An instance that is served by an installed release, from its key to what the service answers."""

import asyncio
import json
import sys

import pytest
from connectors.connecting import written
from journeys.conftest import Headwater
from operate.desk import HEAD, TOKEN, failure_of
from releases.shelf import AUTH, WALK, billed, definition, refusal
from signin.provider import Reply, provider

from headwater.configuration.selecting import Selection
from headwater.connect.disconnecting import disconnect
from headwater.joining.reaching import reach_of
from headwater.joining.targets import Targets
from headwater.outbound.client import Client, Unanswered
from headwater.store.sqlite.connections import opened

ASK = ("--input-json", "{}")
SHOWN = f'{HEAD}[operations."orders.show"]\ndescription = "One."\npath = "/orders/1"\n'
GRANT = """
[[auth.methods]]
key = "api_token"
label = "Account"
flow = "oauth"
scheme = "oauth2_grant"
identity = { source = "api", kind = "user", path = "/whoami", subject = "/id", display = "/name" }

[auth.methods.oauth]
tokenUrl = "/token"
authorizeUrl = "/authorize"
revocationUrl = "/take"
clientId = "headwater"
requestedScopes = ["read"]
minimumScopes = ["read"]
"""
OPENED: list[str] = []
"""What was opened while `LISTENING`: a hook of the interpreter can be set and never taken away."""
LISTENING: list[bool] = []


@pytest.fixture
def opens():
    """The files that this process opens, by the names that it opens them by."""

    def note(event: str, given: tuple) -> None:
        if LISTENING and event == "open":
            OPENED.append(str(given[0]))

    sys.addaudithook(note)
    OPENED.clear()
    LISTENING.append(True)
    yield OPENED
    LISTENING.clear()


class TestCommands:
    @pytest.mark.clause("CLI-528")
    def test_a_release_is_installed_and_used_from_the_key_to_every_page(self, shelf):
        typed: Headwater = shelf.desk.headwater
        digest = shelf.install({"services/acme.toml": definition(shelf.url) + WALK.encode()})
        told = typed.type("definitions", "use", "acme/me", "--release", digest).result
        known = {"endpoint": shelf.url, "profiles": ["api_token"], "connections": []}
        assert told == {"instance": "acme/me", "release": digest, "disposition": "created", **known}
        entry = written(typed.place, "entry.json", json.dumps({"token": TOKEN}))
        how = ["--endpoint", shelf.url, "--credential-file", str(entry)]
        assert typed.type("connections", "connect", "acme/me", *how).result["instance"] == "me"
        listed = typed.type("operations", "list", "acme/me").result["operations"]
        assert {"bills.list", "orders.list", "orders.show"} <= {row["id"] for row in listed}
        one = typed.type("operations", "describe", "orders.list", "acme/me").result
        assert set(one["operation"]["input_schema"]["properties"]) == {"state", "page"}
        assert typed.type("invoke", "acme/me", "orders.list", *ASK).result["result"]["body"][0]["item"] == "tea"
        shelf.desk.replies["/bills"] = billed()
        walked = typed.type("invoke", "acme", "bills.list", *ASK, "--walk", "--out", str(typed.place / "bills"))
        assert json.loads(walked.stdout.splitlines()[-1])["result"]["records"] == 3
        assert typed.type("instances", "describe", "acme/me").result["configuration"]["release"] == digest

    def test_a_person_is_told_what_to_type_next(self, shelf):
        typed = Headwater(shelf.desk.headwater.place, mode="human")
        digest = shelf.install({"services/acme.toml": definition(shelf.url)})
        said = typed.type("definitions", "use", "acme/me", "--release", digest).stdout
        assert f"release {digest}" in said
        assert "connections connect acme/me" in said
        assert digest in typed.type("definitions", "list").stdout
        assert "no connector of its name" in typed.type("definitions", "use", "acme/me", "--none").stdout

    @pytest.mark.parametrize("words", [(), ("--none", "--release", "0" * 64)])
    def test_a_release_or_none_has_to_be_said(self, shelf, words):
        failure = shelf.desk.headwater.type("definitions", "use", "acme/me", *words).failure
        assert failure["code"] == "invalid_input"

    def test_installed_releases_are_listed_with_what_they_serve(self, shelf):
        assert shelf.desk.headwater.type("definitions", "list").result == {"releases": []}
        older = shelf.install({"acme/one.toml": b""}, "0.2.0")
        newer = shelf.opted("acme/me", {"acme/acme.toml": definition(shelf.url)})
        damaged = shelf.kept(shelf.install({"acme/two.toml": b""}, "0.1.0"))
        (damaged / "index.json").chmod(0o644)
        (damaged / "index.json").write_text("{}")
        rows = {row["release"]: row for row in shelf.desk.headwater.type("definitions", "list").result["releases"]}
        assert (rows[older]["tag"], rows[older]["instances"]) == ("0.2.0", [])
        assert (rows[newer]["tag"], rows[newer]["instances"], rows[newer]["files"]) == ("0.3.0", ["acme/me"], 1)
        assert rows[damaged.name]["fault"]["code"] == "digest_mismatch"


class TestWithoutTheKey:
    @pytest.mark.clause("CLI-528")
    @pytest.mark.parametrize("lock", [None, b"\0 not a lock", b"{}"], ids=["as it is", "corrupt", "empty"])
    def test_the_lock_and_the_releases_stay_unread(self, shelf, opens, lock):
        """The instance asks what its connector's folder defines, whatever was installed."""
        shelf.install({"services/shop.toml": definition(shelf.url, operations=SHOWN)})
        if lock is not None:
            shelf.desk.host.settings.definitions_lock_path.write_bytes(lock)
        shelf.desk.connect()
        opens.clear()
        assert shelf.desk.ask("orders.list")["result"]["status"] == 200
        assert "orders.list" in shelf.operations("shop/me")
        assert [one for one in opens if "lock" in one and "definitions" in one] == []
        assert [one for one in opens if "installed-definitions" in one or one == "index.json"] == []
        assert any("collect.toml" in one for one in opens)

    @pytest.mark.clause("CLI-528")
    @pytest.mark.parametrize("lock", [b"\0 not a lock", None], ids=["corrupt", "of the other"])
    def test_the_key_counts_and_not_the_lock(self, shelf, opens, lock):
        """Of two releases the one that the key names serves, although the other was installed last."""
        chosen = shelf.install({"services/shop.toml": definition(shelf.url)}, "0.2.0")
        shelf.install({"services/shop.toml": definition(shelf.url, operations=SHOWN)})
        if lock is not None:
            shelf.desk.host.settings.definitions_lock_path.write_bytes(lock)
        shelf.desk.host.opting.use("shop/me", chosen)
        shelf.desk.connect()
        opens.clear()
        assert shelf.desk.ask("orders.list")["result"]["status"] == 200
        assert "index.json" in opens
        assert [one for one in opens if "definitions.lock" in one] == []

    @pytest.mark.clause("CLI-528")
    def test_another_instance_of_the_connector_is_as_it_was(self, shelf):
        before = shelf.revision("shop/me")
        shelf.opted("shop/other", {"services/shop.toml": definition(shelf.url, operations=SHOWN)})
        assert shelf.operations("shop/other") == {"orders.show"}
        assert "orders.list" in shelf.operations("shop/me")
        assert shelf.revision("shop/me") == before


class TestWithTheKey:
    @pytest.mark.clause("CLI-528")
    def test_a_connection_stays_ready_where_its_credential_goes_the_same_way(self, shelf):
        """The bundled way to sign in and the release's are one: nobody signs in again, and nobody is asked."""
        shelf.desk.connect()
        before, asked = shelf.revision("shop/me"), len(shelf.desk.running.asked)
        shelf.opted("shop/me", {"services/shop.toml": definition(shelf.url, operations=SHOWN)})
        assert shelf.revision("shop/me") != before
        assert (shelf.state("shop/me"), len(shelf.desk.running.asked)) == ("ready", asked)
        assert shelf.desk.ask("orders.show")["result"]["status"] == 200
        assert shelf.desk.refused("orders.list").code == "not_found"

    @pytest.mark.clause("CLI-528")
    def test_the_revision_moves_with_the_digest_alone(self, shelf):
        """Two releases that define the connector alike are two configurations."""
        same = definition(shelf.url)
        shelf.opted("acme/me", {"services/acme.toml": same}, "0.2.0")
        shelf.place("acme/me")
        shelf.connect("acme/me")
        first = shelf.revision("acme/me")
        shelf.opted("acme/me", {"services/acme.toml": same}, "0.3.0")
        assert shelf.revision("acme/me") != first
        assert shelf.state("acme/me") == "ready"
        assert shelf.desk.ask(name="acme/me")["result"]["status"] == 200

    @pytest.mark.clause("CLI-528")
    def test_a_connection_of_another_way_to_sign_in_is_not_used(self, shelf):
        shelf.desk.connect()
        other = AUTH.replace('subject = "/id"', 'subject = "/number"')
        shelf.opted("shop/me", {"services/shop.toml": definition(shelf.url, auth=f"[[auth.methods]]{other}")})
        told = shelf.desk.host.opting.use("shop/me", shelf.desk.host.instances.find("shop/me").release or "")
        assert [one["state"] for one in told["connections"]] != ["ready"]
        shelf.desk.running.asked.clear()
        assert shelf.desk.refused("orders.list").code == "connection_unresolved"
        assert shelf.desk.running.asked == []

    @pytest.mark.clause("CLI-528")
    def test_what_definitions_share_is_of_the_release(self, shelf):
        files = {
            "services/acme.toml": definition(shelf.url, auth='[[auth.methods]]\nuse = "auth/token.toml"\n'),
            "auth/token.toml": AUTH.encode(),
        }
        shelf.opted("acme/me", files)
        shelf.place("acme/me")
        shelf.connect("acme/me")
        assert shelf.desk.ask(name="acme/me")["result"]["status"] == 200

    @pytest.mark.clause("CLI-528")
    def test_a_key_that_was_written_by_hand_is_as_good(self, shelf):
        digest = shelf.install({"services/acme.toml": definition(shelf.url)})
        shelf.collect.write_text(f'{shelf.collect.read_text()}\n[instances."acme/me"]\nrelease = "{digest}"\n')
        assert {"orders.list", "orders.show"} <= shelf.operations()

    @pytest.mark.clause("CLI-528")
    def test_a_write_of_a_release_is_not_sent_without_an_approval(self, shelf, served):
        write = ("invoke", "acme/me", "orders.cancel", "--input-json", '{"number": "1"}')
        assert shelf.desk.headwater.type(*write).failure["code"] in ("approval_required", "forbidden")
        assert shelf.desk.running.asked == []

    @pytest.mark.clause("CLI-528")
    def test_whoever_published_a_release_cannot_lead_into_the_network_of_its_reader(self, shelf):
        """An address of this machine is asked where the configuration's owner wrote it, and not for a release."""
        shelf.opted("acme/me", {"services/acme.toml": definition(shelf.url)})
        refusal(shelf.connect, "acme/me")
        assert shelf.desk.running.asked == []
        config = shelf.desk.headwater.place / "config.toml"
        before = config.read_text()
        shelf.place("acme/me")
        assert shelf.connect("acme/me")
        shelf.desk.running.asked.clear()
        config.write_text(before)
        refused = shelf.desk.refused(name="acme/me")
        assert failure_of(refused) == ("unavailable", "admission", "check_configuration", None)
        assert "private network" in refused.message
        assert shelf.desk.running.asked == []

    @pytest.mark.clause("CLI-528")
    def test_an_endpoint_of_the_owners_opens_the_network_to_nothing_else(self, shelf, served):
        """The other URLs of a release are its publisher's, whoever wrote the endpoint."""
        host = shelf.desk.host
        target = host.connecting.target(Selection("acme", "me"))

        async def get(url):
            async with Client(reach_of(host.settings, target)) as client:
                return await client.get(url)

        assert asyncio.run(get(f"{shelf.url}/whoami"))
        with provider(lambda asked: Reply()) as other:
            with pytest.raises(Unanswered):
                asyncio.run(get(other.url))
            assert other.asked == []

    @pytest.mark.clause("CLI-528")
    def test_disconnecting_tells_no_provider_that_the_credential_was_not_made_for(self, shelf):
        """A release that says how its own credentials are revoked is not handed one that was connected before it."""
        shelf.desk.connect()
        shelf.opted("shop/me", {"services/shop.toml": definition(shelf.url, auth=GRANT)})
        shelf.desk.running.asked.clear()
        with opened(shelf.desk.headwater.state / "headwater.db") as registry:
            parts = shelf.desk.host.connecting.disconnecting(registry, Selection("shop", "me"))
            _, told = asyncio.run(disconnect(registry, *parts))
            assert (told, shelf.desk.running.asked) == ("failed", [])


class TestCollecting:
    @pytest.mark.clause("CLI-528")
    def test_the_connectors_program_gets_the_credential_where_it_goes_the_same_way(self, shelf):
        shelf.desk.connect()
        shelf.opted("shop/me", {"services/shop.toml": definition(shelf.url, operations=SHOWN)})
        shelf.desk.headwater.type(
            "instances", "add", "shop/me", "--from", str(shelf.desk.headwater.place / "connector")
        )
        assert shelf.desk.headwater.type("collect", "shop/me").result["status"] == "succeeded"

    @pytest.mark.clause("CLI-528")
    def test_a_credential_that_only_the_release_knows_how_to_send_is_not_handed_to_the_program(self, shelf):
        """What was connected in the release's way is not what the connector asks for: it is handed out to nobody."""
        other = AUTH.replace('key = "api_token"', 'key = "release_token"')
        shelf.opted("shop/me", {"services/shop.toml": definition(shelf.url, auth=f"[[auth.methods]]{other}")})
        shelf.connect("shop/me")
        assert shelf.desk.ask("orders.list")["result"]["status"] == 200
        shelf.desk.running.asked.clear()
        failure = shelf.desk.headwater.type("collect", "shop/me").failure
        assert (failure["code"], failure["next_action"]) == ("lifecycle_conflict", "create_connection")
        assert refusal(asyncio.run, shelf.desk.host.connecting.credential_for("shop/me")).code == "lifecycle_conflict"
        assert shelf.desk.running.asked == []

    @pytest.mark.clause("CLI-528")
    def test_the_program_goes_where_its_connector_says_and_the_release_where_its_own_says(self, shelf):
        config = shelf.desk.headwater.place / "config.toml"
        config.write_text(config.read_text().partition("[connectors")[0])
        shelf.opted("shop/me", {"services/shop.toml": definition("https://elsewhere.example")})
        assert shelf.desk.host.connecting.target(Selection("shop", "me")).authority == "https://elsewhere.example"
        _, collected = Targets(shelf.desk.host.settings).known("shop/me")
        assert collected.authority == "shop.example"

    @pytest.mark.clause("CLI-528")
    def test_what_a_release_alone_has_is_not_collected(self, shelf, served):
        failure = shelf.desk.headwater.type("collect", "acme/me").failure
        assert failure["code"] == "unsupported"
        assert shelf.desk.running.asked == []


class TestLeaving:
    @pytest.mark.clause("CLI-528")
    def test_the_connector_serves_again_and_the_file_is_as_it_was(self, shelf):
        before, bytes_before = shelf.operations("shop/me"), shelf.collect.read_bytes()
        shelf.opted("shop/me", {"services/shop.toml": definition(shelf.url, operations=SHOWN)})
        assert shelf.operations("shop/me") != before
        told = shelf.desk.host.opting.leave("shop/me")
        assert told == {"instance": "shop/me", "release": None, "is_served": True, "disposition": "changed"}
        assert (shelf.operations("shop/me"), shelf.collect.read_bytes()) == (before, bytes_before)
        assert shelf.desk.host.opting.leave("shop/me")["disposition"] == "unchanged"

    def test_nothing_is_left_of_an_instance_that_only_the_release_served(self, shelf):
        shelf.opted("acme/me", {"services/acme.toml": definition(shelf.url)})
        assert shelf.desk.host.opting.leave("acme/me")["is_served"] is False
        assert "acme" not in shelf.collect.read_text()
        assert refusal(shelf.desk.host.opting.leave, "acme/me").code == "not_found"

    def test_what_is_connected_is_kept_and_can_be_revoked(self, shelf, served):
        """The credential stays within reach, though nothing serves the instance any more."""
        shelf.desk.host.opting.leave("acme/me")
        typed = shelf.desk.headwater
        (row,) = typed.type("connections", "list", "acme/me").result["connections"]
        typed.type("connections", "revoke", "acme/me", "--expected-revision", str(row["revision"]))
        typed.type("instances", "remove", "acme/me")
        assert "acme" not in shelf.collect.read_text()

    def test_a_release_that_is_gone_can_be_left(self, shelf, served):
        shelf.kept(served).rename(shelf.desk.headwater.place / "gone")
        assert shelf.desk.host.opting.leave("acme/me")["disposition"] == "changed"

    @pytest.mark.clause("CLI-528")
    def test_a_walk_asks_no_further_page_once_the_key_is_gone(self, shelf):
        shelf.opted("acme/me", {"services/acme.toml": definition(shelf.url) + WALK.encode()})
        shelf.place("acme/me")
        shelf.connect("acme/me")
        pages = billed()

        def answer(asked):
            shelf.desk.host.opting.leave("acme/me")
            return pages(asked)

        shelf.desk.replies["/bills"] = answer
        shelf.desk.headwater.type("invoke", "acme/me", "bills.list", *ASK, "--walk", "--out", "-")
        assert shelf.desk.paths == ["/bills"]

    def test_its_connection_is_there_again_with_the_release(self, shelf, served):
        shelf.desk.host.opting.leave("acme/me")
        shelf.desk.host.opting.use("acme/me", served)
        assert shelf.desk.ask(name="acme/me")["result"]["status"] == 200
        with opened(shelf.desk.headwater.state / "headwater.db") as registry:
            assert shelf.desk.host.connecting.target(Selection("acme", "me")).instance_id == "acme.me"
            assert len(registry.held(shelf.desk.host.connecting.target(Selection("acme", "me")).owner, "acme.me")) == 1
