"""The ledger of attempts by itself: what is one transaction, and what comes before what."""

import os

import pytest
from msgspec.structs import replace
from operate.desk import SELECTION

from headwater.errors import HeadwaterError
from headwater.operate.writes.model import Attempt, Cause, Told
from headwater.store.sqlite.attempts import Attempts
from headwater.store.sqlite.connections import opened


@pytest.fixture
def ledger(shop):
    attempts = Attempts(shop.database, os.geteuid(), "shop.me")
    yield attempts
    attempts.close()


@pytest.fixture
def attempt(shop):
    """An attempt that was not begun."""
    with opened(shop.database) as registry:
        connection = registry.held(os.geteuid(), "shop.me")[0].reference
    names = ("shop.me", connection, "orders.cancel", "f" * 64)
    return Attempt("attempt_1", os.geteuid(), *names, "issuer", "a" * 64, "request_1", key="k")


def another(attempt: Attempt, **members) -> Attempt:
    """Return another attempt that differs in these members."""
    return replace(attempt, attempt_id="attempt_2", **members)


def refused(work, *words) -> str:
    with pytest.raises(HeadwaterError) as caught:
        work(*words)
    return caught.value.code


def test_a_proof_is_spent_with_its_attempt_and_once(shop, ledger, attempt):
    ledger.prepare(attempt)
    assert ledger.is_spent("issuer", "a" * 64)
    assert refused(ledger.prepare, another(attempt, key="k2")) == "approval_replayed"
    assert shop.states() == [("prepared", "not_attempted")]


def test_a_key_that_is_taken_spends_no_proof(shop, ledger, attempt):
    ledger.prepare(attempt)
    assert refused(ledger.prepare, another(attempt, reference="b" * 64)) == "idempotency_conflict"
    assert not ledger.is_spent("issuer", "b" * 64)
    assert len(shop.states()) == 1


def test_an_attempt_is_sent_once(shop, ledger, attempt):
    ledger.prepare(attempt)
    ledger.dispatch(attempt, 1)
    assert shop.states() == [("dispatching", "not_attempted")]
    assert refused(ledger.dispatch, attempt, 1) == "lifecycle_conflict"


@pytest.mark.parametrize(
    ("change", "code"), [("generation", "lifecycle_conflict"), ("revoked", "revoked"), ("gone", "revoked")]
)
def test_an_attempt_passes_with_the_connection_that_was_admitted_alone(shop, ledger, attempt, change, code):
    ledger.prepare(attempt)
    if change == "revoked":
        shop.host.connecting.revoke(SELECTION, None, "1")
    asked = replace(attempt, connection="connection_other") if change == "gone" else attempt
    assert refused(ledger.dispatch, asked, 2 if change == "generation" else 1) == code
    assert shop.states() == [("prepared", "not_attempted")]


def test_what_is_settled_stays_as_it_is(shop, ledger, attempt):
    ledger.prepare(attempt)
    ledger.dispatch(attempt, 1)
    told = Told("forbidden", "No.", "dispatch", "request_permission")
    cause = Cause("forbidden", "response")
    after = replace(attempt, state="failed", classification="refused", cause=cause, failure=told)
    ledger.settle(after)
    ledger.settle(replace(attempt, state="completed", classification="applied", result=b"1"))
    ledger.recover()
    assert ledger.used("k") == after
    assert shop.states() == [("failed", "refused")]


def test_what_a_process_left_is_settled_by_the_next_one(shop, ledger, attempt):
    ledger.prepare(attempt)
    ledger.prepare(another(attempt, reference="b" * 64, key="k2"))
    ledger.dispatch(attempt, 1)
    ledger.recover()
    assert shop.states() == [("indeterminate", "unknown"), ("aborted", "not_attempted")]
    assert ledger.used("k").state == "indeterminate"
    assert ledger.used("k2") is None


def test_another_instance_is_not_touched(shop, ledger, attempt):
    ledger.prepare(attempt)
    other = Attempts(shop.database, os.geteuid(), "shop.other")
    other.recover()
    assert other.used("k") is None
    other.close()
    assert shop.states() == [("prepared", "not_attempted")]
