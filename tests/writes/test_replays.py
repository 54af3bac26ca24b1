"""The same write asked again with the same key: told again, and not done again."""

import pytest
from operate.desk import SELECTION
from signin.provider import Reply
from writes.shop import told

from headwater import clock, limits
from headwater.store.sqlite.database import open_database

KEY = b"order-of-anna"


@pytest.mark.clause("CLI-723")
def test_what_was_done_is_told_again_without_approval_or_request(shop):
    proof = shop.approve()
    first = shop.write(proof=proof, key=KEY)
    asked = len(shop.running.asked)
    shop.shut()
    again = shop.write(proof=proof, key=KEY)
    assert again["result"] == first["result"]
    assert again["mutation"] == {
        **first["mutation"], "replayed": True, "original_request_id": first["request_id"]
    }  # fmt: skip
    assert len(shop.running.asked) == asked


@pytest.mark.clause("CLI-723")
@pytest.mark.parametrize("status", [401, 403, 404, 409, 422, 503])
def test_a_failure_is_told_again_as_it_was(shop, status):
    shop.instead = lambda asked: Reply(status=status) if asked.method == "POST" else None
    proof = shop.approve()
    first = shop.unwritten(proof=proof, key=KEY)
    again = shop.unwritten(proof=proof, key=KEY)
    assert told(again) == told(first)
    assert again.data.get("service_code") == first.data.get("service_code")
    assert again.data["mutation"]["replayed"]
    assert len(shop.changes) == 1


@pytest.mark.clause("CLI-723")
def test_a_failure_of_which_no_origin_was_kept_is_the_hosts(shop):
    shop.instead = lambda asked: Reply(status=403) if asked.method == "POST" else None
    proof = shop.approve()
    shop.unwritten(proof=proof, key=KEY)
    database = open_database(shop.database)
    database.execute('UPDATE attempts SET failure = \'{"code":"forbidden"}\'')
    database.close()
    again = shop.unwritten(proof=proof, key=KEY)
    assert told(again) == ("forbidden", "admission", "retry_status", "refused")


def test_a_key_of_a_connection_that_was_revoked_since_is_a_conflict(shop):
    """Another connection of the same account, or none: the key does not stand for that."""
    proof = shop.approve()
    shop.write(proof=proof, key=KEY)
    shop.host.connecting.revoke(SELECTION, None, "1")
    for is_connected in (False, True):
        if is_connected:
            shop.connect()
        error = shop.unwritten(proof=proof, key=KEY)
        assert error.code == "idempotency_conflict"
        assert "or for this one before its connection" in error.message
    assert len(shop.changes) == 1


def test_a_key_of_something_else_is_a_conflict(shop):
    shop.write(key=KEY)
    shop.orders["8"] = {"state": "open", "etag": "v1"}
    error = shop.unwritten("orders.cancel", {"number": "8"}, key=KEY)
    assert told(error) == ("idempotency_conflict", "admission", "retry_status", "not_attempted")
    assert len(shop.changes) == 1


@pytest.mark.parametrize(("older_by", "is_done_again"), [(-60, False), (60, True)])
def test_a_key_counts_for_a_day(shop, older_by, is_done_again):
    shop.write(key=KEY)
    settled = clock.millis() - (limits.REPLAY_SECONDS + older_by) * 1000
    database = open_database(shop.database)
    database.execute("UPDATE attempts SET settled_at_ms = ?", (settled,))
    database.close()
    assert shop.write(key=KEY)["mutation"]["replayed"] is not is_done_again
    kept = shop.rows("SELECT result IS NULL FROM attempts ORDER BY number")
    assert kept == ([(1,), (0,)] if is_done_again else [(0,)])


@pytest.mark.clause("CLI-584")
def test_what_is_unknown_keeps_its_key_for_good(shop):
    shop.instead = lambda asked: Reply(dropped=True) if asked.method == "POST" else None
    shop.unwritten(key=KEY)
    database = open_database(shop.database)
    database.execute("UPDATE attempts SET settled_at_ms = 1")
    database.close()
    again = shop.unwritten(key=KEY)
    assert told(again) == ("outcome_unknown", "dispatch", "retry_status", "unknown")
    assert len(shop.changes) == 1


def test_what_a_preflight_forbade_took_no_key(shop):
    del shop.orders["7"]
    shop.unwritten("orders.cancel", {"number": "7"}, key=b"other")
    error = shop.unwritten("orders.ship", {"number": "7", "etag": "v1", "body": {"state": "sent"}}, key=KEY)
    assert told(error)[3] == "not_attempted"
    assert shop.rows("SELECT count(*) FROM attempts WHERE key IS NOT NULL") == [(1,)]


@pytest.mark.parametrize("key", [b"", b"k" * 257])
def test_a_key_is_1_to_256_bytes(shop, key):
    from headwater.errors import HeadwaterError
    from headwater.operate.writes.subject import key_digest

    with pytest.raises(HeadwaterError) as caught:
        key_digest(key)
    assert caught.value.data == {"field": "idempotency_key"}
    assert len(key_digest(b"\0" * 256)) == 64


def test_without_a_key_nothing_of_an_answer_is_kept(shop):
    shop.write()
    assert shop.rows("SELECT result, key FROM attempts") == [(None, None)]
