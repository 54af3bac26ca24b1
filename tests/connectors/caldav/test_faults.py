"""What the CalDAV connector does when the server refuses, fails, lies, or holds something broken."""

import re
from typing import Any

import pytest
from connectors.caldav.calendars import event, filled
from connectors.dav.account import Account, deleted, kept, said
from servers.dav_relay import Asked, relay_to

from headwater.sdk.testing import collect

BOMB = """<?xml version="1.0"?><!DOCTYPE m [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<multistatus xmlns="DAV:"><response><href>&b;</href></response></multistatus>"""


def summaries(run: Any) -> list[str]:
    """Return the summaries of the events that came."""
    return sorted(record["summary"] for record in kept(run, "events"))


def test_a_wrong_password_asks_for_another(account: Account) -> None:
    """The hint says so; the password is nowhere in what the connector writes."""
    filled(account)
    answer = {"username": account.owner.name, "password": "wrong battery"}
    run = collect(account.folder, options={"endpoint": account.relay.url}, answers=[answer])
    assert run.done["error"]["code"] == "credential_invalid"
    assert run.done["error"]["recovery_hint"] == "refresh_credentials"
    assert run.done["error"]["retryable"] is False
    assert "wrong battery" not in run.stderr + str(run.messages)


def test_a_server_that_is_not_there_fails_the_run(account: Account) -> None:
    """No empty success."""
    run = account.collect(None, endpoint="http://127.0.0.1:9")
    assert run.done["status"] == "failed"
    assert run.done["error"]["code"] == "provider_unavailable"


def test_a_server_without_calendars_says_what_to_set(account: Account) -> None:
    """It answers, and knows no home."""
    account.relay.instead = lambda _asked: (404, "")
    run = account.collect()
    assert run.done["error"]["code"] == "provider_protocol_error"
    assert "`endpoint`" in run.done["error"]["message"]


HALF = "<multistatus xmlns='DAV:'><response>"


@pytest.mark.parametrize("body", [BOMB, HALF], ids=["bomb", "half"])
def test_a_list_of_calendars_that_cannot_be_read_fails_the_run(account: Account, body: str) -> None:
    """No entity is expanded, and nothing is deleted."""
    filled(account)
    first = account.succeed()
    account.relay.changed = lambda asked, whole: body if asked.kind == "PROPFIND" else whole
    second = account.collect(first.state)
    assert second.done["error"]["code"] == "provider_protocol_error"
    assert deleted(second, "events") == deleted(second, "calendars") == []


@pytest.mark.parametrize("body", [BOMB, HALF], ids=["bomb", "half"])
def test_a_list_of_events_that_cannot_be_read_costs_no_other(account: Account, body: str) -> None:
    """That calendar stays as it was."""
    calendar, home = filled(account), filled(account, 1, "Home")
    first = account.succeed()
    for path in (calendar, home):
        account.owner.put(f"{path}new.ics", event("new", f"New in {path}"))
    account.relay.changed = lambda asked, whole: (
        body if (asked.kind, asked.path) == ("sync-collection", home) else whole
    )
    second = account.succeed(first.state)
    assert summaries(second) == [f"New in {calendar}"]
    assert [skip["reason"] for skip in said(second, "SKIP_RESULT")] == ["collection_not_listed"]
    assert deleted(second, "events") == []


def test_a_character_that_xml_does_not_have_costs_one_object(account: Account) -> None:
    """Some servers send what they were given; the page cannot be read, and is halved like one that fails."""
    calendar = filled(account, 20)
    account.relay.changed = lambda asked, whole: (
        whole.replace("SUMMARY:Work 7", "SUMMARY:\x0bWork 7") if asked.kind == "calendar-multiget" else whole
    )
    run = account.succeed()
    assert len(kept(run, "events")) == 19
    assert [gap["record_key"] for gap in said(run, "DETAIL_GAP")] == [f"{calendar}e7.ics"]


def test_a_list_of_calendars_that_is_not_whole_deletes_nothing(account: Account) -> None:
    """A status of 507 in it says that it ends early."""
    filled(account)
    home = filled(account, 1, "Home")
    first = account.succeed()
    whole = re.compile(rf"<response><href>{home}</href>.*?</response>", re.DOTALL)
    ends = f"<response><href>/{account.owner.name}/</href><status>HTTP/1.1 507 Too much</status></response>"
    account.relay.changed = lambda _asked, body: whole.sub(ends, body)
    second = account.collect(first.state)
    assert second.done["status"] == "failed"
    assert deleted(second, "calendars") == []


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_gives_no_more_ends_the_run_in_order(account: Account, status: int) -> None:
    """What was fetched stands, with a cursor; the next run fetches the rest, and nothing twice."""
    filled(account, 130)
    account.relay.instead = lambda asked: (
        (status, "") if asked.kind == "calendar-multiget" and account.relay.kinds.count(asked.kind) > 2 else None
    )
    first = account.succeed()
    assert len(kept(first, "events")) == 100
    (skip,) = said(first, "SKIP_RESULT")
    assert skip["reason"] == ("rate_limited" if status == 429 else "provider_unavailable")
    account.relay.instead = lambda _asked: None
    second = account.succeed(first.state)
    assert len(kept(second, "events")) == 30
    assert said(second, "DETAIL_GAP") == []


