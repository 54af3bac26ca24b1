"""A write with its approval, done by a real shop: once, or not, or nobody knows."""

import pytest
from signin.provider import Reply
from writes.shop import SHIP, told

from headwater.errors import HeadwaterError


@pytest.mark.clause("CLI-700", "CLI-729")
def test_a_write_with_its_approval_is_done_and_told(shop):
    answer = shop.write()
    assert shop.changes == ["POST /orders/7/cancel"]
    assert answer["result"]["body"] == {"state": "cancelled", "etag": "v2"}
    assert answer["mutation"]["classification"] == "applied"
    assert shop.states() == [("completed", "applied")]
    assert answer["source_audit"] == {
        "instance": "shop.me", "audit_ref": answer["request_id"], "audit_status": "complete"
    }  # fmt: skip


def test_a_guarded_write_looks_before_and_behind(shop):
    answer = shop.write("orders.ship", SHIP)
    assert answer["mutation"]["classification"] == "applied"
    assert [f"{asked.method} {asked.path}" for asked in shop.running.asked[-4:]] == [
        "GET /orders/7", "GET /orders/7", "PATCH /orders/7", "GET /orders/7"
    ]  # fmt: skip


@pytest.mark.clause("CLI-728")
def test_an_approval_is_good_for_one_use(shop):
    proof = shop.approve("orders.ship", SHIP)
    shop.write("orders.ship", SHIP, proof=proof)
    asked = len(shop.running.asked)
    again = shop.unwritten("orders.ship", SHIP, proof=proof)
    assert told(again) == ("approval_replayed", "admission", "retry_status", "not_attempted")
    assert len(shop.running.asked) == asked


def test_a_write_that_the_policy_does_not_name_cannot_be_approved(shop):
    shop.permit("orders.drop")
    with pytest.raises(HeadwaterError) as caught:
        shop.approve("orders.cancel")
    assert caught.value.code == "approval_refused"
    assert shop.approve("orders.drop") is not None


@pytest.mark.clause("CLI-722", "CLI-584", "CLI-714")
def test_a_lost_answer_leaves_it_unknown_and_is_never_sent_again(shop):
    shop.instead = lambda asked: Reply(dropped=True) if asked.method == "POST" else None
    assert told(shop.unwritten()) == ("outcome_unknown", "dispatch", "retry_status", "unknown")
    assert shop.changes == ["POST /orders/7/cancel"]
    assert shop.states() == [("indeterminate", "unknown")]
