"""What a run of the CalDAV connector asks for and sends, against a real Radicale: everything once, then what is new."""

import re

import pytest
from connectors.caldav.calendars import event, filled
from connectors.dav.account import Account, deleted, kept, said
from servers.dav_relay import Asked

from headwater.sdk.testing import Transcript

# The well-known address, where it leads, the principal, the list of the home.
LOOKING = ["PROPFIND"] * 4
TOLD_GONE = re.compile(r"<response><href>[^<]*</href><status>HTTP/1.1 404[^<]*</status></response>")
TOKEN = re.compile(r"<(?:\w+:)?sync-token>.*?</(?:\w+:)?sync-token>")


def without_tokens(account: Account) -> None:
    """Make the server one that knows no sync tokens (RFC 6578), but a tag of the whole collection."""
    account.relay.changed = lambda _asked, body: TOKEN.sub("", body)
    account.relay.instead = lambda asked: (403, "") if asked.kind == "sync-collection" else None


def summaries(run: Transcript) -> list[str]:
    """Return the summaries of the events that came."""
    return sorted(record["summary"] for record in kept(run, "events"))


def test_a_first_run_brings_every_calendar_and_event(account: Account) -> None:
    """From the well-known address to the objects, a page a request."""
    work, home = filled(account, 60), filled(account, 2, "Home")
    run = account.succeed()
    assert {(record["id"], record["name"]) for record in run.records("calendars")} == {(work, "Work"), (home, "Home")}
    assert len(run.records("events")) == 62
    assert {record["calendar"] for record in run.records("events")} == {work, home}
    (coverage,) = said(run, "DETAIL_COVERAGE")
    assert len(coverage["required_keys"]) == len(coverage["hydrated_keys"]) == 62
    reports = ["sync-collection", "calendar-multiget", "sync-collection", *["calendar-multiget"] * 2]
    assert account.relay.kinds == [*LOOKING, *reports]
    assert account.relay.asked[0].path == "/.well-known/caldav"


def test_a_second_run_only_looks(account: Account) -> None:
    """The list of calendars shows each one's token, so that nothing is asked of them."""
    filled(account)
    first = account.succeed()
    second = account.succeed(first.state)
    assert said(second, "RECORD") == []
    assert account.relay.kinds == LOOKING
    assert second.state == first.state


@pytest.mark.parametrize("has_tokens", [True, False], ids=["sync-token", "ctag"])
def test_what_changed_comes_alone(account: Account, has_tokens: bool) -> None:
    """New, changed and gone, with tokens and without; one request fetches what there is to fetch."""
    if not has_tokens:
        without_tokens(account)
    calendar = filled(account, 30)
    first = account.succeed()
    account.owner.put(f"{calendar}e3.ics", event("Work-3", "Work 3 again"))
    account.owner.put(f"{calendar}new.ics", event("new", "A new one"))
    account.owner.delete(f"{calendar}e7.ics")
    second = account.succeed(first.state)
    assert summaries(second) == ["A new one", "Work 3 again"]
    assert deleted(second, "events") == [f"{calendar}e7.ics"]
    assert account.relay.kinds.count("calendar-multiget") == 1
    third = account.succeed(second.state)
    assert said(third, "RECORD") == []
    assert "calendar-multiget" not in account.relay.kinds


@pytest.mark.parametrize("status", [403, 409, 410, 412])
def test_an_invalid_token_is_a_full_list_and_no_full_fetch(account: Account, status: int) -> None:
    """Deletes come from the whole list alone, and what has the same tag is not fetched again."""
    calendar = filled(account, 5)
    first = account.succeed()
    account.owner.delete(f"{calendar}e1.ics")
    account.owner.put(f"{calendar}e2.ics", event("Work-2", "Changed"))
    token = first.state["calendars"]["collections"][calendar]["token"]
    invalid = "<error xmlns='DAV:'><valid-sync-token/></error>"
    account.relay.instead = lambda asked: (status, invalid) if f">{token}<" in asked.body else None
    # Radicale remembers what was deleted, and tells it to who begins anew; other servers do not.
    account.relay.changed = lambda _asked, body: TOLD_GONE.sub("", body)
    second = account.succeed(first.state)
    assert deleted(second, "events") == [f"{calendar}e1.ics"]
    assert summaries(second) == ["Changed"]
    assert account.relay.kinds.count("sync-collection") == 2
    assert second.state["calendars"]["collections"][calendar]["token"] != token


