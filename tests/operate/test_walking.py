"""A walk of pages: what each page is asked with, and each way in which a walk ends or stops."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import HeadwaterError
from headwater.manifest.walk import Condition, Counter, Walk
from headwater.operate.paths import fields_of
from headwater.operate.walking import Progress, pages_of

LAST = Condition("equals", "last_page", "/more", operand=False)
NONE_LEFT = Condition("absent", "no_next", "/next")
WALK = Walk(
    param="cursor",
    records="/items",
    ends=(LAST,),
    next="/next",
    query={"order": "asc"},
    first_only=("since",),
    continues=Condition("equals", pointer="/again", operand=True),
)
PAGED = Walk(
    param="page",
    records="",
    ends=(Condition("empty", "no_items", ""),),
    counter=Counter(),
    query={"per_page": 3},
)
FEWER = Condition("fewer_than", "short_page", operand="per_page")
RESUMED = {"max_pages", "refused", "status", "write"}


def page(*items: Any, **members: Any) -> dict[str, Any]:
    """Return what a provider says of one page."""
    return {"items": list(items), **members}


def catalog(body: Any, status: int = 200) -> dict[str, Any]:
    """Return a catalog result."""
    return {"status": status, "body": body, "provenance": {}}


def walked(progress: Progress, pages: Iterable[Any]) -> list[dict[str, Any]]:
    """Write each page as it comes; return the inputs of the pages that were asked for."""
    asked = []
    for said in pages:
        asked.append(dict(progress.input))
        if progress.read(said) is not None:
            progress.written()
        if not progress.goes_on:
            break
    return asked


def summary(*pages: Any, walk: Walk = WALK, document: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    """Return what a walk over these pages comes to."""
    progress = Progress(walk, document or {}, **options)
    walked(progress, pages)
    return progress.summary("-")


# What a page is asked with


@pytest.mark.clause("CLI-654")
def test_the_first_page_is_asked_with_what_was_typed_and_the_others_with_their_position():
    progress = Progress(WALK, {"since": 5, "order": "mine", "page[size]": 2})
    asked = walked(progress, [page(next="n1"), page(next=17), page(more=False)])
    assert asked == [
        {"since": 5, "order": "asc", "page[size]": 2},
        {"cursor": "n1", "order": "asc", "page[size]": 2},
        {"cursor": 17, "order": "asc", "page[size]": 2},
    ]
    assert progress.summary("f") == {"complete": True, "end": "last_page", "out": "f", "pages": 3, "records": 0}


def test_a_summary_says_its_members_in_the_order_of_their_names():
    told = summary(page({"a": 1}, next="n", more=False), fields=fields_of("b"))
    assert list(told) == ["complete", "end", "missing", "out", "pages", "records"]


@pytest.mark.clause("CLI-656")
@pytest.mark.parametrize("said", [{}, {"items": None}, catalog({}), catalog({"items": None}), {"items": []}])
def test_no_records_are_none_and_the_walk_goes_on(said):
    body = said.get("body", said)
    body["next"] = "n"
    assert summary(said, page({"id": 1}, more=False)) == {
        "complete": True,
        "end": "last_page",
        "out": "-",
        "pages": 2,
        "records": 1,
    }


@pytest.mark.clause("CLI-656")
def test_records_are_an_array_wherever_it_stands():
    nested = Walk(param="p", records="/data/0/items", ends=(LAST,), next="/next")
    assert summary({"data": [{"items": [1, 2]}], "more": False}, walk=nested)["records"] == 2
    bare = Walk(param="p", records="", ends=(Condition("empty", "no_more", ""),), next="/next")
    assert summary(catalog([]), walk=bare)["end"] == "no_more"


@pytest.mark.clause("CLI-657")
def test_fields_shape_each_record():
    progress = Progress(WALK, {}, fields=fields_of("author_id,events[].field_name,nope"))
    lines = progress.read(page({"author_id": 7, "events": [{"field_name": "a", "x": 1}], "y": 2}, {"z": 1}))
    assert lines is not None
    assert lines.values == [{"author_id": 7, "events": [{"field_name": "a"}]}, {}]


@pytest.mark.clause("CLI-663")
def test_what_no_written_record_has_is_missing():
    fields = fields_of("a,b,c")
    progress = Progress(WALK, {}, fields=fields)
    walked(progress, [page({"a": 1}, next="n1"), page({"b": 1}, next="n2")])
    assert progress.read(page({"c": 1})) is not None
    progress.unwritten()
    assert progress.summary("-")["missing"] == ["c"]
    assert "missing" not in summary(page(more=False), fields=fields)
    assert "missing" not in summary(page({"a": 1, "b": 2, "c": 3}, more=False), fields=fields)


# What follows from a page


@pytest.mark.clause("CLI-658")
@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"again": True, "more": False, "next": "n"}, None),
        ({"again": True, "more": False}, ("stopped", "continues_without_position")),
        ({"again": False, "more": False, "next": "n"}, ("end", "last_page")),
        ({"more": False}, ("end", "last_page")),
        ({"more": True, "next": "n"}, None),
        ({"next": "n"}, None),
        ({}, ("stopped", "no_position")),
    ],
)
def test_continuing_comes_before_ends_and_ends_before_the_next_position(members, told):
    progress = Progress(WALK, {})
    walked(progress, [page(**members)])
    assert progress.goes_on == (told is None)
    if told:
        assert progress.summary("-")[told[0]] == told[1]


@pytest.mark.clause("CLI-658")
def test_the_first_end_that_holds_is_named():
    assert summary(page(more=False), walk=Walk("p", "/items", (NONE_LEFT, LAST), "/next"))["end"] == "no_next"
    assert summary(page(more=False), walk=Walk("p", "/items", (LAST, NONE_LEFT), "/next"))["end"] == "last_page"


@pytest.mark.clause("CLI-688")
@pytest.mark.parametrize(
    ("end", "holding", "others"),
    [
        (Condition("equals", "e", "/v", operand=1), [1], [True, "1", 0, None, [1], {}]),
        (Condition("equals", "e", "/v", operand=False), [False], [0, "", None, []]),
        (Condition("equals", "e", "/v", operand="x"), ["x"], ["", "X", None, ["x"]]),
        (Condition("absent", "e", "/v"), [None], [0, "", [], {}, False]),
        (Condition("absent", "e", "/v/w"), [None, {}, [], "x", {"w": None}], [{"w": 0}]),
        (Condition("empty", "e", "/v"), ["", [], {}], [None, 0, False, "x", [0], {"": 0}]),
    ],
)
def test_a_condition_holds_of_its_values_and_no_others(end, holding, others):
    walk = Walk("p", "/items", (end,), "/next")
    assert [summary(page(v=value), walk=walk)["complete"] for value in holding] == [True] * len(holding)
    assert [summary(page(v=value), walk=walk)["complete"] for value in others] == [False] * len(others)


@pytest.mark.clause("CLI-662")
def test_only_an_end_makes_a_walk_complete():
    assert summary(page(next="n"), page(1, more=False))["complete"] is True
    stopped = summary(page(next="n"), page(1))
    assert stopped == {"complete": False, "out": "-", "pages": 2, "records": 1, "stopped": "no_position"}


# Why a walk stops


@pytest.mark.clause("CLI-664")
def test_as_many_pages_as_were_asked_for_are_read():
    document = {"since": 5, "size": 2}
    stopped = summary(page(1, next="n1"), document=document, most_pages=1)
    assert (stopped["stopped"], stopped["pages"], stopped["complete"]) == ("max_pages", 1, False)
    assert stopped["resume"] == {"cursor": "n1", "size": 2, "order": "asc"}
    assert summary(*(page(next=number) for number in range(30)))["pages"] == 20
    assert summary(page(more=False), most_pages=1)["complete"] is True
    assert summary(page(), most_pages=1)["stopped"] == "no_position"


@pytest.mark.clause("CLI-661", "CLI-665")
def test_a_refused_page_is_the_place_to_go_on_from():
    progress = Progress(WALK, {"since": 5})
    walked(progress, [page(1, 2, next="n1"), page(3, next="n2")])
    error = {"code": "service_failure", "data": {"service_code": "rate_limited"}}
    progress.refused(error)
    told = progress.summary("-")
    assert (told["stopped"], told["error"], told["resume"]) == ("refused", error, {"order": "asc", "cursor": "n2"})
    assert (told["complete"], told["pages"], told["records"]) == (False, 2, 3)


@pytest.mark.clause("CLI-661", "CLI-666")
@pytest.mark.parametrize("status", [199, 300, 500])
def test_nothing_is_written_of_a_page_with_another_status(status):
    told = summary(page(1, next="n1"), catalog(page(2, more=False), status))
    assert (told["stopped"], told["status"], told["resume"]) == ("status", status, {"order": "asc", "cursor": "n1"})
    assert (told["complete"], told["pages"], told["records"]) == (False, 1, 1)
    first = summary(catalog(page(2), status), document={"since": 5})
    assert (first["pages"], first["resume"]) == (0, {"since": 5, "order": "asc"})


@pytest.mark.clause("CLI-661")
def test_a_page_that_was_not_written_whole_does_not_count():
    progress = Progress(WALK, {})
    walked(progress, [page(1, next="n1")])
    assert progress.read(page(2, 3, more=False)) is not None
    progress.unwritten()
    told = progress.summary("-")
    assert (told["stopped"], told["resume"]) == ("write", {"order": "asc", "cursor": "n1"})
    assert (told["complete"], told["pages"], told["records"]) == (False, 1, 1)


@pytest.mark.clause("CLI-668", "CLI-669", "CLI-670", "CLI-671")
@pytest.mark.parametrize(
    ("members", "stopped"),
    [
        ({"again": True}, "continues_without_position"),
        ({"again": True, "next": None}, "continues_without_position"),
        ({}, "no_position"),
        ({"next": None}, "no_position"),
        ({"next": {}}, "invalid_position"),
        ({"next": True}, "invalid_position"),
        ({"next": 1.5}, "invalid_position"),
        ({"next": ["n"]}, "invalid_position"),
        ({"next": "\ud800"}, "invalid_position"),
        ({"next": 10**5000}, "invalid_position"),
        ({"next": "x" * (16 * 1024 + 1)}, "invalid_position"),
        ({"next": "\u00e9" * (8 * 1024) + "x"}, "invalid_position"),
        ({"again": True, "next": {}}, "invalid_position"),
        ({"next": "n0"}, "repeated_position"),
        ({"next": "n1"}, "repeated_position"),
        ({"again": True, "next": "n1"}, "repeated_position"),
    ],
)
def test_a_walk_that_cannot_go_on_stops_without_a_place_to_resume(members, stopped):
    told = summary(page(next="n1"), page(1, **members), document={"cursor": "n0"})
    assert told == {"complete": False, "out": "-", "pages": 2, "records": 1, "stopped": stopped}


@pytest.mark.clause("CLI-670")
@pytest.mark.parametrize("position", ["x" * (16 * 1024), 10**30, -1, 0, "\u00e9" * (8 * 1024)])
def test_a_position_is_sent_as_it_came(position):
    progress = Progress(WALK, {})
    walked(progress, [page(next=position)])
    assert progress.input["cursor"] is position


@pytest.mark.clause("CLI-672", "CLI-686")
@pytest.mark.parametrize("items", [{}, "text", "", 0, False, {"a": []}])
def test_records_that_are_no_list_stop_the_walk_and_the_page_is_not_counted(items):
    told = summary(page(1, next="n1"), {"items": items, "more": False, "next": "n2"})
    assert told == {"complete": False, "out": "-", "pages": 1, "records": 1, "stopped": "records_not_a_list"}


@pytest.mark.clause("CLI-674")
def test_a_walk_that_is_resumed_goes_on_and_does_not_turn_in_a_circle():
    stopped = summary(page(1, next="n1"), document={"since": 5}, most_pages=1)
    again = Progress(WALK, stopped["resume"])
    assert walked(again, [page(2, next="n2"), page(3, next="n1")]) == [
        {"order": "asc", "cursor": "n1"},
        {"order": "asc", "cursor": "n2"},
    ]
    assert again.summary("-")["stopped"] == "repeated_position"


@pytest.mark.clause("CLI-675")
@pytest.mark.parametrize(("one", "other"), [("5", 5), (5, "5"), (5, 5), ("n", "n")])
def test_positions_are_one_where_their_query_is(one, other):
    assert summary(page(next=one), page(next=other))["stopped"] == "repeated_position"
    assert summary(page(next=other), document={"cursor": one})["stopped"] == "repeated_position"
    assert summary(page(next="05"), page(next=5), page(more=False))["complete"] is True


@pytest.mark.clause("CLI-679")
@pytest.mark.parametrize("text", ["0", "10001", "abc", "", "-1", "+1", "1.0", " 1", "1_0", "\u0663", "9" * 5000])
def test_pages_are_a_whole_number_within_bounds(text):
    assert [pages_of(fit) for fit in ("1", "20", "10000")] == [1, 20, 10_000]
    with pytest.raises(HeadwaterError) as caught:
        pages_of(text)
    error = caught.value
    assert (error.code, error.stage, error.data) == ("invalid_input", "arguments", {"field": "max_pages"})


# Counting pages


@pytest.mark.clause("CLI-690")
def test_pages_are_counted_where_the_provider_names_no_next_one():
    progress = Progress(PAGED, {"q": "x"})
    asked = walked(progress, [[1, 2, 3], [4, 5, 6], []])
    assert asked == [{"q": "x", "per_page": 3, "page": number} for number in (1, 2, 3)]
    assert progress.summary("-") == {"complete": True, "end": "no_items", "out": "-", "pages": 3, "records": 6}


@pytest.mark.clause("CLI-690")
@pytest.mark.parametrize(("given", "asked"), [({}, [0, 50]), ({"page": 100}, [100, 150]), ({"page": "7"}, [7, 57])])
def test_a_counter_begins_where_it_is_told_to(given, asked):
    walk = Walk("page", "", PAGED.ends, counter=Counter(0, 50))
    assert [page["page"] for page in walked(Progress(walk, given), [[1], []])] == asked


@pytest.mark.parametrize("given", ["x", "", True, [], 1.5, "1.5"])
def test_a_counter_does_not_begin_at_what_is_no_number(given):
    with pytest.raises(HeadwaterError) as caught:
        Progress(PAGED, {"page": given})
    assert (caught.value.code, caught.value.data) == ("invalid_input", {"field": "input"})


@pytest.mark.clause("CLI-690")
@pytest.mark.parametrize(
    ("operand", "document", "complete"),
    [
        ("per_page", {}, False),
        ("per_page", {"per_page": 2}, False),
        ("per_page", {"per_page": 3}, True),
        ("per_page", {"per_page": "3"}, True),
        ("per_page", {"per_page": "many"}, False),
        (2, {}, False),
        (3, {}, True),
    ],
)
def test_a_page_with_fewer_records_than_were_asked_for_is_the_last(operand, document, complete):
    walk = Walk("page", "", (Condition("fewer_than", "short_page", operand=operand),), counter=Counter())
    assert summary([1, 2], walk=walk, document=document)["complete"] is complete


def test_no_request_is_one_too_many_where_a_page_is_short():
    walk = Walk("page", "", (FEWER, *PAGED.ends), counter=Counter(), query={"per_page": 3})
    assert summary([1, 2, 3], [4], walk=walk)["end"] == "short_page"


# Laws

POSITIONS = st.sampled_from([None, "a", "b", "5", 5, 6, "", 10**30, True, {}, "x" * 16_385]) | st.integers(0, 40)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "items": st.lists(st.integers(), max_size=3) | st.none() | st.just({}),
        "next": POSITIONS,
        "more": st.booleans(),
        "again": st.booleans(),
    },
)
RESULTS = BODIES | st.builds(catalog, BODIES, st.sampled_from([200, 200, 204, 500]))
EVENTS = st.tuples(RESULTS, st.sampled_from(["written"] * 12 + ["unwritten", "refused"]))
WALKS = st.builds(
    Walk,
    param=st.just("cursor"),
    records=st.just("/items"),
    ends=st.lists(st.sampled_from([LAST, NONE_LEFT, FEWER, Condition("empty", "none", "/items")]), min_size=1).map(
        tuple
    ),
    next=st.just("/next"),
    counter=st.none() | st.builds(Counter, st.integers(0, 3), st.integers(1, 50)),
    first_only=st.just(("since",)),
    continues=st.none() | st.just(WALK.continues),
)
DOCUMENTS = st.fixed_dictionaries(
    {"since": st.just(1)}, optional={"cursor": st.integers(0, 9), "per_page": st.integers(0, 3)}
)


@given(WALKS, DOCUMENTS, st.integers(1, 30), st.lists(EVENTS, min_size=1, max_size=40))
def test_whatever_comes_a_walk_ends_and_never_sends_a_position_twice(walk, document, most_pages, events):
    progress = Progress(walk, document, most_pages=most_pages)
    asked: list[Any] = []
    while progress.goes_on:
        said, does = events[len(asked) % len(events)]
        asked.append(progress.input.get("cursor"))
        if does == "refused":
            progress.refused({})
        elif progress.read(said) is not None:
            getattr(progress, does)()
    told = progress.summary("-")
    sent = [str(position) for position in asked if position is not None]
    assert len(asked) <= most_pages
    assert len(set(sent)) == len(sent)
    assert told["complete"] == ("end" in told) == ("stopped" not in told)
    assert ("resume" in told) == (told.get("stopped") in RESUMED)
    assert told["pages"] in (len(asked), len(asked) - 1)
    if told["complete"]:
        last = said.get("body", said)
        assert told["end"] in {end.name for end in walk.ends}
        assert not (walk.continues and last.get("again"))
