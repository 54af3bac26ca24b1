"""Asking a provider: what is sent, what an answer means, and what is refused before anything is sent."""

import os
import threading
import time
from decimal import Decimal

import apsw
import pytest
from msgspec.structs import replace
from operate.desk import HEAD, OPERATIONS, SELECTION, TOKEN, failure_of, whoami
from signin.provider import Reply

from headwater.store.sqlite.connections import opened
from headwater.store.sqlite.invocations import Asking, Invocations

ORDERS = "/orders"


class TestAnswers:
    @pytest.mark.clause("CLI-577", "CLI-578", "CLI-040")
    def test_a_result_is_the_bodys_json_with_its_status_and_where_it_is_from(self, desk):
        answer = desk.ask(given={"state": "open", "page": "2"})
        assert answer["connector"], answer["instance"] == ("shop", "me")
        assert answer.keys() == {"connector", "instance", "operation", "revision", "request_id", "result"}
        result = answer["result"]
        assert (result["status"], result["body"]) == (200, [{"number": "1", "item": "tea"}])
        assert result["provenance"]["instance"] == "shop.me"
        assert result["provenance"]["source_revision"] == answer["revision"]
        assert desk.paths == ["/orders?state=open&page=2"]
        assert desk.running.asked[-1].headers["authorization"] == f"Bearer {TOKEN}"

    def test_numbers_keep_their_digits(self, desk):
        desk.replies[ORDERS] = Reply(body=b"[123456789012345678901234567890, 0.12345678901234567890]")
        assert desk.ask()["result"]["body"] == [123456789012345678901234567890, Decimal("0.12345678901234567890")]

    def test_an_empty_answer_is_null_and_text_is_text(self, desk):
        desk.define(
            HEAD + '[operations.a]\ndescription = "A."\npath = "/a"\nresponse = "text"\n'
            '[operations.b]\ndescription = "B."\npath = "/b"\n'
        )
        desk.replies |= {"/a": Reply(body=b""), "/b": Reply(status=204)}
        assert desk.ask("a")["result"]["body"] == ""
        assert (desk.ask("b")["result"]["status"], desk.ask("b")["result"]["body"]) == (204, None)

    @pytest.mark.clause("CLI-919", "CLI-920", "CLI-921", "CLI-929", "CLI-935", "CLI-634")
    @pytest.mark.parametrize(
        ("statuses", "told"),
        [
            ((400, 409, 412, 422), ("service_failure", "dispatch", "none", "invalid_input")),
            ((401,), ("service_failure", "dispatch", "repair_connection", "unauthorized")),
            ((403,), ("forbidden", "dispatch", "request_permission", None)),
            ((404, 410), ("service_failure", "dispatch", "none", "not_found")),
            ((429,), ("service_failure", "dispatch", "retry_explicitly", "rate_limited")),
            ((500, 502, 503, 599), ("service_failure", "dispatch", "retry_explicitly", "unavailable")),
            ((301, 302, 307, 304, 402, 418), ("service_failure", "dispatch", "retry_explicitly", "upstream_protocol")),
        ],
    )
    def test_every_other_answer_is_a_failure_of_its_own(self, desk, statuses, told):
        for status in statuses:
            desk.replies[ORDERS] = Reply(status=status, body={"number": "secret-of-the-provider"})
            error = desk.refused()
            assert failure_of(error) == told
            assert "secret-of" not in f"{error.message}{error.data}"
            assert error.data["request_id"] == desk.journal()[-1]["request_id"]
        assert len(desk.paths) == len(statuses)

    @pytest.mark.clause("CLI-583")
    @pytest.mark.parametrize("body", [b'{"a": 1}', b"<html>", b"[1, 1] 2", b'[{"a": 1, "a": 2}]', b"\xff", b"[" * 300])
    def test_a_body_that_is_not_as_declared_is_no_result(self, desk, body):
        desk.replies[ORDERS] = Reply(body=body)
        assert failure_of(desk.refused()) == ("service_failure", "dispatch", "retry_explicitly", "upstream_protocol")

    @pytest.mark.clause("CLI-585")
    def test_an_answer_that_is_too_large_is_told_as_ours(self, desk, monkeypatch):
        monkeypatch.setattr("headwater.limits.RESULT_BYTES", 100)
        desk.replies[ORDERS] = Reply(body=b"[" + b" " * 98 + b"]")
        assert desk.ask()["result"]["body"] == []
        desk.replies[ORDERS] = Reply(body=b"[" + b" " * 99 + b"]")
        assert failure_of(desk.refused()) == ("capacity", "admission", "retry_explicitly", None)