@pytest.mark.parametrize("status", [500, 0], ids=["500", "broken off"])
def test_a_poisoned_object_costs_no_other(account: Account, status: int) -> None:
    """Pages are halved until it is alone; it is a gap, and the next run asks for it though no token changed."""
    calendar = filled(account, 20)

    def poisoned(asked: Asked) -> tuple[int, str] | None:
        return (status, "") if asked.kind == "calendar-multiget" and "/e7.ics" in asked.body else None

    account.relay.instead = poisoned
    first = account.succeed()
    assert len(kept(first, "events")) == 19
    (gap,) = said(first, "DETAIL_GAP")
    assert (gap["record_key"], gap["reason"]) == (f"{calendar}e7.ics", "temporarily_unavailable")
    account.relay.instead = lambda _asked: None
    second = account.succeed(first.state)
    assert summaries(second) == ["Work 7"]
    third = account.succeed(second.state)
    assert said(third, "RECORD") == []


def test_a_server_that_fails_every_page_fails_the_run(account: Account) -> None:
    """It is not asked for each of the objects by itself."""
    filled(account, 40)
    account.relay.instead = lambda asked: (503, "") if asked.kind == "calendar-multiget" else None
    run = account.collect()
    assert run.done["error"]["code"] == "provider_unavailable"
    assert account.relay.kinds.count("calendar-multiget") < 30


def test_a_calendar_that_cannot_be_listed_costs_no_other(account: Account) -> None:
    """It is said, nothing of it is taken for gone, and its place stays."""
    work, home = filled(account, 2), filled(account, 2, "Home")
    first = account.succeed()
    for calendar in (work, home):
        account.owner.put(f"{calendar}new.ics", event("new", f"New in {calendar}"))
    account.relay.instead = lambda asked: (503, "") if asked.path == home else None
    second = account.succeed(first.state)
    assert summaries(second) == [f"New in {work}"]
    (skip,) = said(second, "SKIP_RESULT")
    assert (skip["reason"], skip["recovery_hint"]) == ("collection_not_listed", "retry_by_runtime")
    assert second.state["calendars"]["collections"][home] == first.state["calendars"]["collections"][home]
    account.relay.instead = lambda _asked: None
    assert summaries(account.succeed(second.state)) == [f"New in {home}"]


def test_a_calendar_that_is_named_and_may_not_be_seen_is_not_gone(account: Account) -> None:
    """The list has it with a status of its own."""
    filled(account, 2)
    home = filled(account, 2, "Home")
    first = account.succeed()
    hidden = f"<response><href>{home}</href><status>HTTP/1.1 403 Forbidden</status></response>"
    whole = re.compile(rf"<response><href>{home}</href>.*?</response>", re.DOTALL)
    account.relay.changed = lambda _asked, body: whole.sub(hidden, body)
    second = account.succeed(first.state)
    assert deleted(second, "calendars") == deleted(second, "events") == []


@pytest.mark.parametrize("what", ["current-user-principal", "calendar-home-set"])
def test_another_server_gets_no_password(account: Account, what: str) -> None:
    """Though the server names it, and it would answer."""
    filled(account)
    named = re.compile(rf"(<(?:\w+:)?{what}><href>)(?=/)")
    with relay_to(account.server.port) as other:
        account.relay.changed = lambda _asked, body: named.sub(rf"\g<1>{other.url}", body)
        run = account.collect()
        assert other.asked == []
    assert run.done["status"] == "failed"


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        ("no calendar at all", "it has no component"),
        ("BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Half", "it ends in the midst of a component"),
        ("BEGIN:VCALENDAR\nEND:VEVENT", "its components do not end where they should"),
        ("BEGIN:VCALENDAR\nEND:VCALENDAR", "it has neither event, to-do nor journal entry"),
    ],
)
def test_a_broken_object_is_kept_as_it_is(account: Account, broken: str, fault: str) -> None:
    """Its text is there, what is wrong is said, and the run goes on."""
    filled(account)
    whole = re.compile(r"BEGIN:VCALENDAR(?:(?!END:VCALENDAR).)*Work 1.*?END:VCALENDAR", re.DOTALL)
    account.relay.changed = lambda asked, body: whole.sub(broken, body) if asked.kind == "calendar-multiget" else body
    run = account.succeed()
    (record,) = [record for record in kept(run, "events") if record["fault"]]
    assert record["fault"] == fault
    assert record["raw"].strip() == broken
    assert len(kept(run, "events")) == 3


def test_an_object_that_is_too_large_is_a_gap(account: Account) -> None:
    """A record holds its text twice, and has to fit on a line."""
    calendar = filled(account, 2)
    account.relay.changed = lambda asked, body: (
        body.replace("SUMMARY:Work 1", "SUMMARY:" + "x" * 8_000_001) if asked.kind == "calendar-multiget" else body
    )
    run = account.succeed()
    (gap,) = said(run, "DETAIL_GAP")
    assert (gap["record_key"], gap["reason"], gap["retryable"]) == (f"{calendar}e1.ics", "too_large", False)
    account.succeed(run.state)
    assert "calendar-multiget" not in account.relay.kinds


def test_what_the_server_hides_is_gone_by_its_own_word(account: Account) -> None:
    """Radicale leaves out a file that it cannot read, and states 404 for it; the others stay."""
    calendar = filled(account, 3)
    first = account.succeed()
    (account.server.files(calendar) / "e1.ics").write_text("BEGIN:VCALENDAR\r\ngarbage")
    second = account.succeed(first.state)
    assert deleted(second, "events") == [f"{calendar}e1.ics"]
    assert kept(second, "events") == []
