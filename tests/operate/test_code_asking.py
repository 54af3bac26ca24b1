"""Asking by an integration's own code: admitted like any read, run by the owner, held to what was described."""

import json
import os
import threading
import time

import pytest
from operate.counter import CODE
from operate.desk import SELECTION, TOKEN, failure_of
from signin.provider import Reply

from headwater.adapters.crossing import of_credential
from headwater.connect.envelope import Credential, Envelope
from headwater.errors import HeadwaterError
from headwater.link.owner import ask
from headwater.secret import Secret
from headwater.store.sqlite.owner_records import OwnerRecords

STRANGE = ("service_failure", "dispatch", "retry_explicitly", "upstream_protocol")
SHOW = ("invoke", "shop", "orders.show", "--input-json", '{"number": "1"}')


def until(condition):
    """Wait for something that a process brings about."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def aside(work):
    """Do something beside the test; return what waits for what came of it."""
    told = []
    thread = threading.Thread(target=lambda: told.append(work()))
    thread.start()

    def wait():
        thread.join(timeout=60)
        return told[0]

    return wait


class TestAnswers:
    @pytest.mark.clause("CLI-577", "CLI-578", "CLI-801")
    def test_the_result_is_what_the_code_returns(self, counter):
        """It asks the service with the credential of the connection, and the journal has it."""
        counter.replies["/orders/1"] = Reply(body={"number": "1", "price": 1.5})
        answer = counter.ask("orders.show", {"number": "1"})
        assert answer.pop("request_id") == counter.journal()[-1]["request_id"]
        assert len(answer.pop("revision")) == 64
        assert answer == {
            "connector": "shop", "instance": "me", "operation": "orders.show", "result": {"number": "1", "price": 1.5}
        }  # fmt: skip
        assert counter.paths == ["/orders/1"]
        assert counter.running.asked[-1].headers["authorization"] == f"Bearer {TOKEN}"
        noted = counter.journal()[-1]
        assert (noted["operation"], noted["effect"], noted["outcome"]) == ("orders.show", "read", "succeeded")

    @pytest.mark.clause("CLI-600", "CLI-601", "CLI-651")
    def test_it_is_shaped_and_walked_like_any_other(self, counter):
        def page(asked):
            number = int(asked.path.partition("page=")[2])
            return Reply(body={"orders": [{"n": number}, {"n": -number}], "more": number < 3})

        counter.replies["/orders"] = page
        listing = ("invoke", "shop", "orders.list", "--input-json", '{"page": 2}')
        assert counter.type(*listing, "--fields", "more").result["more"] is True
        lines = counter.type(*listing, "--each", "orders", "--fields", "n").stdout.splitlines()
        assert [json.loads(line) for line in lines[:-1]] == [{"n": 2}, {"n": -2}]
        told = counter.type(*listing, "--describe").result["input_schema"]["x-connectors-walk"]
        assert (told["param"], told["extension"]) == ("page", True)
        walk = counter.type("invoke", "shop", "orders.list", "--input-json", "{}", "--walk", "--out", "-")
        *records, told = (json.loads(line) for line in walk.stdout.splitlines())
        assert [one["n"] for one in records] == [1, -1, 2, -2, 3, -3]
        assert (told["result"]["complete"], told["result"]["pages"]) == (True, 3)
        assert counter.paths == ["/orders?page=2"] * 2 + [f"/orders?page={number}" for number in (1, 2, 3)]

    @pytest.mark.clause("CLI-919", "CLI-921", "CLI-929")
    def test_each_refusal_of_the_code_is_a_failure_of_its_own(self, counter):
        service, wait = "service_failure", {"retry_after": 70}
        told = {
            "invalid_fields": (service, "dispatch", "none", "invalid_input"),
            "challenge_failed": (service, "dispatch", "repair_connection", "unauthorized"),
            "credential_invalid": (service, "dispatch", "repair_connection", "unauthorized"),
            "insufficient_scope": ("forbidden", "dispatch", "request_permission", None),
            "provider_rate_limited": (service, "dispatch", "retry_explicitly", "rate_limited"),
            "provider_unavailable": (service, "dispatch", "retry_explicitly", "unavailable"),
            "provider_timeout": ("timeout", "dispatch", "retry_explicitly", None),
            "provider_protocol_error": STRANGE,
            "exchange_unknown": ("outcome_unknown", "dispatch", "retry_status", None),
            "of its own": STRANGE,
        }
        for code, failure in told.items():
            error = counter.refused("anything", {"code": code, **wait})
            assert (code, *failure_of(error)) == (code, *failure)
            assert error.data.get("retry_after_seconds") == (70 if "rate_limited" in failure else None)
            assert error.data["request_id"] == counter.journal()[-1]["request_id"]

    @pytest.mark.clause("CLI-583")
    def test_what_is_not_as_declared_is_no_result(self, counter):
        for value in (
            "1",
            "None",
            "{'a': float('nan')}",
            "{'a': 1e999}",
            "{'a': '\\ud800'}",
            "{'a': object()}",
            "1 / 0",
        ):
            assert failure_of(counter.refused("anything", {"value": value})) == STRANGE
        deep = "__import__('json').loads('{\"a\":' + '[' * 130 + ']' * 130 + '}')"
        assert failure_of(counter.refused("anything", {"value": deep})) == STRANGE
        assert counter.ask("anything", {"value": "{'a': [10 ** 30, 1.5, 'é']}"})["result"] == {"a": [10**30, 1.5, "é"]}

    @pytest.mark.clause("CLI-585")
    def test_a_result_is_bounded(self, counter):
        size = 8 * 1024 * 1024 - len('{"a":""}')
        assert counter.ask("anything", {"value": f"{{'a': '\"' * {size // 2}}}"})["result"]["a"] == '"' * (size // 2)
        error = counter.refused("anything", {"value": f"{{'a': 'x' * {size + 1}}}"})
        assert failure_of(error) == ("capacity", "admission", "retry_explicitly", None)

    @pytest.mark.clause("CLI-585")
    def test_what_it_is_given_may_be_large(self, counter):
        text = '"' * 500_000
        assert counter.ask("anything", {"a": text})["result"] == {"a": text}


class TestAdmission:
    @pytest.mark.clause("CLI-801")
    def test_what_is_not_admitted_starts_nothing(self, counter):
        """A bad input, an operation that is not permitted or not there, a write, another description."""
        assert counter.type(*SHOW, "--describe").status == 0
        counter.stop()
        permitted = 'permissions = { profiles = ["api_token"], operations = ["orders.list", "orders.cancel"] }\n'
        counter.configure(permitted)
        assert counter.type("operations", "list", "shop/me").status == 0
        counter.stop()
        cancel = ("invoke", "shop", "orders.cancel", "--input-json", '{"number": "1"}')
        listing = ("invoke", "shop", "orders.list", "--input-json")
        for words, code in (
            (SHOW, "forbidden"),
            (("invoke", "shop", "orders.gone", "--input-json", "{}"), "not_found"),
            (cancel, "approval_required"),
            ((*listing, '{"page": "x"}'), "invalid_input"),
            ((*listing, "{}", "--revision", "0" * 64), "stale_description"),
        ):
            assert counter.type(*words).failure["code"] == code
            assert not counter.runs
        assert (counter.paths, counter.journal()) == ([], [])

    @pytest.mark.clause("CLI-825")
    def test_a_permitted_operation_needs_the_right_way_to_sign_in(self, counter):
        counter.code(CODE.replace('contract="orders/v1"', 'profiles=["other"]'))
        error = counter.refused("orders.show", {"number": "1"})
        assert (failure_of(error)[:2], counter.paths) == (("not_granted", "admission"), [])

    @pytest.mark.clause("CLI-589", "CLI-802")
    def test_what_was_revoked_while_the_program_started_is_not_asked(self, counter):
        counter.ask("anything")
        counter.stop()
        place = counter.headwater.place / "connector"
        slow = "while not pathlib.Path(__file__).with_name('go').exists(): time.sleep(0.01)\n"
        counter.code(
            CODE.replace("\nORDER =", f"\nif pathlib.Path(__file__).with_name('slow').exists():\n    {slow}\nORDER =")
        )
        counter.type("operations", "list", "shop/me")
        counter.stop()
        (place / "slow").touch()
        asked = aside(lambda: counter.refused("orders.show", {"number": "1"}))
        until(lambda: counter.runs and counter.status()["state"] == "starting")
        counter.host.connecting.revoke(SELECTION, None, "1")
        (place / "go").touch()
        assert failure_of(asked())[:2] == ("revoked", "admission")
        assert (counter.paths, len(counter.journal())) == ([], 1)

    @pytest.mark.clause("CLI-567")
    def test_code_that_says_something_else_by_now_is_not_run(self, counter):
        """The next one who asks is told by what it says now."""
        text = counter.headwater.place / "connector" / "text"
        text.write_text("One order.")
        read = 'description=pathlib.Path(__file__).with_name("text").read_text()'
        counter.code(CODE.replace('description="One order."', read))
        counter.type("operations", "list", "shop/me")
        counter.stop()
        text.write_text("An order.")
        counter.replies["/orders/1"] = Reply(body={"number": "1"})
        error = counter.refused("orders.show", {"number": "1"})
        assert (error.code, counter.paths) == ("stale_description", [])
        assert counter.ask("orders.show", {"number": "1"})["result"] == {"number": "1"}

    @pytest.mark.clause("CLI-567")
    def test_the_owner_runs_nothing_that_was_described_otherwise(self, counter):
        """Also where the program was replaced after the last look at its description."""
        counter.ask("anything")
        envelope = of_credential(Credential(Envelope(Secret(TOKEN))))
        question = {"instance_id": "shop.me", "within": 10, "resumes": True, "credential": envelope}
        with pytest.raises(HeadwaterError) as refusal:
            ask(counter.place, "operate", operation="anything", revision="0" * 64, **question)
        assert (refusal.value.code, counter.paths) == ("stale_description", [])

    @pytest.mark.clause("CLI-814", "CLI-829")
    def test_one_that_was_stopped_is_resumed_by_what_is_admitted_alone(self, counter):
        counter.ask("anything")
        records = OwnerRecords(counter.headwater.state / "headwater.db", os.geteuid())
        records.suppress("shop.me", suppressed=True)
        for words in (
            ("operations", "list", "shop/me"),
            ("invoke", "shop", "orders.cancel", "--input-json", '{"number":"1"}'),
        ):
            counter.type(*words)
            assert records.is_suppressed("shop.me")
        counter.ask("anything")
        assert not records.is_suppressed("shop.me")


class TestDeadlines:
    @pytest.mark.clause("CLI-925", "CLI-927")
    def test_code_that_does_not_answer_in_time_is_ended(self, counter):
        counter.ask("anything")
        first = counter.status()["child_incarnation"]
        began = time.monotonic()
        error = counter.refused("anything", {"wait": 60}, seconds=1.5)
        assert failure_of(error) == ("timeout", "dispatch", "retry_explicitly", None)
        assert time.monotonic() - began < 10
        assert counter.ask("anything", {"a": 1})["result"] == {"a": 1}
        assert counter.status()["child_incarnation"] != first

    @pytest.mark.clause("CLI-927")
    def test_one_whose_turn_does_not_come_is_not_asked(self, counter):
        counter.ask("anything")
        slow = aside(lambda: counter.ask("anything", {"wait": 4}))
        until(lambda: "/began" in counter.paths)
        error = counter.refused("anything", {"wait": 0}, seconds=1)
        assert (failure_of(error)[:2], counter.paths) == (("timeout", "admission"), ["/began"])
        assert slow()["result"] == {"wait": 4}

    @pytest.mark.clause("CLI-928")
    def test_an_owner_that_dies_leaves_it_open_what_came_of_it(self, counter):
        counter.ask("anything")
        asked = aside(lambda: counter.refused("anything", {"wait": 60}))
        until(lambda: "/began" in counter.paths)
        counter.kill()
        error = asked()
        assert failure_of(error)[:3] == ("outcome_unknown", "dispatch", "retry_status")
        assert counter.journal()[-1]["outcome"] == "outcome_unknown"
        assert counter.ask("anything", {"a": 1})["result"] == {"a": 1}