class TestRateLimits:
    @pytest.mark.clause("CLI-1120", "CLI-1121", "CLI-1122", "CLI-1126")
    @pytest.mark.parametrize(
        ("line", "told"), [("70", 70), ("4294967295", 4294967295), ("4294967296", None), ("-1", None)]
    )
    def test_the_delay_that_a_provider_names_is_told(self, desk, line, told):
        desk.replies[ORDERS] = Reply(status=429, headers={"Retry-After": line})
        error = desk.refused()
        assert failure_of(error) == ("service_failure", "dispatch", "retry_explicitly", "rate_limited")
        assert error.data.get("retry_after_seconds") == told
        assert len(desk.paths) == 1

    @pytest.mark.clause("CLI-1120")
    def test_a_delay_beside_another_status_is_not_told(self, desk):
        desk.replies[ORDERS] = Reply(status=503, headers={"Retry-After": "7"})
        assert "retry_after_seconds" not in desk.refused().data

    @pytest.mark.clause("CLI-1123")
    @pytest.mark.parametrize(("other", "told"), [("70", 70), ("71", None), ("soon", None)])
    def test_two_lines_name_a_delay_only_where_they_agree(self, desk, other, told):
        desk.replies[ORDERS] = Reply(status=429, headers={"Retry-After": "70", "retry-after": other})
        assert desk.refused().data.get("retry_after_seconds") == told

    @pytest.mark.clause("CLI-1124")
    def test_where_there_is_the_time_it_is_asked_once_more(self, desk):
        def once(asked):
            return Reply(status=429, headers={"Retry-After": "1"}) if len(desk.paths) == 1 else Reply(body=[])

        desk.replies[ORDERS] = once
        began = time.monotonic()
        assert desk.ask()["result"]["body"] == []
        assert (len(desk.paths), time.monotonic() - began >= 1) == (2, True)

    @pytest.mark.clause("CLI-1124", "CLI-1125")
    def test_a_second_refusal_is_the_one_that_is_told(self, desk):
        desk.replies[ORDERS] = lambda asked: Reply(
            status=429, headers={"Retry-After": "0" if len(desk.paths) == 1 else "9"}
        )
        assert desk.refused().data["retry_after_seconds"] == 9
        assert len(desk.paths) == 2

    @pytest.mark.clause("CLI-1124")
    def test_it_is_not_asked_again_without_the_time_for_it(self, desk):
        desk.replies[ORDERS] = Reply(status=429, headers={"Retry-After": "1"})
        assert desk.refused(seconds=1.4).data["retry_after_seconds"] == 1
        assert len(desk.paths) == 1

    @pytest.mark.clause("CLI-1124")
    def test_the_time_for_it_is_that_of_the_first(self, desk):
        def slowly(asked):
            threading.Event().wait(1.2)
            return Reply(status=429, headers={"Retry-After": "0"})

        desk.replies[ORDERS] = slowly
        assert desk.refused(seconds=2.2).data["retry_after_seconds"] == 0
        assert len(desk.paths) == 1

    @pytest.mark.clause("CLI-1125")
    def test_a_second_answer_that_does_not_come_leaves_the_first(self, desk):
        gone = threading.Event()

        def answer(asked):
            if len(desk.paths) == 1:
                return Reply(status=429, headers={"Retry-After": "0"})
            gone.wait(20)
            return Reply()

        desk.replies[ORDERS] = answer
        error = desk.refused(seconds=2)
        gone.set()
        assert (error.data["service_code"], error.data["retry_after_seconds"]) == ("rate_limited", 0)

    @pytest.mark.clause("CLI-589", "CLI-1124")
    @pytest.mark.parametrize("change", [{"lifecycle": "revoked"}, {"lifecycle": "stale"}, {"generation": 2}])
    def test_it_is_not_asked_again_by_a_connection_that_changed_meanwhile(self, desk, change):
        def answer(asked):
            if len(desk.paths) == 1:
                with opened(desk.headwater.state / "headwater.db") as registry:
                    now = registry.held(os.geteuid(), "shop.me")[0]
                    assert registry.publish(now, replace(now, **change), 0)
            return Reply(status=429, headers={"Retry-After": "0"})

        desk.replies[ORDERS] = answer
        assert desk.refused().data["service_code"] == "rate_limited"
        assert len(desk.paths) == 1


