"""How a write fails: what is known of its effect, who refused, and what may be done next."""

import asyncio
import threading
from itertools import product
from typing import get_args

import apsw
import pytest
from msgspec.structs import replace
from operate.desk import SELECTION
from signin.provider import Reply
from writes.shop import OPERATIONS, SHIP, told
from writes.signing import proof_at

from headwater import clock, limits
from headwater.codes import CODES
from headwater.errors import HeadwaterError, refuse
from headwater.operate.writes.model import Classification, Mutation
from headwater.operate.writes.outcome import as_write
from headwater.store.sqlite.connections import opened

WHY = {"message": "because of the weather"}


def refusing(status, method="POST", **headers):
    """Answer each request of a method with a status and a reason."""
    return lambda asked: Reply(status=status, body=WHY, headers=headers) if asked.method == method else None


class TestTheCommit:
    @pytest.mark.clause(
        "CLI-712", "CLI-714", "CLI-715", "CLI-716", "CLI-718", "CLI-721", "CLI-724", "CLI-732", "CLI-1112"
    )
    @pytest.mark.parametrize(
        ("status", "code", "service_code", "step"),
        [
            (400, "service_failure", "invalid_input", "retry_status"),
            (401, "service_failure", "unauthorized", "retry_status"),
            (403, "forbidden", None, "request_permission"),
            (404, "service_failure", "not_found", "none"),
            (405, "forbidden", None, "request_permission"),
            (409, "service_failure", "conflict", "retry_status"),
            (410, "service_failure", "not_found", "none"),
            (412, "service_failure", "invalid_input", "retry_status"),
            (415, "forbidden", None, "request_permission"),
            (422, "service_failure", "invalid_input", "retry_status"),
        ],
    )
    def test_what_the_service_refuses_was_not_done(self, shop, status, code, service_code, step):
        shop.instead = refusing(status)
        error = shop.unwritten()
        assert told(error) == (code, "dispatch", step, "refused")
        assert error.data.get("service_code") == service_code
        assert "service_reason" not in error.data
        assert shop.changes == ["POST /orders/7/cancel"]
        assert shop.states() == [("failed", "refused")]

    @pytest.mark.clause("CLI-722", "CLI-726", "CLI-732")
    @pytest.mark.parametrize("status", [302, 408, 418, 429, 500, 502, 503])
    def test_of_every_other_answer_nobody_knows(self, shop, status):
        shop.instead = refusing(status, **{"Retry-After": "1"})
        error = shop.unwritten()
        assert told(error) == ("outcome_unknown", "dispatch", "retry_status", "unknown")
        assert error.data["mutation"]["cause"]["stage"] == "response"
        assert error.data.keys().isdisjoint({"retry_after_seconds", "service_reason"})
        assert len(shop.changes) == 1

    @pytest.mark.clause("CLI-722", "CLI-584")
    @pytest.mark.parametrize("way", ["dropped", "cut", "late"])
    def test_an_answer_that_never_came_whole_leaves_it_unknown(self, shop, way):
        held = threading.Event()

        def instead(asked):
            if asked.method == "GET":
                return None
            if way == "late":
                held.wait(5)
            return Reply(body={}, cut=way == "cut", dropped=way == "dropped")

        shop.instead = instead
        proof = shop.approve()
        error = shop.unwritten(proof=proof, seconds=0.6 if way == "late" else 10)
        held.set()
        assert told(error) == ("outcome_unknown", "dispatch", "retry_status", "unknown")
        assert error.data["mutation"]["cause"]["code"] in ("timeout", "unavailable", "upstream_protocol")
        assert len(shop.changes) == 1

    def test_what_was_done_and_cannot_be_told_is_applied(self, shop):
        shop.instead = lambda asked: Reply(body=b"no json") if asked.method == "POST" else None
        error = shop.unwritten()
        assert told(error) == ("service_failure", "dispatch", "retry_status", "applied")
        assert error.data["service_code"] == "upstream_protocol"
        assert shop.states() == [("completed", "applied")]

    @pytest.mark.clause("CLI-713")
    def test_a_service_that_cannot_be_reached_was_not_attempted(self, shop):
        proof = shop.approve()
        shop.shut()
        error = shop.unwritten(proof=proof)
        assert told(error) == ("unavailable", "admission", "retry_status", "not_attempted")
        assert shop.states() == [("failed", "not_attempted")]

    @pytest.mark.clause("CLI-732")
    @pytest.mark.parametrize("operation", ["orders.ship", "orders.drop"])
    def test_a_postflight_that_does_not_hold_leaves_it_unknown(self, shop, operation):
        shop.instead = lambda asked: None if asked.method == "GET" else Reply(status=204)
        error = shop.unwritten(operation, SHIP if operation == "orders.ship" else None)
        assert told(error) == ("outcome_unknown", "dispatch", "retry_status", "unknown")
        assert error.data["mutation"]["cause"] == {"code": "upstream_protocol", "stage": "observation"}

    def test_a_postflight_that_wants_it_gone_holds_when_it_is(self, shop):
        assert shop.write("orders.drop")["mutation"]["classification"] == "applied"
        assert shop.orders == {}


