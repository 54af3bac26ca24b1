"""What is shown to people: tables that line up, and text that drives no terminal."""

import pytest

from headwater.cli.output import clip, pairs, plain, table


@pytest.mark.parametrize("hostile", ["\x1b[2J", "a\x07b", "\x9b31m", "x\u202ey", "\x00"])
def test_control_characters_never_reach_a_terminal(hostile):
    """Data from a provider must not move the cursor or reverse the line."""
    assert all(character.isprintable() for character in plain(hostile))


def test_numbers_stand_to_the_right_and_text_to_the_left():
    """A column of counts lines up at its last digit."""
    rows = [{"name": "a", "count": 5}, {"name": "long", "count": 12345}]
    assert table(rows, {"name": "name", "count": "n"}, empty="") == ["name       n", "a          5", "long  12,345"]


def test_wide_characters_take_two_columns():
    """A name in Japanese does not push the next column away."""
    lines = table([{"a": "日本", "b": "x"}, {"a": "abcd", "b": "y"}], {"a": "a", "b": "b"}, empty="")
    assert lines[1] == "日本  x"
    assert lines[2] == "abcd  y"


def test_an_empty_table_is_a_sentence():
    """Nothing to show is said, not shown as a heading over nothing."""
    assert table([], {"a": "a"}, empty="Nothing yet.") == ["Nothing yet."]


def test_long_text_is_cut_with_an_ellipsis():
    """A cell never grows past its width."""
    assert clip("abcdefghij", 5) == "abcd…"


def test_absent_values_are_left_out_of_pairs():
    """A line `name: None` would say nothing."""
    assert pairs({"a": 1, "b": None, "c": True}) == ["a: 1", "c: yes"]