class TestNoAnswer:
    @pytest.mark.clause("CLI-926")
    def test_a_connection_that_does_not_open_is_no_answer_of_the_provider(self, desk):
        desk.shut()
        assert failure_of(desk.refused()) == ("unavailable", "admission", "retry_explicitly", None)

    @pytest.mark.clause("CLI-926", "CLI-927")
    def test_a_deadline_after_the_request_left_is_the_providers(self, desk):
        gone = threading.Event()
        desk.replies[ORDERS] = lambda asked: (gone.wait(20), Reply())[1]
        error = desk.refused(seconds=1)
        gone.set()
        assert failure_of(error) == ("timeout", "dispatch", "retry_explicitly", None)
        assert desk.journal()[-1]["outcome"] == "timeout"

    @pytest.mark.clause("CLI-927")
    def test_a_deadline_before_anything_left_is_ours_and_nothing_leaves_later(self, desk):
        gone = threading.Event()
        desk.lapse()
        desk.replies["/whoami"] = lambda asked: (gone.wait(20), Reply())[1]
        error = desk.refused(seconds=1)
        gone.set()
        assert failure_of(error) == ("timeout", "admission", "retry_explicitly", None)
        assert (desk.paths, desk.journal()) == ([], [])


class TestInputs:
    @pytest.mark.clause("CLI-570", "CLI-021", "CLI-579")
    @pytest.mark.parametrize(
        "given",
        [
            [],
            "{}",
            None,
            {"other": 1},
            {"state": "gone"},
            {"page": 0},
            {"page": 10},
            {"page": "0"},
            {"page": "10"},
            {"page": "1.5"},
            {"page": "1 "},
            {"page": 1.5},
            {"page": True},
            {"page": [1]},
        ],
    )
    def test_what_the_operation_does_not_take_is_refused_and_not_sent(self, desk, given):
        error = desk.refused("orders.list", [] if given is None else given)
        assert (failure_of(error), error.data["field"]) == (("invalid_input", "arguments", "none", None), "input")
        assert (desk.paths, desk.journal()) == ([], [])

    @pytest.mark.parametrize(
        ("number", "path"),
        [
            ("1", "1"),
            ("a/b", "a%2Fb"),
            ("..%2f", "..%252f"),
            ("a?b#c", "a%3Fb%23c"),
            ("é \u0001", "%C3%A9%20%01"),
            ("...", "..."),
        ],
    )
    def test_text_in_the_path_is_one_segment_of_it(self, desk, number, path):
        desk.ask("orders.show", {"number": number})
        assert desk.paths == [f"/orders/{path}"]

    @pytest.mark.parametrize("asked", [{"text": "x" * 60_000}, {"size": Decimal("1e999999999")}])
    def test_what_is_longer_than_a_request_is_refused_and_not_sent(self, desk, asked):
        row = '[operations.a]\ndescription = "A."\npath = "/a"\nparams.text = {}\nparams.size = { type = "number" }\n'
        desk.define(HEAD + row)
        assert failure_of(desk.refused("a", asked)) == ("invalid_input", "arguments", "none", None)
        assert (desk.paths, desk.journal()) == ([], [])

    def test_a_refusal_says_which_members_and_nothing_that_was_given(self, desk):
        error = desk.refused("orders.list", {"page": "sentinel", "state": "x", "sentinel": 1})
        assert "takes: state does not fit, page does not fit;" in error.message
        assert "sentinel" not in error.message
        assert "number is missing" in desk.refused("orders.show", {"sentinel": 1}).message

    @pytest.mark.parametrize("number", ["", ".", "..", 1])
    def test_a_segment_that_would_be_another_path_is_refused(self, desk, number):
        assert desk.refused("orders.show", {"number": number}).code == "invalid_input"
        assert desk.paths == []

    @pytest.mark.clause("CLI-021")
    def test_an_input_of_more_than_64_levels_is_refused_by_us(self, desk):
        body = 'params = {}\nbody = { type = "object" }\nmethod = "POST"\nreviewed_read = true\n'
        desk.define(HEAD + f'[operations.search]\ndescription = "Search."\npath = "/search"\n{body}')

        def nested(levels):
            value = {}
            for _ in range(levels - 1):
                value = {"body": value}
            return value

        desk.ask("search", nested(64))
        assert desk.refused("search", nested(65)).data["field"] == "input"
        assert desk.paths == ["/search"]


