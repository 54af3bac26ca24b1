"""Whose turn it is, how long it takes until the next one, and what a retry asks for."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import limits
from headwater.collect.gaps import OpenGap, page_of, scope_of, wait_after


@pytest.mark.parametrize(
    ("tries", "wait"),
    [(0, timedelta(minutes=15)), (1, timedelta(minutes=30)), (3, timedelta(hours=2)), (7, timedelta(days=1))],
)
def test_each_try_doubles_the_wait_up_to_a_day(tries, wait):
    """A provider that is down is asked less and less often, and still once a day."""
    assert wait_after(tries) == wait


@given(st.integers(0, 10**9))
def test_no_wait_is_shorter_than_the_one_before_or_longer_than_a_day(tries):
    """However often it was tried."""
    assert wait_after(tries) <= wait_after(tries + 1) <= timedelta(days=1)


def gaps(count, size=4):
    return [OpenGap(number, "photos", f"{number:0{size}d}", 0) for number in range(count)]


def test_a_page_has_a_bound_in_gaps():
    """The rest keeps its turn."""
    assert page_of(gaps(limits.GAPS_PER_RETRY + 3)) == gaps(limits.GAPS_PER_RETRY)


def test_a_page_has_a_bound_in_bytes_and_is_never_empty():
    """A scope of large keys stays small; one key that is larger than a page goes alone."""
    size = limits.GAPS_PER_RETRY_BYTES // 2
    assert len(page_of(gaps(5, size))) == 2
    assert len(page_of(gaps(5, limits.GAPS_PER_RETRY_BYTES + 1))) == 1
    assert page_of([]) == []


def test_a_retry_asks_for_the_missing_keys_of_each_stream_and_nothing_else():
    """The keys go out as resources, in their canonical form."""
    asked = scope_of([OpenGap(1, "photos", "p1", 0), OpenGap(2, "tags", '["a","b"]', 3), OpenGap(3, "photos", "p2", 0)])
    assert [(entry.name, entry.resources) for entry in asked.streams] == [
        ("photos", ["p1", "p2"]),
        ("tags", ['["a","b"]']),
    ]
