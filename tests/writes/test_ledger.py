"""The ledger of attempts by itself: what is one transaction, and what comes before what."""

import asyncio
import os

import pytest
from msgspec.structs import replace
from operate.desk import SELECTION

from headwater.errors import HeadwaterError
from headwater.operate.writes.model import Admitted, Attempt, Cause, Told
from headwater.store.sqlite.attempts import Attempts
from headwater.store.sqlite.connections import opened

ADMITTED = Admitted(generation=1, issuer_revision=2, policy_revision=1)


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
    ledger.dispatch(attempt, ADMITTED)
    assert shop.states() == [("dispatching", "not_attempted")]
    assert refused(ledger.dispatch, attempt, ADMITTED) == "lifecycle_conflict"


@pytest.mark.clause("CLI-330")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("generation", "lifecycle_conflict"),
        ("revoked", "revoked"),
        ("gone", "revoked"),
        ("key", "approval_refused"),
        ("policy", "approval_refused"),
    ],
)
def test_an_attempt_passes_with_what_it_was_admitted_by_alone(shop, ledger, attempt, change, code):
    """Each of these may be done by another command at any time before: it is one transaction with this."""
    ledger.prepare(attempt)
    host = shop.host
    if change == "revoked":
        host.connecting.revoke(SELECTION, None, "1")
    elif change == "key":
        issuer = host.approval_keys.status()["issuer"]
        asyncio.run(host.approval_keys.revoke(str(issuer["revision"]), issuer["keys"][0]["key_id"]))
    elif change == "policy":
        host.approving.policy_set(SELECTION, (), "1")
    asked = replace(attempt, connection="connection_other") if change == "gone" else attempt
    admitted = replace(ADMITTED, generation=2) if change == "generation" else ADMITTED
    assert refused(ledger.dispatch, asked, admitted) == code
    assert shop.states() == [("prepared", "not_attempted")]


@pytest.mark.parametrize("classification", ["not_attempted", "refused", "applied", "unknown"])
def test_the_key_of_what_was_not_attempted_is_free_again(shop, ledger, attempt, classification):
    ledger.prepare(attempt)
    ledger.dispatch(attempt, ADMITTED)
    ledger.settle(replace(attempt, state="failed", classification=classification))
    assert (ledger.used("k") is None) is (classification == "not_attempted")


def test_what_is_settled_stays_as_it_is(shop, ledger, attempt):
    ledger.prepare(attempt)
    ledger.dispatch(attempt, ADMITTED)
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
    ledger.dispatch(attempt, ADMITTED)
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