class TestThePreflight:
    @pytest.mark.clause("CLI-717", "CLI-724")
    @pytest.mark.parametrize(
        ("status", "code", "service_code", "step"),
        [
            (401, "service_failure", "unauthorized", "retry_status"),
            (403, "forbidden", None, "request_permission"),
            (404, "service_failure", "not_found", "none"),
            (429, "service_failure", "rate_limited", "retry_status"),
            (503, "service_failure", "unavailable", "retry_status"),
        ],
    )
    def test_what_the_service_answers_to_it_forbids_the_write(self, shop, status, code, service_code, step):
        shop.instead = refusing(status, "GET", **{"Retry-After": "0"})
        error = shop.unwritten("orders.ship", SHIP)
        assert told(error) == (code, "dispatch", step, "not_attempted")
        assert error.data.get("service_code") == service_code
        assert "retry_after_seconds" not in error.data
        assert (shop.changes, shop.states(), len(shop.paths)) == ([], [], 1)

    @pytest.mark.clause("CLI-717")
    @pytest.mark.parametrize("code", ["timeout", "capacity"])
    def test_after_one_that_is_late_or_too_large_it_may_be_asked_again(self, shop, code):
        held = threading.Event()

        def instead(asked):
            if code == "timeout":
                held.wait(5)
            return Reply(body=b"[" + b" " * limits.RESULT_BYTES + b"]")

        shop.instead = instead
        error = shop.unwritten("orders.ship", SHIP, seconds=0.6 if code == "timeout" else 20)
        held.set()
        assert told(error) == (code, "dispatch", "retry_explicitly", "not_attempted")
        assert shop.changes == []

    @pytest.mark.clause("CLI-719", "CLI-733")
    def test_what_was_changed_meanwhile_is_a_conflict_and_not_sent(self, shop):
        shop.orders["7"]["etag"] = "v2"
        error = shop.unwritten("orders.ship", SHIP)
        assert told(error) == ("service_failure", "admission", "retry_status", "not_attempted")
        assert error.data["service_code"] == "conflict"
        assert error.data["mutation"]["cause"] == {"code": "service_failure", "stage": "preflight"}
        assert (shop.changes, shop.states()) == ([], [])

    def test_another_difference_is_no_conflict(self, shop):
        shop.orders["7"]["state"] = "sent"
        error = shop.unwritten("orders.ship", SHIP)
        assert told(error) == ("lifecycle_conflict", "admission", "retry_status", "not_attempted")
        assert shop.changes == []

    def test_an_approval_is_not_spent_by_a_preflight_that_forbids_it(self, shop):
        proof = shop.approve("orders.ship", SHIP)
        shop.orders["7"]["state"] = "held"
        shop.unwritten("orders.ship", SHIP, proof=proof)
        shop.orders["7"]["state"] = "open"
        assert shop.write("orders.ship", SHIP, proof=proof)["mutation"]["classification"] == "applied"


