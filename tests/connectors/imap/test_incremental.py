"""What a second run reads: what came, what changed, what is gone; on a real Dovecot."""

import json
from typing import Any

import pytest
from connectors.imap.people import Person, attached, deleted, message, subjects


def known(state: dict[str, Any], mailbox: str = "INBOX") -> str:
    """Return the UIDs that a cursor holds."""
    return str(state["messages"]["mailboxes"][mailbox]["now"]["known"])


def test_a_second_run_reads_nothing_again(person: Person) -> None:
    """Nothing changed: no record, and a fraction of the bytes."""
    person.put(*(attached(f"Number {n}", b"QUJD" * 20_000) for n in range(5)))
    first = person.succeed()
    second = person.succeed(first.state)
    assert len(first.records("messages")) == len(first.records("attachments")) == 5
    assert second.done["records_emitted"] == 0
    assert second.state == first.state
    read, again = person.server.sent_bytes(person.name, 3)[-2:]
    assert read > 5 * 80_000
    assert again < 3_000


def test_new_changed_and_expunged_messages_come_alone(person: Person) -> None:
    """Of each kind one, and neither the rest nor the attachment of what changed its flags only."""
    person.put(*(attached(f"Number {n}") for n in range(1, 7)))
    first = person.succeed()
    person.do(("store", "2", "+FLAGS", "(\\Flagged)"), ("store", "4", "+FLAGS", "(\\Deleted)"), ("expunge",))
    person.put(attached("New"))
    second = person.succeed(first.state)
    assert subjects(second) == ["Number 2", "New"]
    assert second.records("messages")[1]["flags"] == ["flagged"]
    assert [key[2] for key in deleted(second)] == ["4"]
    assert [key[2:] for key in deleted(second, "attachments")] == [["4", "2"]]
    assert [
        key[2]
        for key in (m["key"] for m in second.messages if m.get("stream") == "attachments" and m["type"] == "RECORD")
    ] == ["4", "7"]
    assert known(second.state) == "1:3,5:7"


def test_the_first_message_counts(person: Person) -> None:
    """The edge of a range of UIDs is in it."""
    person.put(message("First"), message("Last"))
    first = person.succeed()
    person.do(("store", "1", "+FLAGS", "(\\Seen)"))
    assert subjects(person.succeed(first.state)) == ["First"]


def test_an_expunge_costs_no_list_of_the_mailbox(person: Person) -> None:
    """The server names what vanished."""
    person.fill(2_000)
    first = person.succeed(options={"text_characters": 0})
    person.do(("store", "1000", "+FLAGS", "(\\Deleted)"), ("expunge",))
    second = person.succeed(first.state, options={"text_characters": 0})
    assert [key[2] for key in deleted(second)] == ["1000"]
    assert person.server.sent_bytes(person.name, 4)[-1] < 3_000


def test_without_qresync_counts_tell_whether_anything_is_gone(counting_person: Person) -> None:
    """Changes are named by the server; what is gone is found by a list, and only where the counts call for one."""
    counting_person.fill(2_000)
    first = counting_person.succeed()
    counting_person.do(("store", "500", "+FLAGS", "(\\Seen)"))
    second = counting_person.succeed(first.state)
    assert subjects(second) == ["Number 500"]
    assert counting_person.server.sent_bytes("ada", 4)[-1] < 3_000
    counting_person.do(("store", "7", "+FLAGS", "(\\Deleted)"), ("expunge",))
    third = counting_person.succeed(second.state)
    assert [key[2] for key in deleted(third)] == ["7"]
    assert subjects(third) == []
    assert counting_person.server.sent_bytes("ada", 6)[-1] > 40_000


def test_without_condstore_flags_and_expunges_are_found_by_scan(plain_person: Person) -> None:
    """The server counts no changes: what has other flags now is read again, and nothing else."""
    plain_person.put(*(message(f"Number {n}") for n in range(1, 301)))
    first = plain_person.succeed()
    assert len(first.records("messages")) == 300
    assert plain_person.succeed(first.state).done["records_emitted"] == 0
    plain_person.do(("store", "200", "+FLAGS", "(\\Seen)"), ("store", "7", "+FLAGS", "(\\Deleted)"), ("expunge",))
    plain_person.put(message("New"), flags="(\\Answered)")
    second = plain_person.succeed(first.state)
    assert subjects(second) == ["Number 200", "New"]
    assert [key[2] for key in deleted(second)] == ["7"]
    assert plain_person.succeed(second.state).done["records_emitted"] == 0
    plain_person.do(("store", "199", "-FLAGS", "(\\Seen)"))
    assert subjects(plain_person.succeed(second.state)) == ["Number 200"]


def test_a_new_uidvalidity_ends_the_old_messages_once_the_new_ones_are_read(person: Person) -> None:
    """The mailbox was made anew: the deletes come behind the new records, and are all of the old ones."""
    person.put(attached("Old 1"), attached("Old 2"), mailbox="Work")
    first = person.succeed()
    before = first.records("messages")[0]["uidvalidity"]
    person.server.doveadm("mailbox", "delete", "-u", person.name, "Work")
    person.put(message("New"), mailbox="Work")
    second = person.succeed(first.state)
    assert subjects(second) == ["New"]
    assert second.records("messages")[0]["uidvalidity"] != before
    assert deleted(second) == [["Work", str(before), "1"], ["Work", str(before), "2"]]
    assert len(deleted(second, "attachments")) == 2
    order = [m.get("op", "upsert") for m in second.messages if m.get("stream") == "messages" and m["type"] == "RECORD"]
    assert order == ["upsert", "delete", "delete"]