def test_a_token_that_radicale_itself_refuses(account: Account) -> None:
    """The server's own answer to a token that it never gave."""
    calendar = filled(account, 3)
    first = account.succeed()
    first.state["calendars"]["collections"][calendar]["token"] = "http://radicale.org/ns/sync/" + "0" * 64
    account.owner.delete(f"{calendar}e0.ics")
    second = account.succeed(first.state)
    assert deleted(second, "events") == [f"{calendar}e0.ics"]


def test_a_calendar_that_is_gone_takes_its_events_along(account: Account) -> None:
    """From a whole list of the account."""
    filled(account, 2)
    home = filled(account, 2, "Home")
    first = account.succeed()
    account.owner.delete(home)
    second = account.succeed(first.state)
    assert deleted(second, "calendars") == [home]
    assert deleted(second, "events") == [f"{home}e0.ics", f"{home}e1.ics"]
    assert list(second.state["calendars"]["collections"]) == [f"/{account.owner.name}/Work/"]


def test_events_that_were_not_wanted_come_when_they_are(account: Account) -> None:
    """A run over the calendars alone moves no token."""
    filled(account)
    first = account.succeed(None, "calendars")
    assert "sync-collection" not in account.relay.kinds
    second = account.succeed(first.state)
    assert len(second.records("events")) == 3
    assert second.records("calendars") == []


def test_a_list_in_pieces_is_followed_to_its_end(account: Account) -> None:
    """RFC 6578, 3.6: a 507 for the collection says that there is more behind the token."""
    calendar = filled(account, 4)
    token, whole = "http://piece/", []

    def piece(number: int) -> str:
        """Cut one member out of the server's list."""
        entries = re.findall(r"<response>.*?</response>", whole[0], re.DOTALL)
        more = f"<response><href>{calendar}</href><status>HTTP/1.1 507 Insufficient Storage</status></response>"
        head = TOKEN.sub("", whole[0][: whole[0].index("<response>")])
        end = f"<sync-token>{token}{number}</sync-token></multistatus>"
        return head + entries[number] + (more if number < 3 else "") + end

    def changed(asked: Asked, body: str) -> str:
        if asked.kind == "sync-collection" and not whole:
            whole.append(body)
            return piece(0)
        return body

    def instead(asked: Asked) -> tuple[int, str] | None:
        known = re.search(f"{token}(\\d)", asked.body)
        return (207, piece(int(known[1]) + 1)) if known else None

    account.relay.changed, account.relay.instead = changed, instead
    run = account.succeed()
    assert len(run.records("events")) == 4
    assert run.state["calendars"]["collections"][calendar]["token"] == f"{token}3"


def test_one_that_vanishes_between_list_and_fetch_is_no_gap(account: Account) -> None:
    """The next list says that it is gone."""
    calendar = filled(account, 3)

    def instead(asked: Asked) -> None:
        if asked.kind == "calendar-multiget":
            account.relay.instead = lambda _asked: None
            account.owner.delete(f"{calendar}e1.ics")

    account.relay.instead = instead
    run = account.succeed()
    assert said(run, "DETAIL_GAP") == []
    assert summaries(run) == ["Work 0", "Work 2"]
    (coverage,) = said(run, "DETAIL_COVERAGE")
    assert len(coverage["required_keys"]) == 2


def test_gaps_are_asked_for_by_name(account: Account) -> None:
    """A run over the events alone, for the keys that are missed."""
    calendar = filled(account, 5)
    run = account.succeed(None, {"name": "events", "resources": [f"{calendar}e1.ics", f"{calendar}e4.ics"]})
    assert summaries(run) == ["Work 1", "Work 4"]
    assert account.relay.kinds.count("calendar-multiget") == 1
    assert "sync-collection" not in account.relay.kinds


def test_odd_names_are_one_name(account: Account) -> None:
    """However the server escapes a path, a record has one key."""
    calendar = account.owner.make_calendar("Béla & Co")
    account.owner.put(f"{calendar}a%20b%26c.ics", event("odd", "Odd"))
    first = account.succeed()
    (record,) = first.records("events")
    assert record["id"] == f"/{account.owner.name}/B%C3%A9la%20&%20Co/a%20b&c.ics"
    second = account.succeed(first.state)
    assert said(second, "RECORD") == []
