"""Embedded schemas: the dialect, the references and the meta-schema, without a network."""

import json
from typing import Any

import pytest

from headwater.manifest.reading import examine
from headwater.manifest.schemas import compile_schema, explain, top_level_fields

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def places(schema: Any) -> list[str]:
    """Return where a stream's schema refuses its manifest, as pointers below the schema."""
    streams = [{"name": "alpha", "semantics": "mutable_state", "schema": schema}]
    _, faults = examine(json.dumps({"connector_id": "example", "streams": streams}).encode())
    assert all(fault.pointer.startswith("/streams/0/schema") for fault in faults)
    return [fault.pointer.removeprefix("/streams/0/schema") for fault in faults]


def refused(schema: Any) -> bool:
    """Say whether a stream with this schema refuses its manifest."""
    return bool(places(schema))


@pytest.mark.clause("CORE-112")
@pytest.mark.parametrize(
    "dialect",
    ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema", "", "2020-12", 5, None],
)
def test_another_dialect_is_refused(dialect: Any) -> None:
    """Only the 2020-12 dialect is spoken here, at any depth; another is reported where it stands."""
    assert places({"$schema": dialect, "type": "object"}) == ["/$schema"]
    below = {"properties": {"a": {"items": {"$schema": dialect}}}, "$defs": {"b": {"anyOf": [{"$schema": dialect}]}}}
    assert sorted(places(below)) == ["/$defs/b/anyOf/0/$schema", "/properties/a/items/$schema"]


def test_what_only_looks_like_a_keyword_is_none() -> None:
    """A field called `$schema`, and data that has such a member, are nobody's dialect."""
    other = "http://json-schema.org/draft-07/schema#"
    assert not refused({"properties": {"$schema": {"type": "string"}, "$ref": {}}, "required": ["$schema"]})
    assert not refused({"properties": {"a": {"const": {"$schema": other}, "default": {"$ref": other}}}})
    assert not refused({"examples": [{"$schema": other}], "properties": {"a": {"enum": [{"$ref": other}]}}})


@pytest.mark.clause("CORE-113")
def test_each_breach_of_the_meta_schema_is_reported_where_it_stands() -> None:
    """Two misspelt keywords are two faults, each at its own place."""
    schema = {"properties": {"a/b": {"type": "strng"}, "c": {"minimum": "1"}}, "required": "id"}
    assert sorted(places(schema)) == ["/properties/a~1b/type", "/properties/c/minimum", "/required"]
    assert places({"properties": {"a": {"pattern": "("}}}) == ["/properties/a/pattern"]


@pytest.mark.clause("CORE-112")
@pytest.mark.parametrize("named", [{}, {"$schema": DIALECT}])
def test_an_unnamed_dialect_means_2020_12(named: dict[str, str]) -> None:
    """`prefixItems` has its 2020-12 meaning whether or not the dialect is named."""
    schema = {**named, "properties": {"pair": {"prefixItems": [{"type": "string"}, {"type": "integer"}]}}}
    assert not refused(schema)
    assert compile_schema(schema).is_valid({"pair": ["a", 1]})
    assert not compile_schema(schema).is_valid({"pair": ["a", "b"]})


@pytest.mark.clause("CORE-113")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strng"},
        {"required": "id"},
        {"required": ["id", 3]},
        {"properties": []},
        {"properties": {"a": 3}},
        {"minimum": "1"},
        {"pattern": "("},
        {"$ref": 5},
        {"allOf": []},
    ],
)
def test_a_schema_that_breaks_its_meta_schema_is_refused(schema: dict[str, Any]) -> None:
    """A misspelt schema is refused with the manifest, not met by the first record."""
    assert refused(schema)


@pytest.mark.parametrize("schema", [True, False, None, [], "object"])
def test_a_stream_schema_is_an_object(schema: Any) -> None:
    """A boolean is a schema elsewhere; a stream's describes its records."""
    assert refused(schema)


@pytest.mark.clause("CORE-114")
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
@pytest.mark.parametrize("target", ["https://x.example/y.json", "other.json", "other.json#/a", "/a", "file:///etc/x"])
def test_a_reference_that_leaves_the_schema_is_refused(keyword: str, target: str) -> None:
    """A reference elsewhere is refused at any depth, by its text, before anything could fetch it."""
    schema = {"properties": {"a": {"anyOf": [{"type": "null"}, {keyword: target}]}}}
    assert places(schema) == [f"/properties/a/anyOf/1/{keyword}"]


@pytest.mark.clause("CORE-114")
def test_a_local_reference_is_accepted() -> None:
    """A fragment that the schema has is followed; one that it lacks is refused."""
    assert not refused({"$ref": "#/$defs/x", "$defs": {"x": {"type": "object"}}})
    assert not refused({"$dynamicRef": "#x", "$defs": {"x": {"$dynamicAnchor": "x", "type": "object"}}})
    assert refused({"$ref": "#/$defs/ghost"})


def test_a_property_may_be_called_ref() -> None:
    """A field of that name is no reference."""
    assert not refused({"properties": {"$ref": {"type": "string"}}, "required": ["$ref"]})


def test_a_schema_nested_without_end_is_refused() -> None:
    """Depth ends in a refusal, never in the end of the process."""
    schema: dict[str, Any] = {}
    for _ in range(900):
        schema = {"not": schema}
    _, (fault,) = examine(json.dumps({"connector_id": "c", "streams": [{"name": "a", "schema": schema}]}).encode())
    assert (fault.pointer, fault.rule) == ("", "depth")


def test_fields_are_found_wherever_a_schema_declares_them_for_the_record() -> None:
    """Through `allOf` and local references, round in circles too; not inside other fields."""
    schema = {
        "$ref": "#/$defs/x~1y",
        "allOf": [{"properties": {"b": {"properties": {"inner": {}}}}}, {"$ref": "#"}, {"$ref": "#/none/at/all"}],
        "properties": {"c": {}},
        "$defs": {"x/y": {"properties": {"a": {}}, "anyOf": [{"$ref": "#/$defs/x~1y"}, True]}},
    }
    assert top_level_fields(schema) == {"a", "b", "c"}


def test_formats_are_checked() -> None:
    """A `date-time` that is none breaks the schema."""
    validator = compile_schema({"properties": {"at": {"format": "date-time"}}})
    assert validator.is_valid({"at": "2026-04-01T10:00:00Z"})
    assert not validator.is_valid({"at": "yesterday"})


def test_an_explanation_never_repeats_the_value() -> None:
    """It names the place and the rule, because a record may hold anything."""
    validator = compile_schema({"properties": {"a": {"items": {"type": "integer"}}}})
    words = explain(validator, {"a": [1, "hunter2"]})
    assert words == "/a/1 breaks the rule `type` of the stream's schema"
