"""`headwater demo`: the main job in a minute, twice, and with a crash in its midst."""

import re

import pytest


@pytest.fixture
def person(headwater):
    """The same Headwater, as a person sees it."""
    return type(headwater)(headwater.place, "human")


def test_the_first_demo_collects_and_says_what_is_missing(headwater, person):
    """With nothing configured there are records, gaps, a cursor that is withheld with its key, and a next step."""
    answer = person.type("demo")
    assert answer.status == 0
    assert re.search(r"demo/me: succeeded\. [\d,]{4,} records new or changed, 0 unchanged, 2 gaps", answer.stdout)
    assert "Cursors committed: people" in answer.stdout
    assert "Cursor withheld:   messages. 1 key of attachments is unaccounted for. (att_" in answer.stdout
    assert re.search(r"Next: (\./)?headwater runs explain", answer.stdout)
    assert headwater.cursors("demo/me").keys() == {"people"}
    assert headwater.left_behind() == []


def test_the_second_demo_stores_only_what_changed(headwater):
    """What is there is unchanged, the gaps heal, and every cursor commits."""
    first = headwater.type("demo").result
    assert headwater.type("demo").result["checkpoints"] == {"committed": ["people", "messages"], "withheld": []}
    before = {row["stream"]: row["accepted"] for row in first["streams"]}
    again = {row["stream"]: row for row in headwater.type("runs", "explain").result["streams"]}
    assert all(0 <= again[stream]["kept"] < 40 for stream in before)
    assert again["people"]["unchanged"] == before["people"]
    assert headwater.type("gaps", "list").result["items"] == []
    healed = headwater.type("gaps", "list", "--all").result["items"]
    assert [gap["status"] for gap in healed] == ["recovered", "recovered"]


@pytest.mark.clause("CLI-010")
def test_a_crash_loses_and_doubles_nothing(headwater):
    """Headwater is killed in the midst of the demo and started again: 0 lost, 0 doubled."""
    answer = headwater.type("demo", "--crash")
    assert answer.stderr == ""
    result = answer.result
    assert (result["lost"], result["doubled"]) == (0, 0)
    assert 0 < result["stored_before"] < result["stored"]
    assert headwater.left_behind() == []


def test_the_crash_is_told_in_sentences(person):
    """A person sees the kill, the recovery and the count."""
    answer = person.type("demo", "--crash")
    assert answer.status == 0
    assert re.search(r"Killed Headwater with SIGKILL when [\d,]+ records were stored\.", answer.stderr)
    assert "was cut off before; what it had stored is kept." in answer.stderr
    assert re.search(r"0 lost, 0 doubled, [\d,]+ messages stored\.$", answer.stdout.strip())
