"""What an integration's code can do is told by its program: started for that alone, and only for a good connection."""

import json
import os

import pytest
from msgspec.structs import replace
from operate.counter import CODE
from operate.desk import SELECTION
from signin.provider import Reply

from headwater.store.sqlite.connections import opened
from headwater.store.sqlite.owner_records import OwnerRecords

LIST = ("operations", "list", "shop/me")
LOOKS = (
    LIST,
    ("operations", "describe", "orders.show", "shop/me"),
    ("invoke", "shop", "orders.show", "--describe"),
    ("invoke", "shop", "orders.show", "--input-json", '{"number": "1"}'),
)


def unavailable(counter, *words):
    """Type a command that cannot be answered, and return the next action; nothing was started or asked."""
    asked = len(counter.running.asked)
    failure = counter.type(*words).failure
    assert (failure["code"], failure["stage"]) == ("description_unavailable", "observation")
    assert len(counter.running.asked) == asked
    assert not counter.runs
    return failure["next_action"]


def change(counter, **members):
    """Write another state of the connection than a command would."""
    with opened(counter.headwater.state / "headwater.db") as registry:
        (now,) = registry.held(os.geteuid(), "shop.me")
        assert registry.publish(now, replace(now, **members), 0)
    return now.reference


class TestLaunching:
    @pytest.mark.clause("CLI-260", "CLI-262", "CLI-265", "CLI-270", "CLI-272")
    def test_the_first_look_starts_the_program_and_keeps_what_it_says(self, counter):
        """No credential is read, since that could not be; nobody is asked; the second look starts nothing."""
        (counter.headwater.place / "key").unlink()
        asked = len(counter.running.asked)
        page = counter.type(*LIST).result
        assert [one["id"] for one in page["operations"]] == ["anything", "orders.cancel", "orders.list", "orders.show"]
        assert (page["source"], page["stale"]) == ("cached", True)
        assert counter.status()["state"] == "ready"
        counter.stop()
        assert counter.type(*LIST).result == page
        told = counter.type("operations", "describe", "orders.show", "shop/me").result
        assert (told["source"], told["stale"], told["revision"]) == ("cached", True, page["revision"])
        assert told["operation"]["input_schema"]["required"] == ["number"]
        assert counter.type("invoke", "shop", "orders.show", "--describe").result["schema"] == told["schema"]
        assert (len(counter.running.asked), counter.runs) == (asked, False)

    @pytest.mark.clause("CLI-261", "CLI-264")
    def test_without_a_connection_nothing_is_started(self, closed):
        for words in LOOKS:
            assert unavailable(closed, *words) == "create_connection"

    @pytest.mark.clause("CLI-264", "CLI-268")
    @pytest.mark.parametrize(
        ("defect", "step"),
        [
            ("revoked", "create_connection"),
            ("refused", "repair_connection"),
            ("expired", "repair_connection"),
            ("another address", "revalidate_connection"),
            ("an upgrade that was refused", "create_connection"),
            ("another service", "check_configuration"),
            ("no digest", "revalidate_connection"),
        ],
    )
    def test_nor_for_one_that_is_not_good_and_current(self, counter, defect, step):
        url = counter.running.url
        with opened(counter.headwater.state / "headwater.db") as registry:
            (now,) = registry.held(os.geteuid(), "shop.me")
        if defect == "revoked":
            counter.host.connecting.revoke(SELECTION, None, "1")
        elif defect == "refused":
            change(counter, lifecycle="stale")
        elif defect == "expired":
            change(counter, evidence=replace(now.evidence, credential_expires_at_ms=1))
        elif defect in ("another address", "an upgrade that was refused"):
            counter.running.url = f"{url}/v2"
            counter.configure()
        elif defect == "another service":
            counter.running.url = "https://other.example"
            counter.configure()
        else:
            counter.configure('description = "mine"\npermissions = { operations = ["orders.show"] }\n')
            change(counter, binding=replace(now.binding, credential_revision=None))
        if defect == "an upgrade that was refused":
            change(
                counter, refused_configuration_revision=counter.host.connecting.target(SELECTION).configuration_revision
            )
        assert unavailable(counter, *LIST) == step
        assert unavailable(counter, *LOOKS[-1]) == step

    @pytest.mark.clause("CLI-264")
    def test_the_connection_that_is_named_is_the_one_that_counts(self, counter):
        old = change(counter)
        counter.host.connecting.revoke(SELECTION, None, "1")
        counter.connect()
        assert unavailable(counter, *LOOKS[-1], "--connection", old) == "create_connection"
        failure = counter.type(*LOOKS[-1], "--connection", "connection_of_another").failure
        assert (failure["code"], counter.runs) == ("not_found", False)
        assert counter.type(*LOOKS[0]).status == 0

    def test_a_check_that_only_lapsed_is_no_reason(self, counter):
        counter.lapse()
        assert counter.type(*LIST).status == 0

    @pytest.mark.clause("CLI-263")
    def test_files_that_are_not_those_that_were_added_are_not_run(self, counter):
        place = counter.headwater.place
        assert counter.type("connectors", "add", str(place / "connector"), "--name", "shop").status == 0
        (place / "collect.toml").write_text(
            (place / "collect.toml").read_text().replace(f'folder = "{place}/connector"\n', "")
        )
        (added,) = (counter.headwater.state / "connectors").glob("shop")
        source = added / "integration.py"
        source.chmod(0o600)
        source.write_text(CODE.replace("One order", "Another order"))
        assert unavailable(counter, *LIST) == "check_configuration"
        source.write_text(CODE)
        assert counter.type(*LIST).status == 0

    @pytest.mark.clause("CLI-266", "CLI-286")
    def test_an_instance_that_was_stopped_is_not_resumed(self, counter):
        records = OwnerRecords(counter.headwater.state / "headwater.db", os.geteuid())
        records.suppress("shop.me", suppressed=True)
        for words in LOOKS:
            assert unavailable(counter, *words) == "revalidate_connection"
        assert records.is_suppressed("shop.me")

    @pytest.mark.clause("CLI-267")
    def test_another_program_may_be_started_and_asks_for_nothing_as_somebody_else(self, counter):
        """The account is asked for before the first read by it, and that leaves no trace."""
        manifest = counter.headwater.place / "connector" / "integration.json"
        manifest.write_text(manifest.read_text().replace('"version": "1.0.0"', '"version": "1.0.1"'))
        counter.replies["/whoami"] = Reply(body={"id": "bert"})
        failure = counter.type(*LOOKS[-1]).failure
        assert (failure["code"], failure["next_action"]) == ("identity_mismatch", "revoke_connection")
        counter.code(CODE.replace("One order", "An order"))
        assert counter.type(*LIST).status == 0


