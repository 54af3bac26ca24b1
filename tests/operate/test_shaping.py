"""What is printed of a result: the paths that can be written, and what each of them reaches."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import HeadwaterError
from headwater.operate.paths import each_of, fields_of, reached
from headwater.operate.shaping import Listed, lines_of, listed, shaped

PROVENANCE = {"source": "example"}
TICKET = {"ticket": {"id": 101, "status": "open", "subject": "Rain"}}


def answer(result: Any, **members: Any) -> dict[str, Any]:
    """Return an InvokeResult."""
    named = {"connector": "zendesk", "instance": "support", "operation": "ticket.show", "revision": "1"}
    return {**named, "result": result, **members}


def catalog(body: Any, status: int = 200) -> dict[str, Any]:
    """Return a catalog result."""
    return {"status": status, "body": body, "provenance": PROVENANCE}


def seen(fields: str, result: Any) -> Any:
    """Return what fields leave of a result."""
    return shaped(answer(result), fields_of(fields))


def each(path: str, result: Any, fields: str | None = None) -> Listed:
    """Return what --each prints of a result."""
    return listed(answer(result), each_of(path), fields_of(fields) if fields else None)


def refused(text: str) -> bool:
    """Whether a list of paths is refused as an argument, naming fields and not repeating what was typed."""
    try:
        fields_of(text)
    except HeadwaterError as refusal:
        error = refusal
    else:
        return False
    assert (error.code, error.stage, error.next_action) == ("invalid_input", "arguments", "none")
    assert error.data == {"field": "fields"}
    assert "sentinel" not in error.message
    return True


# The grammar of a path


@pytest.mark.clause("CLI-603")
def test_blanks_around_an_item_are_nothing():
    assert fields_of(" ticket.id , ticket.status ") == fields_of("ticket.id,ticket.status")


@pytest.mark.clause("CLI-604")
def test_dots_lead_into_members():
    assert seen("a.b.c", {"a": {"b": {"c": 3, "d": 4}}}) == {"a": {"b": {"c": 3}}}


@pytest.mark.clause("CLI-604", "CLI-621")
@pytest.mark.parametrize(
    "name", ["a b", "a\tb", "a\x00b", "a\x7fb", "a\x85b", "a\u00a0b", "a\u2028b", "a]", "a[", "a/b"]
)
def test_a_name_holds_no_blank_control_or_mark(name):
    assert refused(name)
    assert refused(f"{name}:x")


@pytest.mark.clause("CLI-605")
def test_brackets_go_over_an_array_behind_a_name_and_at_the_start():
    events = {"events": [{"field_name": "status", "value": 1}, {"field_name": "priority"}]}
    assert seen("events[].field_name", events) == {"events": [{"field_name": "status"}, {"field_name": "priority"}]}
    assert seen("names:[].field_name", events["events"]) == {"names": ["status", "priority"]}
    assert seen("events[]", events) == events


@pytest.mark.clause("CLI-606")
def test_a_pointer_names_any_key():
    result = {"page[after]": "x", "a/b": 1, "a~b": 2, "a:b": 3, "a.b": 4, "a b": 5, "": 6, "~1": 7}
    for pointer, key in (("/page[after]", "page[after]"), ("/a~1b", "a/b"), ("/a~0b", "a~b"), ("/a:b", "a:b")):
        assert seen(pointer, result) == {key: result[key]}
    for pointer, key in (("/a.b", "a.b"), ("/a b", "a b"), ("/", ""), ("/~01", "~1")):
        assert seen(pointer, result) == {key: result[key]}
    assert seen("x:/a:b", result) == {"x": 3}


@pytest.mark.clause("CLI-621")
@pytest.mark.parametrize("text", ["/a~2", "/a~", "x:/~", "/\udc80", "\udc80"])
def test_a_pointer_that_is_none_is_refused(text):
    assert refused(text)


@pytest.mark.clause("CLI-607")
def test_a_comma_separates_in_a_pointer_too():
    assert seen("/a,b", {"a,b": 1, "a": 2, "b": 3}) == {"a": 2, "b": 3}
    assert seen(" /a ", {"a": 1, "a ": 2, " a": 3}) == {"a": 1}


@pytest.mark.clause("CLI-608")
def test_an_alias_is_the_name_of_what_its_path_reaches():
    assert seen("state:ticket.status", TICKET) == {"state": "open"}
    assert seen("all:ticket", TICKET) == {"all": TICKET["ticket"]}


@pytest.mark.clause("CLI-609")
@pytest.mark.parametrize("path", ["events.0.x", "/events/0/x"])
def test_there_are_no_indexes(path):
    assert seen(path, {"events": [{"x": 1}]}) == {"missing": [path]}


@pytest.mark.clause("CLI-628")
def test_a_name_may_hold_a_tilde():
    assert seen("a~b", {"a~b": 1, "a/b": 2}) == {"a~b": 1}


@pytest.mark.clause("CLI-631")
def test_a_pointer_is_printed_by_its_names():
    assert seen("/a~1b/c", {"a/b": {"c": 1, "d": 2}}) == {"a/b": {"c": 1}}


@pytest.mark.clause("CLI-621")
@pytest.mark.parametrize(
    "text",
    ["", " ", ",", "a..b", "a,,b", "a,", ".a", "a.", "a[0]", "a[]b", "a[][]", "[]a", "[]", "x:[]", ":a", "a:", "a: b",
     "a::b", "a:b:c", "a.[].b", "sentinel..x"],
)  # fmt: skip
def test_a_malformed_path_is_refused(text):
    assert refused(text)


@pytest.mark.clause("CLI-622")
@pytest.mark.parametrize("text", ["a.b:c", "a[]:c", "a b:c", "a :c", "[].x", "y,[].x"])
def test_an_alias_that_is_no_name_and_a_nameless_array_are_refused(text):
    assert refused(text)


@pytest.mark.clause("CLI-623")
@pytest.mark.parametrize("name", ["missing", "records", "request_id", "mutation", "source_audit"])
def test_the_names_of_an_answer_are_taken(name):
    assert refused(f"{name}:ticket.id")
    assert refused(f"{name}.x")
    assert refused(f"/{name}")
    assert refused(f"{name}[]")
    assert not refused(f"x.{name}")
    assert not refused(f"x:{name}")


@pytest.mark.clause("CLI-624")
@pytest.mark.parametrize("text", ["a:x,a:y", "a:x,a.y", "a.y,a:x", "a:x,a:x", "a:x,/a/b"])
def test_an_alias_is_not_used_twice(text):
    assert refused(text)


@pytest.mark.clause("CLI-625")
def test_paths_and_steps_are_bounded():
    most = [f"a{number}" for number in range(256)]
    assert not refused(",".join(most))
    assert refused(",".join([*most, "b"]))
    assert not refused(".".join(["a"] * 64))
    assert refused(".".join(["a"] * 65))
    assert refused("/a" * 65)
    assert not refused(".".join(["a[]"] * 32))
    assert refused(".".join(["a[]"] * 33))


# What is left of a result


@pytest.mark.clause("CLI-610")
def test_a_path_begins_at_the_body_where_the_result_has_no_such_member():
    result = catalog(TICKET | {"provenance": "inner"})
    assert seen("ticket.id", result) == {"ticket": {"id": 101}}
    assert seen("body.ticket.id", result) == {"body": {"ticket": {"id": 101}}}
    assert seen("status", result) == {"status": 200}
    assert seen("provenance", result) == {"provenance": PROVENANCE}
    assert seen("ids:[].id", catalog([{"id": 1}, {"id": 2}])) == {"ids": [1, 2]}


@pytest.mark.clause("CLI-610")
@pytest.mark.parametrize("status", [True, "200", None, Decimal(200)])
def test_a_result_without_an_integer_status_is_no_catalog_result(status):
    assert seen("ticket", {"status": status, "body": TICKET, "provenance": {}}) == {"missing": ["ticket"]}
    assert seen("ticket", {"status": 200, "body": TICKET}) == {"missing": ["ticket"]}


@pytest.mark.clause("CLI-611")
def test_paths_with_one_beginning_join():
    assert seen("ticket.id,ticket.status", TICKET) == {"ticket": {"id": 101, "status": "open"}}


@pytest.mark.clause("CLI-612")
def test_an_array_keeps_the_elements_that_match():
    assert seen("x[].a", {"x": [{"a": 1}, {}]}) == {"x": [{"a": 1}]}
    assert seen("x[].a", {"x": []}) == {"x": []}
    assert seen("x[].y[].a", {"x": [{"y": []}, {"y": [{}]}, {"y": [{}, {"a": 1}]}]}) == {
        "x": [{"y": []}, {"y": [{"a": 1}]}]
    }


@pytest.mark.clause("CLI-613")
@pytest.mark.parametrize(
    "path", ["nope", "a.nope", "a.b.c", "a[]", "a.b[].c", "d[].nope", "d.nope", "d[].e[]", "y:nope"]
)
def test_what_matches_nothing_is_missing_as_it_was_written(path):
    assert seen(f" {path} ", {"a": {"b": 1}, "d": [{"e": 1}, 2, None, [3]]}) == {"missing": [path]}


@pytest.mark.clause("CLI-614")
def test_null_is_there():
    assert seen("a,b[].c", {"a": None, "b": [{"c": None}]}) == {"a": None, "b": [{"c": None}]}
    assert seen("a.b", {"a": None}) == {"missing": ["a.b"]}


@pytest.mark.clause("CLI-629")
@pytest.mark.parametrize("fields", ["ticket,ticket.id", "ticket.id,ticket", "ticket.id,/ticket,ticket"])
def test_a_whole_member_is_printed_once(fields):
    assert seen(fields, TICKET) == TICKET


def test_below_a_whole_member_a_path_can_still_be_missing():
    assert seen("ticket,ticket.nope,ticket.nope", TICKET) == {**TICKET, "missing": ["ticket.nope"]}


@pytest.mark.clause("CLI-635")
def test_paths_through_one_array_join_element_by_element():
    assert seen("x[].a,x[].b", {"x": [{"a": 1}, {"b": 2}, {}]}) == {"x": [{"a": 1}, {"b": 2}]}
    assert seen("x[].a,x[]", {"x": [{"a": 1}, {}]}) == {"x": [{"a": 1}, {}]}
    assert seen("x.a,x[].b", {"x": [{"b": 2}]}) == {"x": [{"b": 2}], "missing": ["x.a"]}


@pytest.mark.clause("CLI-636")
def test_an_alias_of_an_array_is_what_its_elements_reach():
    assert seen("ids:events[].id", {"events": [{"id": 1}, {}, {"id": 2}]}) == {"ids": [1, 2]}
    assert seen("ids:events[].id", {"events": []}) == {"ids": []}


@pytest.mark.clause("CLI-633")
def test_members_of_the_plain_answer_give_way_and_stand_in_the_order_of_their_names():
    told = seen("ticket.id,state:ticket.status", catalog(TICKET))
    assert list(told.items()) == [("state", "open"), ("ticket", {"id": 101})]
    assert list(seen("z:ticket,ticket.id,b:ticket,a:ticket", TICKET)) == ["a", "b", "ticket", "z"]
    assert seen("nope", TICKET) == {"missing": ["nope"]}


@pytest.mark.clause("CLI-620")
def test_what_tells_of_the_request_is_always_said():
    told = {"request_id": "r1", "mutation": {"classification": "unknown"}, "source_audit": {"entries": 2}}
    assert shaped(answer(TICKET, **told), fields_of("nope")) == {"missing": ["nope"], **told}
    assert listed(answer({"x": [1]}, **told), each_of("x"), None).result == {"records": 1, **told}
    assert listed(answer({"x": 1}, **told), each_of("x"), None).result == {"missing": ["x"], "records": 0, **told}


@pytest.mark.clause("CLI-618", "CLI-632")
@pytest.mark.parametrize("status", [199, 300, 409, 503])
def test_a_failed_status_is_told_whole(status):
    whole = answer(catalog({"id": 1, "x": [1]}, status), request_id="r1")
    assert shaped(whole, fields_of("id")) == whole
    assert listed(whole, each_of("x"), fields_of("id")) == Listed((), whole)


@pytest.mark.parametrize("status", [200, 299])
def test_any_2xx_is_shaped(status):
    assert shaped(answer(catalog({"id": 1}, status)), fields_of("id")) == {"id": 1}


def test_without_fields_an_answer_is_as_it_was():
    assert shaped(answer(TICKET), None) == answer(TICKET)


# Line by line


@pytest.mark.clause("CLI-615")
@pytest.mark.parametrize(
    "text", ["a[]", "[].a", "x:a", "a,b", "/a,b", "", " ", "a..b", "a b", "/~2", ".".join("a" * 65)]
)
def test_each_takes_one_path_of_names(text):
    with pytest.raises(HeadwaterError) as caught:
        each_of(text)
    error = caught.value
    assert (error.code, error.stage, error.next_action) == ("invalid_input", "arguments", "none")
    assert error.data == {"field": "each"}


@pytest.mark.clause("CLI-630")
def test_each_takes_a_pointer():
    assert each("/page[items]", {"page[items]": [1, 2]}).lines == [1, 2]


@pytest.mark.clause("CLI-616")
def test_a_field_is_missing_where_no_element_has_it():
    told = each("body.comments", catalog({"comments": [{"x": 1, "z": 0}, {"y": 2}, 3]}), "x,nope,n:y")
    assert told.lines == [{"x": 1}, {"n": 2}, {}]
    assert told.result == {"missing": ["nope"], "records": 3}
    assert each("comments", catalog({"comments": [{"x": 1}]}), "x") == Listed([{"x": 1}], {"records": 1})


@pytest.mark.clause("CLI-616")
@pytest.mark.parametrize("result", [{"x": {}}, {"x": None}, {"x": "text"}, {}, [], None, 1])
def test_each_of_what_is_no_array_is_missing_itself(result):
    assert each("x", result, "a") == Listed((), {"missing": ["x"], "records": 0})


def test_of_an_empty_array_nothing_is_missing():
    assert each("x", {"x": []}, "a") == Listed([], {"records": 0})


def test_an_element_that_looks_like_an_answer_of_a_catalog_is_an_element():
    element = catalog({"id": 1}, 404)
    assert each("x", {"x": [element]}, "id,status").lines == [{"status": 404}]


# Laws

NAMES = st.sampled_from(["a", "b", "c"])
NUMBERS = st.integers(-(10**30), 10**30) | st.decimals(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=20,
)
SEGMENTS = st.builds(str.__add__, NAMES, st.sampled_from(["", "[]"]))
PATHS = st.lists(SEGMENTS, min_size=1, max_size=3).map(".".join)
LISTS = st.lists(PATHS, min_size=1, max_size=4).map(",".join)


@given(LISTS, VALUES)
def test_every_path_reaches_in_what_is_printed_what_it_reached_before(text, value):
    fields = fields_of(text)
    printed = lines_of([value], fields)
    for path in fields.paths:
        assert reached(printed.values[0], path.steps) == reached(value, path.steps)
    assert lines_of(printed.values, fields) == printed


@given(VALUES)
def test_values_are_passed_on_and_not_made_anew(value):
    assert seen("a,n:a", {"a": value, "b": 0})["a"] is value
    assert seen("a,n:a", {"a": value, "b": 0})["n"] is value
    assert seen("b[].a", {"b": [{"a": value}]})["b"][0]["a"] is value


@given(st.text())
def test_whatever_is_typed_is_read_or_refused(text):
    refused(text)
