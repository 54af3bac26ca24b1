"""How a definition says its walk: what is read, every reason to refuse it, and what a description says of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.manifest.faults import Reader
from headwater.manifest.walk import Condition, Counter, Walk, read_walk, walk_document

TABLE: dict[str, Any] = {
    "param": "page[after]",
    "next": "/meta/after_cursor",
    "records": "/comments",
    "query": {"sort": "created_at", "limit": 100, "all": True},
    "first_only": ["start_time"],
    "continues": {"pointer": "/again", "equals": True},
    "ends": [
        {"name": "has_more_false", "pointer": "/meta/has_more", "equals": False},
        {"name": "no_cursor", "pointer": "/meta/after_cursor", "absent": True},
        {"name": "empty_cursor", "pointer": "/meta/after_cursor", "empty": True},
    ],
}
END = {"name": "last", "pointer": "/more", "equals": False}


def read(table: Any) -> tuple[Walk | None, set[tuple[str, str]]]:
    """Read a walk; return it with the place and rule of each fault."""
    reader = Reader()
    walk = read_walk(reader, {"walk": table})
    return walk, {(fault.pointer.removeprefix("/walk"), fault.rule) for fault in reader.faults}


def faults(**members: Any) -> set[tuple[str, str]]:
    """Return the faults of a walk with other members; one that is None is left out."""
    table = {name: value for name, value in {**TABLE, **members}.items() if value is not None}
    return read(table)[1]


def ends(*rows: Any) -> set[tuple[str, str]]:
    """Return the faults of a walk with these ends."""
    return faults(ends=list(rows))


@pytest.mark.clause("CLI-652", "CLI-688")
def test_a_walk_is_read_and_described_as_it_was_written():
    walk, found = read(TABLE)
    assert found == set()
    assert walk == Walk(
        param="page[after]",
        records="/comments",
        ends=(
            Condition("equals", "has_more_false", "/meta/has_more", operand=False),
            Condition("absent", "no_cursor", "/meta/after_cursor"),
            Condition("empty", "empty_cursor", "/meta/after_cursor"),
        ),
        next="/meta/after_cursor",
        query={"sort": "created_at", "limit": 100, "all": True},
        first_only=("start_time",),
        continues=Condition("equals", "", "/again", operand=True),
    )
    assert walk_document(walk) == TABLE


@pytest.mark.clause("CLI-690")
def test_a_walk_that_counts_says_that_it_is_of_our_own():
    table = {"param": "page", "counter": {"start": 0}, "records": "", "ends": [{"name": "last", "fewer_than": "size"}]}
    walk, found = read(table)
    assert found == set()
    assert walk == Walk("page", "", (Condition("fewer_than", "last", operand="size"),), counter=Counter(0, 1))
    filled = {"counter": {"start": 0, "step": 1}, "query": {}, "first_only": []}
    assert walk_document(walk) == {**table, **filled, "extension": True}


@pytest.mark.clause("CLI-690")
def test_each_extension_is_said_by_itself():
    counted, _ = read({"param": "page", "counter": {}, "records": "/x", "ends": [END]})
    short, _ = read({"param": "page", "next": "/n", "records": "/x", "ends": [END, {"name": "few", "fewer_than": 10}]})
    plain, _ = read(TABLE)
    assert [walk and walk_document(walk).get("extension") for walk in (counted, short, plain)] == [True, True, None]


def test_an_operation_without_a_walk_has_none():
    reader = Reader()
    assert read_walk(reader, {}) is None
    assert reader.faults == []


@pytest.mark.parametrize("table", [None, [], "x", 1, True])
def test_a_walk_is_an_object(table):
    assert read(table) == (None, {("", "type")})


def test_an_empty_walk_lacks_everything_at_once():
    assert read({})[1] == {("", "position"), ("/param", "required"), ("/records", "required"), ("/ends", "size")}


@pytest.mark.clause("CLI-652")
def test_other_members_are_refused():
    assert faults(extension=True) == {("/extension", "unknown_member")}
    assert faults(next=None, counter={"stop": 1}) == {("/counter/stop", "unknown_member")}
    assert ends({**END, "not": 1}) == {("/ends/0/not", "unknown_member")}
    assert faults(continues={"pointer": "/a", "fewer_than": 3}) == {
        ("/continues/fewer_than", "unknown_member"),
        ("/continues", "condition"),
    }


@pytest.mark.parametrize("pointer", ["items", "/a~2", "/~", 7, None, ["/a"], "#/a"])
def test_a_pointer_that_is_none_is_refused(pointer):
    table = {**TABLE, "next": pointer, "records": pointer, "ends": [{**END, "pointer": pointer}]}
    assert read(table)[1] == {(place, "pointer") for place in ("/next", "/records", "/ends/0/pointer")}


def test_a_whole_page_may_be_its_records_but_not_its_next_position():
    assert faults(records="") == set()
    assert faults(next="") == {("/next", "pointer")}


def test_a_position_is_named_or_counted():
    assert faults(next=None) == {("", "position")}
    assert faults(counter={}) == {("", "position")}
    assert faults(next=None, counter={"start": 0, "step": 50}) == set()


@pytest.mark.parametrize(
    ("counter", "place"),
    [({"start": -1}, "/start"), ({"start": "1"}, "/start"), ({"step": 0}, "/step"), ({"step": True}, "/step"), (1, "")],
)
def test_a_counter_grows_from_a_number(counter, place):
    assert faults(next=None, counter=counter) == {(f"/counter{place}", "type")}


@pytest.mark.parametrize("value", [None, 1.5, [], {}])
def test_the_query_of_every_page_is_made_of_plain_values(value):
    assert faults(query={"a": 1, "b": value}) == {("/query/b", "type")}


@pytest.mark.parametrize(
    "members",
    [
        {"first_only": ["since", "since"]},
        {"first_only": ["page[after]"]},
        {"query": {"page[after]": 1}},
        {"query": {"since": 1}, "first_only": ["since"]},
    ],
)
def test_a_parameter_is_named_once(members):
    assert faults(**members) == {("", "repeated")}


def test_a_walk_has_ends_and_not_too_many():
    assert faults(ends=None) == {("/ends", "size")}
    assert ends() == {("/ends", "size")}
    assert ends(*({**END, "name": f"end{number}"} for number in range(16))) == set()
    assert ends(*({**END, "name": f"end{number}"} for number in range(17))) == {("/ends", "size")}
    assert ends("last", END) == {("/ends/0", "type")}


def test_an_end_has_a_name_of_its_own():
    assert ends(END, {**END, "pointer": "/x"}) == {("/ends/1/name", "repeated")}
    assert ends({"pointer": "/x", "equals": 1}) == {("/ends/0/name", "required")}
    assert ends({**END, "name": "Last One"}) == {("/ends/0/name", "shape")}
    assert ends({**END, "name": 1}, {**END, "name": 2}) == {("/ends/0/name", "type"), ("/ends/1/name", "type")}
    assert faults(continues={"name": "more", "pointer": "/more", "equals": True}) == set()


@pytest.mark.clause("CLI-688")
@pytest.mark.parametrize(
    "tests",
    [{}, {"equals": 1, "absent": True}, {"absent": True, "empty": True}, {"equals": 1, "fewer_than": 3}],
)
def test_an_end_is_one_condition(tests):
    assert ends({"name": "last", "pointer": "/x", **tests}) == {("/ends/0", "condition")}


@pytest.mark.clause("CLI-688")
@pytest.mark.parametrize(
    ("test", "operand"),
    [
        ("equals", None),
        ("equals", 1.5),
        ("equals", []),
        ("absent", False),
        ("absent", "yes"),
        ("empty", 1),
        ("empty", False),
    ],
)
def test_a_condition_compares_with_what_it_can(test, operand):
    assert ends({"name": "last", "pointer": "/x", test: operand}) == {(f"/ends/0/{test}", "type")}


@pytest.mark.parametrize("operand", [0, -1, "", True, 1.5, None])
def test_records_are_compared_with_a_number(operand):
    assert ends({"name": "last", "fewer_than": operand}) == {("/ends/0/fewer_than", "type")}


def test_records_are_counted_without_a_pointer():
    assert ends({"name": "last", "pointer": "/x", "fewer_than": 3}) == {("/ends/0/pointer", "condition")}


POINTERS = st.sampled_from(["/a", "/a/b~1c", "/0"])
PLAIN = st.text("abc", min_size=1, max_size=3) | st.integers(0, 9) | st.booleans()
CONDITIONS = st.builds(lambda pointer, value: {"pointer": pointer, "equals": value}, POINTERS, PLAIN)


@given(
    st.sampled_from([{"next": "/n"}, {"counter": {"start": 3, "step": 2}}]),
    POINTERS,
    st.dictionaries(st.sampled_from(["q", "r"]), PLAIN),
    st.lists(st.sampled_from(["s", "t"]), unique=True),
    st.lists(CONDITIONS, min_size=1, max_size=4),
)
def test_a_description_says_the_walk_that_was_read(turning, records, query, first_only, conditions):
    named = [{"name": f"end{number}", **condition} for number, condition in enumerate(conditions)]
    table = {"param": "p", **turning, "records": records, "query": query, "first_only": first_only, "ends": named}
    walk, found = read(table)
    assert found == set()
    assert walk is not None
    described = walk_document(walk)
    assert described.pop("extension", False) == ("counter" in turning)
    assert described == table
