"""A page is labelled by the labels of its rows: it is as good as the worst of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins
from msgspec.structs import replace

from headwater.connect.labels import Labels, of_page, of_row
from headwater.connect.looking import description_of, page_of

NOW = 1_000
MOMENTS = st.integers(NOW - 2, NOW + 5)


@st.composite
def row(draw: st.DrawFn) -> Labels:
    """Draw the labels of a row, which may be cached only if it is stale."""
    source = draw(st.sampled_from(["authority", "cached"]))
    return Labels(source, source == "cached" or draw(st.booleans()), NOW, draw(st.none() | MOMENTS))


@pytest.mark.clause("CLI-325")
@given(st.lists(row()), row(), st.integers(0, 20))
def test_one_cached_row_makes_the_page_cached_and_stale(rows, one, place):
    """Wherever it stands, and however long all of them are good for."""
    cached = replace(one, source="cached", stale=True, valid_until_ms=NOW + 1_000)
    fresh = [replace(other, stale=False, valid_until_ms=NOW + 1_000) for other in rows]
    page = of_page([*fresh[:place], cached, *fresh[place:]], NOW)
    assert (page.source, page.stale) == ("cached", True)


@pytest.mark.clause("CLI-325", "CLI-326")
@given(st.lists(row(), max_size=4), row())
def test_a_row_more_makes_no_page_better(rows, one):
    """Nothing becomes fresh, uncached or good for longer; only a deadline may become known."""
    before, after = of_page(rows, NOW), of_page([*rows, one], NOW)
    assert after.source == "cached" or before.source == "authority"
    if before.valid_until_ms is not None:
        assert after.valid_until_ms is not None
        assert after.valid_until_ms <= before.valid_until_ms
        assert after.stale or not before.stale


@pytest.mark.clause("CLI-326")
@given(st.lists(row(), max_size=4))
def test_a_page_is_fresh_only_before_a_deadline_and_where_every_row_is(rows):
    page, ends = of_page(rows, NOW), [one.valid_until_ms for one in rows if one.valid_until_ms is not None]
    assert page.valid_until_ms == (min(ends) if ends else None)
    assert page.stale is not (bool(ends) and min(ends) > NOW and not any(one.stale for one in rows))
    assert of_page(list(reversed(rows)), NOW) == page


@pytest.mark.clause("CLI-324", "CLI-326")
def test_a_connection_and_a_page_of_it_alone_are_labelled_alike(world):
    """While it is good, when it no longer is, and when its credential was refused."""
    made, target = world.connect().connection, world.target
    end = made.evidence.valid_until_ms
    for connection, now in ((made, end - 1), (made, end), (made, end + 1)):
        told = to_builtins(of_row(connection, target, now))
        page, alone = page_of([connection], target, now), description_of(connection, target, now)
        assert told["stale"] is (now >= end)
        assert {name: page[name] for name in told} == told
        assert {name: alone[name] for name in told} == told
    refused = page_of([made, replace(made, lifecycle="stale")], target, end)
    assert (refused["stale"], refused["valid_until_ms"]) == (True, end)


def test_a_revoked_connection_neither_ends_nor_spoils_a_page(world):
    """What it was revoked for stays so; on its own it gives a page no deadline."""
    made, target, now = world.connect().connection, world.target, world.clock.millis
    gone = replace(made, lifecycle="revoked", evidence=replace(made.evidence, valid_until_ms=now - 1))
    page = page_of([made, gone], target, now)
    assert (page["stale"], page["valid_until_ms"]) == (False, made.evidence.valid_until_ms)
    alone = page_of([gone], target, now)
    assert (alone["stale"], "valid_until_ms" in alone) == (True, False)
    assert description_of(gone, target, now)["stale"] is False