class TestAdmission:
    @pytest.mark.clause("CLI-580", "CLI-581", "CLI-917", "CLI-912")
    def test_what_is_not_there_is_not_found_and_what_is_not_permitted_forbidden(self, desk):
        desk.configure('permissions = { profiles = ["api_token"], operations = ["orders.show"] }\n')
        assert failure_of(desk.refused("orders.gone")) == ("not_found", "admission", "check_configuration", None)
        assert failure_of(desk.refused("orders.list")) == ("forbidden", "admission", "request_permission", None)
        assert desk.paths == []

    def test_without_permissions_everything_is_permitted_and_a_write_still_needs_an_approval(self, desk):
        assert desk.refused("orders.cancel", {"number": "1"}).code == "approval_required"
        desk.configure('permissions = { profiles = ["api_token"], operations = ["orders.list"] }\n')
        assert desk.refused("orders.cancel", {"number": "1"}).code == "forbidden"

    @pytest.mark.clause("CLI-574")
    def test_a_write_needs_an_approval_before_anything_is_sent(self, desk):
        desk.configure('permissions = { profiles = ["api_token"], operations = ["orders.cancel"] }\n')
        error = desk.refused("orders.cancel", {"number": "1"})
        assert failure_of(error) == ("approval_required", "admission", "none", None)
        assert error.data["approval_steps"] == ["approvals prepare", "approvals clock-check", "approvals issue"]
        assert desk.paths == []

    @pytest.mark.clause("CLI-567")
    @pytest.mark.parametrize("pin", ["schema", "revision"])
    def test_a_pin_that_differs_is_stale(self, desk, pin):
        answer = desk.host.operating.aimed("shop", "orders.list").describe()
        desk.ask(schema=answer["schema"], revision=answer["revision"])
        error = desk.refused(**{pin: "0" * 64})
        assert failure_of(error) == ("stale_description", "observation", "refresh_description", None)
        assert len(desk.paths) == 1

    @pytest.mark.clause("CLI-589", "CLI-590", "CLI-802")
    @pytest.mark.parametrize("change", ["revoke", "permissions", "definition", "configuration"])
    def test_what_changed_between_admission_and_sending_stops_the_request(self, desk, change):
        desk.lapse()

        def meanwhile(asked):
            if change == "revoke":
                desk.host.connecting.revoke(SELECTION, None, "1")
            elif change == "permissions":
                desk.configure('permissions = { profiles = ["api_token"], operations = ["orders.show"] }\n')
            elif change == "definition":
                desk.define(OPERATIONS.replace("What was ordered", "What anybody ordered"))
            else:
                desk.configure('permissions = { profiles = ["api_token"], operations = ["orders.list"] }\n')
            return whoami(asked)

        desk.replies["/whoami"] = meanwhile
        error = desk.refused()
        codes = {"revoke": "revoked", "permissions": "forbidden", "definition": "stale_description"}
        assert error.code == codes.get(change, "lifecycle_conflict")
        assert (desk.paths, desk.journal()) == ([], [])

    @pytest.mark.clause("CLI-825")
    def test_a_permitted_operation_needs_what_the_credential_was_granted(self, desk):
        desk.define(OPERATIONS.replace('path = "/orders"', 'path = "/orders"\nprofiles = ["other"]', 1))
        assert failure_of(desk.refused()) == ("not_granted", "admission", "repair_connection", None)
        assert desk.paths == []


