"""Mail collected as a person does it: from a real Dovecot, through the host, confined; cut off, and gone on with."""

import json
from pathlib import Path
from typing import Any

import pytest
from connectors.cutting import killed_in_the_midst
from connectors.imap.people import CONNECTOR, Person, attached, message

INSTANCE = "imap/me"


def settings(person: Person) -> list[str]:
    """Return the options as words."""
    return [word for name, value in person.options.items() for word in ("--set", f"{name}={value}")]


@pytest.fixture
def answers(person: Person, tmp_path: Path) -> list[str]:
    """Return the words that name a file with the answer."""
    path = tmp_path / "answers.json"
    path.touch(0o600)
    path.write_text(json.dumps({"answers": [{"kind": "credentials", "data": person.answer}]}))
    return ["--answer-file", str(path)]


def keys(person: Person, *uids: int) -> set[str]:
    """Return the keys of messages in the inbox."""
    with person.server.client(person.name) as client:
        client.select("INBOX")
        validity = client.response("UIDVALIDITY")[1][0].decode()
    return {f'["INBOX","{validity}","{uid}"]' for uid in uids}


def test_mail_is_collected_twice(headwater: Any, person: Person, answers: list[str]) -> None:
    """The second run has the options, reads what is new and deletes what is gone; a search finds the words."""
    person.put(message("Lunch", "Let us meet at the aquarium\r\n"), attached("Photo"))
    assert headwater.type("collect", INSTANCE, *settings(person), *answers).status == 0
    assert headwater.keys("messages", INSTANCE) == keys(person, 1, 2)
    found = headwater.type("records", "search", "aquarium").result["items"]
    assert [row["stream"] for row in found] == ["messages"]
    person.do(("store", "1", "+FLAGS", "(\\Deleted)"), ("expunge",))
    person.put(message("Dinner"))
    assert headwater.type("collect", INSTANCE, *answers).status == 0
    assert headwater.keys("messages", INSTANCE) == keys(person, 2, 3)
    assert len(headwater.keys("attachments", INSTANCE)) == 1


def test_kill_9_in_the_midst_loses_nothing(headwater: Any, person: Person, answers: list[str]) -> None:
    """Host and connector die between two saves. The cursor stays where it was, and the next run brings all."""
    person.fill(2_500)
    killed_in_the_midst(headwater, "messages", INSTANCE, *settings(person), *answers)
    assert headwater.type("collect", INSTANCE, *answers).status == 0
    rows = headwater.type("streams", "list", INSTANCE).result["streams"]
    assert {row["stream"]: row["records"] for row in rows}["messages"] == 2_500


def test_it_conforms(headwater: Any, person: Person, answers: list[str]) -> None:
    """Through every pack: whole, resumed, narrowed, killed, slowly read, asked, and without a network."""
    person.put(*(attached(f"Number {n}") for n in range(4)), message("Last", date="Wed, 2 Oct 2024 10:00:00 +0000"))
    result = headwater.type("connectors", "check", str(CONNECTOR), *settings(person), *answers).result
    verdicts = {row["clause"]: row["verdict"] for row in result["clauses"]}
    assert [clause for clause, verdict in verdicts.items() if verdict == "fail"] == []
    assert result["left_out"] == {}
    shown = ["CP-410", "CP-447", "CP-515", "CP-516", "CP-311", "CP-312", "CP-405", "CP-013", "CP-704", "CP-705"]
    assert [clause for clause in (*shown, "CORE-026") if verdicts[clause] != "pass"] == []