class TestTheHost:
    @pytest.mark.clause("CLI-713", "CLI-721")
    def test_a_deadline_that_is_over_before_anything_was_sent(self, shop):
        proof = shop.approve()
        error = shop.unwritten(proof=proof, seconds=0.0001)
        assert told(error) == ("timeout", "admission", "retry_status", "not_attempted")
        assert shop.changes == []

    @pytest.mark.clause("CLI-713", "CLI-721")
    def test_a_deadline_that_passes_while_the_database_is_busy(self, shop):
        """Somebody holds the database from the last look on, and lets go behind the deadline."""
        proof = shop.approve("orders.ship", SHIP)
        database = apsw.Connection(str(shop.database))

        def let_go():
            database.execute("COMMIT")
            database.close()

        def instead(asked):
            if len(shop.paths) == 2:
                database.execute("BEGIN IMMEDIATE")
                threading.Timer(1.5, let_go).start()

        shop.instead = instead
        error = shop.unwritten("orders.ship", SHIP, proof=proof, seconds=1)
        assert told(error) == ("timeout", "admission", "retry_status", "not_attempted")
        assert shop.states() == [("aborted", "not_attempted")]
        assert shop.changes == []

    @pytest.mark.clause("CLI-713", "CLI-330")
    @pytest.mark.parametrize(
        ("change", "code"),
        [
            ("revoke", "revoked"),
            ("policy", "approval_refused"),
            ("key", "approval_refused"),
            ("definition", "stale_description"),
            ("configuration", "lifecycle_conflict"),
        ],
    )
    def test_what_changes_behind_the_preflight_stops_the_write(self, shop, change, code):
        def meanwhile(asked):
            host = shop.host
            if change == "revoke":
                host.connecting.revoke(SELECTION, None, "1")
            elif change == "policy":
                host.approving.policy_set(SELECTION, (), "1")
            elif change == "key":
                seen = host.approval_keys.status()["issuer"]
                asyncio.run(host.approval_keys.revoke(str(seen["revision"]), seen["keys"][0]["key_id"]))
            elif change == "definition":
                shop.define(OPERATIONS.replace("One order.", "An order."))
            else:
                permissions = (
                    'permissions = { profiles = ["api_token"], operations = ["orders.show", "orders.ship"] }\n'
                )
                shop.configure(permissions)

        proof = shop.approve("orders.ship", SHIP)
        shop.instead = lambda asked: meanwhile(asked) if len(shop.paths) == 2 else None
        error = shop.unwritten("orders.ship", SHIP, proof=proof)
        assert told(error) == (code, "admission", "retry_status", "not_attempted")
        assert shop.changes == []
        assert shop.states() == [("aborted", "not_attempted")]

    @pytest.mark.clause("CLI-710")
    def test_a_connection_of_an_earlier_configuration_cannot_be_approved_with(self, shop):
        with opened(shop.database) as registry:
            now = registry.held(shop.host.connecting.target(SELECTION).owner, "shop.me")[0]
            binding = replace(now.binding, credential_revision=None, configuration_revision="0" * 64)
            assert registry.publish(now, replace(now, binding=binding), 0)
        with pytest.raises(HeadwaterError) as caught:
            shop.host.approving.prepare(SELECTION, "orders.cancel", (None, None), now.reference, {"number": "7"})
        error = caught.value
        assert (error.code, error.stage, error.next_action) == (
            "lifecycle_conflict", "admission", "revalidate_connection"
        )  # fmt: skip

    @pytest.mark.clause("CLI-727")
    def test_after_a_change_of_the_program_alone_it_is_checked_once_and_then_written(self, shop):
        with opened(shop.database) as registry:
            now = registry.held(shop.host.connecting.target(SELECTION).owner, "shop.me")[0]
            assert registry.publish(now, replace(now, binding=replace(now.binding, executable="another")), 0)
        before = len(shop.running.asked)
        assert shop.write()["mutation"]["classification"] == "applied"
        assert [asked.path for asked in shop.running.asked[before:]] == ["/whoami", "/orders/7/cancel"]

    @pytest.mark.clause("CLI-725")
    def test_a_conflict_of_what_is_kept_follows_the_rule_of_writes(self, shop):
        """Another command publishes the connection while its lapsed check is made anew."""
        proof = shop.approve()
        shop.lapse()
        answer, owner = shop.answer, shop.host.connecting.target(SELECTION).owner

        def meanwhile(asked):
            with opened(shop.database) as registry:
                now = registry.held(owner, "shop.me")[0]
                assert registry.publish(now, now, 0)
            return answer(asked)

        shop.running.answer = meanwhile
        error = shop.unwritten(proof=proof)
        assert told(error) == ("revision_conflict", "admission", "retry_status", "not_attempted")
        assert shop.changes == []

    @pytest.mark.clause("CLI-713", "CLI-728")
    def test_an_approval_whose_time_is_over_by_the_time_of_sending(self, shop):
        """It had a few seconds left, and the looks before the write took longer."""
        proof = proof_at(shop, clock.millis() - 292_000, "orders.ship", SHIP)
        held = threading.Event()
        shop.instead = lambda asked: held.wait(4) or None if len(shop.paths) == 2 else None
        error = shop.unwritten("orders.ship", SHIP, proof=proof)
        assert told(error) == ("approval_refused", "admission", "retry_status", "not_attempted")
        assert shop.changes == []

    @pytest.mark.parametrize("lost", [False, True])
    def test_what_the_journal_cannot_keep_changes_nothing_of_what_is_known(self, shop, lost):
        proof = shop.approve()

        def instead(asked):
            if asked.method == "POST":
                database = apsw.Connection(str(shop.database))
                database.execute(
                    "CREATE TRIGGER full BEFORE UPDATE ON invocations BEGIN SELECT RAISE(FAIL, 'full'); END"
                )
                database.close()
                return Reply(dropped=True) if lost else None
            return None

        shop.instead = instead
        if lost:
            error = shop.unwritten(proof=proof)
            assert told(error) == ("outcome_unknown", "dispatch", "retry_status", "unknown")
            audit = error.data["source_audit"]
        else:
            answer = shop.write(proof=proof)
            assert answer["mutation"]["classification"] == "applied"
            audit = answer["source_audit"]
        assert audit["audit_status"] == "incomplete"

    def test_what_nothing_can_be_kept_of_is_told_as_it_is(self, shop, monkeypatch):
        """Somebody holds the database from the request on, for longer than it is waited for."""
        monkeypatch.setattr(limits, "BUSY_SECONDS", 0.3)
        proof = shop.approve()
        database = apsw.Connection(str(shop.database))
        shop.instead = lambda asked: database.execute("BEGIN IMMEDIATE") and None if asked.method == "POST" else None
        error = shop.unwritten(proof=proof)
        database.execute("COMMIT")
        database.close()
        assert told(error) == ("outcome_unknown", "dispatch", "retry_status", "applied")
        assert error.data["source_audit"]["audit_status"] == "incomplete"

    def test_what_cannot_be_kept_is_told_as_not_known(self, shop):
        proof = shop.approve()

        def meanwhile(asked):
            database = apsw.Connection(str(shop.database))
            database.execute(
                "CREATE TRIGGER full BEFORE UPDATE ON attempts WHEN NEW.settled_at_ms IS NOT NULL"
                " BEGIN SELECT RAISE(FAIL, 'full'); END"
            )
            database.close()

        shop.instead = lambda asked: meanwhile(asked) if asked.method == "POST" else None
        error = shop.unwritten(proof=proof)
        assert told(error) == ("outcome_unknown", "dispatch", "retry_status", "applied")
        assert error.data["mutation"]["cause"] == {"code": "storage_failed", "stage": "attempt_store"}


@pytest.mark.clause("CLI-720")
def test_nobody_is_invited_to_send_again_what_may_have_been_done():
    """Every code, wherever it came about, with everything that may be known of a write."""
    stages = (None, "admission", "dispatch", "custody", "publication")
    services = (None, "not_found", "rate_limited", "unavailable")
    for code, stage, known, service in product(CODES, stages, get_args(Classification), services):
        error = refuse(code, stage=stage)
        if service is not None:
            error.data["service_code"] = service
        failure = as_write(error, Mutation(known))
        assert known == "not_attempted" or failure.next_action != "retry_explicitly"
        assert failure.stage in ("admission", "dispatch")
        assert failure.data["mutation"] == {"classification": known, "replayed": False}