class TestConnections:
    @pytest.mark.clause("CLI-562", "CLI-565")
    def test_an_instance_without_a_connection_says_to_make_one(self, unconnected):
        error = unconnected.refused()
        assert failure_of(error) == ("connection_unresolved", "admission", "create_connection", None)
        assert error.data["connections"] == []
        assert error.command == "headwater connections connect shop/me --credential-prompt"

    @pytest.mark.clause("CLI-561")
    def test_a_connection_of_another_instance_is_not_found(self, desk):
        with opened(desk.headwater.state / "headwater.db") as registry:
            reference = registry.held(os.geteuid(), "shop.me")[0].reference
        assert desk.ask(connection=reference)["result"]["status"] == 200
        database = apsw.Connection(str(desk.headwater.state / "headwater.db"))
        database.execute("UPDATE connections SET instance_id = 'shop.you' WHERE reference = ?", (reference,))
        database.close()
        asked = len(desk.running.asked)
        assert desk.refused(connection=reference).code == "not_found"
        assert len(desk.running.asked) == asked

    @pytest.mark.clause("CLI-559")
    def test_a_connection_whose_check_lapsed_is_checked_again_and_used(self, desk):
        desk.lapse()
        asked = len(desk.running.asked)
        desk.ask()
        assert [one.path for one in desk.running.asked[asked:]] == ["/whoami", "/orders"]

    @pytest.mark.clause("CLI-564", "CLI-565")
    def test_of_several_that_are_ready_one_has_to_be_named(self, desk):
        desk.another_connection()
        error = desk.refused()
        assert failure_of(error) == ("connection_unresolved", "admission", "none", None)
        assert [row["state"] for row in error.data["connections"]] == ["ready", "ready"]
        desk.lapse()
        assert (
            desk.refused().code == "custody_unavailable"
        )  # the one that is ready was chosen; custody lacks the copy's

    @pytest.mark.clause("CLI-561", "CLI-563")
    def test_a_named_connection_is_the_one_that_is_used(self, desk):
        reference = desk.host.connecting.list_(SELECTION, 5, None)["connections"][0]["connection"]
        assert desk.ask(connection=reference)["result"]["status"] == 200
        assert failure_of(desk.refused(connection="connection_other"))[:2] == ("not_found", "admission")
        desk.host.connecting.revoke(SELECTION, None, "1")
        assert desk.refused(connection=reference).code == "revoked"
        assert desk.refused().data["connections"] == []

    @pytest.mark.clause("CLI-563", "CLI-565")
    def test_a_connection_that_is_cut_off_says_to_repair_it(self, desk):
        from headwater.connect.using import refused

        with opened(desk.headwater.state / "headwater.db") as registry:
            (connection,) = registry.held(os.geteuid(), "shop.me")
            refused(registry, connection)
        error = desk.refused()
        assert failure_of(error) == ("connection_unresolved", "admission", "repair_connection", None)
        states = [{"connection": connection.reference, "state": "reauthorization_required"}]
        assert error.data["connections"] == states


class TestJournal:
    @pytest.mark.clause("CLI-653")
    def test_each_request_is_noted_before_it_leaves_and_when_it_is_over(self, desk):
        seen = []
        desk.replies[ORDERS] = lambda asked: (seen.append(desk.journal()), Reply(body=[]))[1]
        desk.ask(given={"state": "open"})
        ((during,),), (after,) = seen, desk.journal()
        assert (during["outcome"], after["outcome"]) == (None, "succeeded")
        assert (after["operation"], after["effect"]) == ("orders.list", "read")
        assert "open" not in str(after)

    def test_the_newest_are_kept(self, desk, monkeypatch):
        monkeypatch.setattr("headwater.limits.INVOCATIONS_KEPT", 2)
        ids = [desk.ask()["request_id"] for _ in range(4)]
        assert [row["request_id"] for row in desk.journal()] == ids[-2:]

    def test_a_write_is_never_forgotten_for_reads(self, desk, monkeypatch):
        monkeypatch.setattr("headwater.limits.INVOCATIONS_KEPT", 2)
        asking = Asking(os.geteuid(), "shop.me", "shop", "me")
        journal = Invocations(desk.headwater.state / "headwater.db", asking)
        written = journal.dispatched("connection_1", "orders.cancel", "r", "write")
        journal.answered(written, "succeeded", at_once=True)
        journal.close()
        ids = [desk.ask()["request_id"] for _ in range(4)]
        assert [row["request_id"] for row in desk.journal()] == [written, *ids[-2:]]
