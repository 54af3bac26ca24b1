"""Gaps from a person's side: they are shown, explained, tried again by themselves or at once, and heal."""

import json
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

GAPPY = Path(__file__).parents[1] / "guests" / "gappy"
NAME = "gappy/me"


@pytest.fixture
def provider(tmp_path):
    """Write what the provider has: `provider(p1="here", p2="busy")`."""
    path = tmp_path / "provider.json"

    def writing(**photos):
        path.write_text(json.dumps(photos))

    writing.path = path
    return writing


@pytest.fixture
def collected(headwater, provider):
    """An album with one photo that came, one that did not, and one that is lost."""
    provider(p1="here", p2="busy", p3="lost")
    run = headwater.type("collect", NAME, "--from", str(GAPPY), "--set", f"provider={provider.path}")
    assert run.result["checkpoints"]["committed"] == ["albums"]
    return headwater


def photos(headwater):
    return headwater.keys("photos", NAME)


def gaps(headwater, *words):
    return {row["key"]: row for row in headwater.type("gaps", "list", NAME, *words).result["items"]}


def wait_is_over(headwater):
    with closing(sqlite3.connect(headwater.state / "headwater.db")) as connection, connection:
        connection.execute("UPDATE gaps SET due_at = '2000-01-01T00:00:00.000Z'")


@pytest.mark.clause("CP-547")
def test_a_gap_that_let_the_cursor_pass_can_be_tried_at_once_and_heals(collected, provider):
    """Only the missing key is asked for; the cursor stays where it was."""
    before = collected.cursors(NAME)
    provider(p2="here")
    (row,) = collected.type("gaps", "retry", NAME).result["items"]
    assert (row["tried"], row["healed"], row["open"], row["status"]) == (1, 1, 0, "succeeded")
    assert photos(collected) == {"p1", "p2"}
    assert gaps(collected).keys() == {"p3"}
    assert gaps(collected, "--all")["p2"]["status"] == "recovered"
    assert collected.cursors(NAME) == before


def test_a_later_run_tries_due_gaps_by_itself(collected, provider):
    """No command is needed; before the wait is over nothing is tried."""
    provider(p1="here")
    assert "gaps_retried" not in collected.type("collect", NAME).result
    wait_is_over(collected)
    provider(p1="here", p2="here")
    later = collected.type("collect", NAME, "--stream", "albums").result
    assert (later["gaps_retried"]["tried"], later["gaps_retried"]["healed"]) == (1, 1)
    assert photos(collected) == {"p1", "p2"}


def test_a_gap_that_is_still_one_waits_for_its_next_turn(collected, provider):
    """It stays open, its try is counted, and the run is no failure."""
    (row,) = collected.type("gaps", "retry", NAME).result["items"]
    assert (row["healed"], row["open"]) == (0, 1)
    gap = gaps(collected)["p2"]
    assert (gap["status"], gap["tries"], gap["times"]) == ("pending", 1, 2)
    assert gap["due_at"] > gap["tried_at"]


def test_a_lost_one_is_tried_when_its_number_is_named(collected, provider):
    """And by nothing else."""
    provider(p2="busy", p3="here")
    collected.type("gaps", "retry")
    assert "p3" not in photos(collected)
    number = str(gaps(collected)["p3"]["gap"])
    collected.type("gaps", "retry", "--gap", number)
    assert "p3" in photos(collected)


def test_explain_says_what_is_missing_and_what_comes_next(collected):
    """In words, with the one next command, and the same for a program."""
    number = str(gaps(collected)["p2"]["gap"])
    told = collected.type("gaps", "explain", number).result
    assert (told["locator"], told["last_error"], told["reason"]) == ({"photo": "p2"}, {"status": 503}, "busy")
    words = type(collected)(collected.place, "human").type("gaps", "explain", number).stdout
    assert "The record p2 of photos in gappy/me is pending." in words
    assert f"gaps retry --gap {number}" in words


@pytest.mark.parametrize("words", [("explain", "999"), ("retry", "--gap", "999"), ("retry", "git/nowhere")])
def test_what_is_not_there_is_said(collected, words):
    """Nothing is run."""
    assert collected.type("gaps", *words).failure["code"] == "not_found"


def test_the_gaps_of_a_program_that_was_not_set_up_are_left_open(headwater):
    """Nobody knows how to run it again; the other instances are not held up."""
    said = '{"type":"DETAIL_GAP","stream":"beta","record_key":"b1","reason":"later"}'
    headwater.collect("says.sh", words=[said])
    assert headwater.type("gaps", "retry").result["items"] == []
    assert "not set up" in type(headwater)(headwater.place, "human").type("gaps", "retry").stderr


def test_a_retry_in_whose_midst_the_host_is_killed_loses_no_turn(collected, provider):
    """The next run settles it; the gap can be tried again."""
    pipe = collected.place / "pipe"
    os.mkfifo(pipe)
    provider(p2=str(pipe))
    host = subprocess.Popen(collected.words("gaps", "retry", NAME))
    with pipe.open("w"):  # opens once the connector reads it
        host.kill()
        host.wait()
    assert gaps(collected)["p2"]["status"] == "in_progress"
    provider(p1="here", p2="here")
    collected.type("collect", NAME, "--stream", "albums")
    assert gaps(collected)["p2"]["status"] == "pending"
    (row,) = collected.type("gaps", "retry", NAME).result["items"]
    assert row["healed"] == 1