def test_a_new_uidvalidity_deletes_nothing_while_the_new_messages_are_not_all_read(person: Person) -> None:
    """The cursor from the midst of the walk keeps the old generation; what goes on from it deletes it."""
    person.put(message("Old"))
    first = person.succeed()
    old = first.records("messages")[0]["uidvalidity"]
    person.fill(1_500)
    person.server.doveadm("mailbox", "update", "-u", person.name, "--uid-validity", str(old + 1), "INBOX")
    second = person.succeed(first.state)
    saved = [m for m in second.messages if m["type"] == "STATE" and m["stream"] == "messages"]
    midst = {**second.state, "messages": saved[0]["cursor"]}
    assert midst["messages"]["mailboxes"]["INBOX"]["old"][0]["validity"] == old
    at = second.messages.index(saved[0])
    assert not [m for m in second.messages[:at] if m.get("op") == "delete"]
    third = person.succeed(midst)
    assert deleted(third) == [["INBOX", str(old), "1"]]
    assert 0 < len(subjects(third)) < 1_000


def test_a_mailbox_that_is_gone_takes_its_messages_along(person: Person) -> None:
    """The list is whole and lacks it."""
    person.put(attached("There"), mailbox="Work")
    first = person.succeed()
    person.do(("delete", "Work"))
    second = person.succeed(first.state)
    assert deleted(second, "mailboxes") == ["Work"]
    assert [key[0] for key in deleted(second)] == ["Work"]
    assert len(deleted(second, "attachments")) == 1
    assert "Work" not in second.state["messages"]["mailboxes"]


def test_a_mailbox_that_is_excluded_keeps_its_messages(person: Person) -> None:
    """What is not looked at is not gone."""
    person.put(message("There"), mailbox="Work")
    first = person.succeed()
    second = person.succeed(first.state, options={"exclude": ["Work"]})
    assert deleted(second) == []
    third = person.succeed(second.state)
    assert third.done["records_emitted"] == 0


@pytest.mark.parametrize("whose", ["person", "plain_person"])
def test_a_run_that_was_cut_off_goes_on(whose: str, request: pytest.FixtureRequest) -> None:
    """From a cursor in the midst only the rest comes, and together they are all."""
    person: Person = request.getfixturevalue(whose)
    person.fill(2_500)
    whole = person.succeed()
    saved = [m["cursor"] for m in whole.messages if m["type"] == "STATE" and m["stream"] == "messages"]
    assert len(saved) >= 3
    done = int(known({"messages": saved[0]}).removeprefix("1:"))
    assert 1_000 <= done < 1_400
    rest = person.succeed({**whole.state, "messages": saved[0]})
    assert [record["uid"] for record in rest.records("messages")] == list(range(done + 1, 2_501))
    assert rest.state == whole.state


def test_wanting_attachments_later_reads_all_again_and_deletes_nothing(person: Person) -> None:
    """Another way to read begins anew; what is still there is not gone."""
    person.put(attached("One"), attached("Two"))
    first = person.succeed(streams=["messages"])
    second = person.succeed(first.state)
    assert subjects(second) == ["One", "Two"]
    assert len(second.records("attachments")) == 2
    assert deleted(second) == []
    assert second.state["messages"]["mailboxes"]["INBOX"]["old"] == []


def test_another_account_begins_anew_and_keeps_what_was_there(person: Person) -> None:
    """Its messages say nothing of the first one's."""
    person.put(message("Mine"))
    first = person.succeed()
    other = Person(person.server, f"{person.name}-other")
    other.put(message("Theirs"))
    second = other.succeed(first.state)
    assert subjects(second) == ["Theirs"]
    assert deleted(second) == []


def test_what_is_expunged_while_it_is_known_to_be_there_is_found_without_qresync(person: Person) -> None:
    """The counts do not fit: the whole list tells what is gone."""
    person.put(*(message(f"Number {n}") for n in range(1, 6)))
    first = person.succeed()
    state = json.loads(json.dumps(first.state))
    # As if the last run had known one more: nothing that the server tells of changes explains it.
    state["messages"]["mailboxes"]["INBOX"]["now"]["known"] = "1:5,9"
    state["messages"]["mailboxes"]["INBOX"]["following"] = 10
    second = person.succeed(state)
    assert [key[2] for key in deleted(second)] == ["9"]
    assert known(second.state) == "1:5"
    # As if one had been passed over: it is read after all.
    state["messages"]["mailboxes"]["INBOX"]["now"]["known"] = "1:2,4:5"
    third = person.succeed(state)
    assert subjects(third) == ["Number 3"]
    assert known(third.state) == "1:5"


def test_a_run_stops_in_good_order_and_the_next_one_goes_on(person: Person) -> None:
    """`messages_per_run`: what is new is bounded, and the cursor of a run that succeeded is kept."""
    person.put(*(message(f"Number {n}") for n in range(3)), mailbox="A")
    person.fill(500)
    first = person.succeed(options={"messages_per_run": 100})
    assert [m["reason"] for m in first.messages if m["type"] == "SKIP_RESULT"] == ["run_bounded"]
    assert 100 <= len(first.records("messages")) <= 300
    rest = person.succeed(first.state)
    assert len(first.records("messages")) + len(rest.records("messages")) == 503
    person.do(("store", "1:300", "+FLAGS", "(\\Seen)"))
    flagged = person.succeed(rest.state, options={"messages_per_run": 100})
    assert len(flagged.records("messages")) == 300
    assert not [m for m in flagged.messages if m["type"] == "SKIP_RESULT"]