class TestSaying:
    def test_what_is_said_moves_with_the_code(self, counter):
        before = counter.type(*LIST).result
        counter.code(CODE.replace("One order", "An order"))
        after = counter.type(*LIST).result
        assert after["revision"] != before["revision"]
        assert after["operations"][-1]["description"] == "An order."
        assert counter.status()["state"] == "ready"

    @pytest.mark.clause("CLI-041", "CLI-213", "CLI-260", "CLI-284")
    def test_what_was_said_stands_in_what_is_told_of_the_instance(self, counter):
        """Its names there are the implementation's, and its options are JSON text. Looking starts nothing."""
        described = ("instances", "describe", "shop/me")
        plain = counter.type(*described).result
        assert ("descriptor" in plain, plain["source"], counter.runs) == (False, "configuration", False)
        page = counter.type(*LIST).result
        told = counter.type(*described).result
        descriptor = told.pop("descriptor")
        assert (told["source"], told["stale"], told["adapter"]) == ("cached", True, "shop.me")
        assert (descriptor["adapter"], descriptor["instance"]) == ("shop", "shop.me")
        assert (descriptor["revision"], "connector" in descriptor) == (page["revision"], False)
        assert [one["id"] for one in descriptor["operations"]] == [one["id"] for one in page["operations"]]
        assert json.loads(descriptor["configuration_schema"])["required"] == ["endpoint"]

    @pytest.mark.clause("CLI-273")
    def test_a_list_is_of_a_family(self, counter):
        page = counter.type(*LIST, "--family", "orders/v1").result
        assert [one["id"] for one in page["operations"]] == ["orders.show"]
        assert counter.type(*LIST, "--family", "orders/v2").result["operations"] == []

    @pytest.mark.parametrize(
        ("wrong", "told"),
        [
            ('output={"type": "object"}', "/operations/orders.list/output/type breaks the rule"),
            ("input=PAGE", "/operations/orders.list/input/type must be object"),
            ('contract="orders/v1"', "/operations/orders.show/contract must be a family"),
            ('"param": "page"', "/operations/orders.list/walk names other"),
        ],
    )
    def test_what_is_said_wrongly_is_no_hello(self, counter, wrong, told):
        """The log of the start says where; nothing is kept."""
        by = {
            'output={"type": "object"}': 'output={"type": "thing"}',
            "input=PAGE": 'input={"type": "array"}',
            'contract="orders/v1"': 'contract="orders v1"',
            '"param": "page"': '"param": "other"',
        }
        counter.code(CODE.replace(wrong, by[wrong], 1))
        failure = counter.type(*LIST).failure
        assert (failure["code"], failure["stage"]) == ("readiness_mismatch", "readiness")
        seen = counter.status()
        assert seen["start_failure"] == "handshake_mismatch"
        with open(seen["start_log"]) as log:
            assert told in log.read()

    def test_other_operations_than_its_text_has_are_no_hello(self, counter):
        more = 'operation("more", description="M.", input={"type": "object"}, output={})(Shop.show)'
        counter.code(f'{CODE}\nsetattr(Shop, "more", {more})\n')
        assert counter.type(*LIST).failure["code"] == "readiness_mismatch"

    def test_one_place_alone_has_the_operations(self, counter):
        counter.define('format = "connectors-definition/1"\n[operations]\n')
        assert counter.type(*LIST).failure["code"] == "invalid_manifest"

    def test_what_was_said_is_told_when_the_connection_is_gone(self, counter):
        page = counter.type(*LIST).result
        counter.host.connecting.revoke(SELECTION, None, "1")
        assert counter.type(*LIST).result == page
