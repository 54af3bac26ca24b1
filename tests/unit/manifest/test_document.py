"""From bytes to an object: repeated members and depth, and the laws of refusing."""

import copy
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.manifest.documents import MANIFEST, SOURCE

from headwater import limits
from headwater.manifest.reading import examine


@pytest.mark.parametrize(
    ("document", "places"),
    [
        (b'{"connector_id":"a","connector_id":"b"}', ["/connector_id"]),
        (b'{"connector_id":"a","connector_id":"a"}', ["/connector_id"]),
        (b'{"a":[{"b":1,"b":2,"b":3},{"c/d":1,"c/d":1}]}', ["/a/0/b", "/a/1/c~1d"]),
        (b'{"a":{"x":1,"x":2},"a":{"y":1,"y":2}}', ["/a", "/a/y"]),
        (b'{"a":1,"\\u0061":2}', ["/a"]),
    ],
)
def test_a_member_that_stands_twice_is_refused_where_it_stands(faults, document: bytes, places: list[str]) -> None:
    """One reader would take the first, another the last."""
    assert sorted(faults(document)) == [(place, "repeated_member") for place in places]


def test_depth_has_a_bound(faults) -> None:
    """The bound itself is read, one level more is refused as a whole."""
    for levels, expected in ((limits.NESTING_LEVELS - 1, []), (limits.NESTING_LEVELS, [("", "depth")])):
        deep = json.loads("[" * levels + "]" * levels)
        assert faults({"connector_id": "c", "streams": [{"name": "a"}], "notes": deep}) == expected


def test_a_document_lists_a_bounded_number_of_faults(faults) -> None:
    """A document that is wrong everywhere is not told all of it."""
    bindings = {f"b{number}": None for number in range(2_000)}
    found = faults({"connector_id": "c", "streams": [{"name": "a"}], "runtime_requirements": {"bindings": bindings}})
    assert len(found) == limits.FAULTS_PER_DOCUMENT
    rows = [*([None] * limits.FAULTS_PER_DOCUMENT), {"name": "a", "schema": {"properties": 5, "allOf": 3}}]
    assert len(faults({"connector_id": "c", "streams": rows})) == limits.FAULTS_PER_DOCUMENT
    owned = [{"name": f"s{number}", "instance_id": 1} for number in range(900)]
    assert len(faults({"connector_id": "c", "streams": owned})) == limits.FAULTS_PER_DOCUMENT
    twice = b'{"connector_id":"c",' + b",".join(b'"%d":1,"%d":1' % (n, n) for n in range(900)) + b"}"
    assert len(faults(twice)) == limits.FAULTS_PER_DOCUMENT


def places(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every value in a document."""
    yield path
    steps = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for step, value in steps:
        yield from places(value, (*path, step))


def resolves(document: Any, pointer: str) -> bool:
    """Say whether a pointer leads to a value, or to a member that an object lacks."""
    node, steps = document, [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    for number, step in enumerate(steps):
        if isinstance(node, dict) and step in node:
            node = node[step]
        elif isinstance(node, list) and step.isdigit() and int(step) < len(node):
            node = node[int(step)]
        else:
            return isinstance(node, dict) and number == len(steps) - 1
    return True


ODD = [None, True, 0, -1, 1e300, 10**30, "", "*", "id", "ghost", [], {}, [[]], [None], {"": None}]
WORDS = ["type", "properties", "$ref", "$schema", "allOf", "name", "required", "~/"]
ANSWERS = ["string", {}, [], {"a": 1}, "#/$defs/x", "x.json", ["id"], [{"$ref": "#"}], True]
VALUES = st.one_of(
    st.sampled_from(ODD),
    st.recursive(st.none() | st.text(max_size=3) | st.integers(), lambda inner: st.lists(inner, max_size=3)),
    st.dictionaries(st.sampled_from(WORDS), st.sampled_from(ANSWERS), max_size=3),
)


def mutated(document: Any, path: tuple[str | int, ...], value: Any, change: str) -> Any:
    """Return a copy of a document with the value at a path replaced, removed or joined by another."""
    copied = copy.deepcopy(document)
    if not path:
        return value
    holder = copied
    for step in path[:-1]:
        holder = holder[step]
    if change == "remove":
        del holder[path[-1]]
    elif change == "add":
        holder.insert(0, value) if isinstance(holder, list) else holder.update(instance_ids=value)
    else:
        holder[path[-1]] = value
    return copied


@settings(max_examples=600, deadline=None)
@given(st.data())
def test_a_good_document_with_one_thing_changed_is_read_or_refused_at_a_place_that_is_there(data: Any) -> None:
    """Never a traceback, and every pointer leads to a value or names the member that is missing."""
    document = data.draw(st.sampled_from([SOURCE, MANIFEST]))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(places(document))))
        document = mutated(document, path, data.draw(VALUES), data.draw(st.sampled_from(["replace", "remove", "add"])))
    declaration, found = examine(json.dumps(document).encode())
    assert (declaration is None) == bool(found)
    assert [fault.pointer for fault in found if not resolves(document, fault.pointer)] == []
    if declaration is not None:
        for stream in declaration.streams.values():
            assert set(stream.primary_key) <= stream.essential_fields


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(document: bytes) -> None:
    """Whatever a file holds, the answer is a declaration or faults."""
    declaration, found = examine(document)
    assert (declaration is None) == bool(found)


def heavy(n: int, kind: str) -> bytes:
    """Write a document of about n parts that asks most of one of the reader's rules."""
    rows: list[dict[str, Any]] = [{"name": "a", "semantics": "mutable_state"}]
    document: dict[str, Any] = {"connector_id": "c", "streams": rows}
    fields = {f"f{number}": {"type": "string"} for number in range(n)}
    match kind:
        case "fields":
            rows[0] |= {"schema": {"properties": fields}, "primary_key": list(fields)}
        case "views":
            rows[0] |= {"views": [{"id": f"{k}", "label": "l", "fields": ["f0"]} for k in range(n)]}
        case "presets":
            rows[0] |= {"schema": {"properties": fields}}
            document["selection_presets"] = [
                {"id": "p", "label": "l", "streams": [{"name": f"s{number}"} for number in range(n)]}
            ]
        case "loops":
            names = [f"s{number}" for number in range(900)]
            named = names[: n // 900]
            document["streams"] = [
                {"name": name, "parent_streams": named, "coverage_strategy": "parent_detail_accounting"}
                for name in names
            ]
        case "refs":
            parts = [{"$ref": f"#/$defs/d{number}"} for number in range(n)]
            rows[0] |= {"schema": {"allOf": parts, "$defs": {f"d{number}": {} for number in range(n)}}}
    return json.dumps(document).encode()


@pytest.mark.parametrize("kind", ["fields", "views", "presets", "loops", "refs"])
def test_reading_takes_time_in_proportion_to_the_size(kind: str) -> None:
    """Eight times the parts take far less than the sixty-four times that a quadratic rule would."""

    def seconds(n: int) -> float:
        document = heavy(n, kind)
        examine(document)
        start = time.process_time()
        examine(document)
        return time.process_time() - start

    small, large = seconds(4_000), seconds(32_000)
    assert large < 24 * max(small, 0.002)
