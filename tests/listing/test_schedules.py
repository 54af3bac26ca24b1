"""Scheduled syncs: never two at once, longer apart after failures, paused while the credential is not accepted."""

import pytest

from headwater.store.locks import exclusive


def once(ada, status=0):
    """Run what is due now; return the rows of the runs."""
    return ada.type("collect", "schedule", "run", "--once", status=status)["runs"]


def standing(ada):
    (row,) = ada.type("collect", "schedule", "list")["schedules"]
    return row


@pytest.mark.clause("INT-330", "INT-337")
def test_a_schedule_waits_for_a_repair(ada, service):
    """The same run as by hand; it is tried no more while it cannot succeed, and at once when it can again."""
    ada.type("collect", "schedule", "set", "acme-tickets/me", "--every", "1h")
    tokens = set(service.tokens)
    service.tokens.clear()
    (row,) = once(ada, status=1)
    assert row["status"] == "failed"
    paused = standing(ada)
    assert paused["fault"]["code"] == "not_granted"
    assert once(ada) == []
    assert once(ada) == []
    assert len(ada.type("runs", "list")["items"]) == 1
    service.tokens |= tokens
    assert once(ada) == []
    ada.type("setup", "owner-stop")
    with exclusive(ada.state / "locks" / "scheduler.lock"):  # the owner, whom a sign-in starts, keeps schedules too
        ada.reconnect()
        assert (standing(ada)["fault"], standing(ada)["failures"]) == (None, 0)
        ada.type("setup", "owner-stop")
    once(ada)
    assert [row["status"] for row in ada.type("runs", "list")["items"]] == ["succeeded", "failed"]
    assert ada.stored("groups") == ["g1", "g2"]
    assert once(ada) == []


@pytest.mark.clause("INT-337")
def test_a_schedule_waits_longer_after_each_failure(ada, service):
    """A service that is down is no reason to be paused; by the third failure it is left alone for longer."""
    ada.type("collect", "schedule", "set", "acme-tickets/me", "--every", "1h")
    ada.events('raise Refused("provider_unavailable")')
    (row,) = once(ada, status=1)
    assert (row["status"], standing(ada)["failures"]) == ("failed", 1)
    assert standing(ada)["fault"] is None
    assert once(ada) == []
    waits = [first(ada)]
    for _ in range(2):
        ada.refresh(status=1)
        waits.append(first(ada))
    assert standing(ada)["failures"] == 3
    assert waits == sorted(waits)
    assert waits[2] > 2 * waits[0]


def first(ada):
    """Return the seconds from the end of the last run to the next."""
    from headwater import clock

    row = standing(ada)
    return (clock.parse(row["next_at"]) - clock.parse(row["last_started_at"])).total_seconds()
