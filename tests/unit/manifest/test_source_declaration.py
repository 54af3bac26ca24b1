"""Source declarations: what PDPP Core asks of one, and what a good one becomes."""

import copy
import json
from typing import Any

import msgspec
import pytest
from unit.manifest.documents import COLLECTION, MANIFEST, RUN, SOURCE, STREAM, THREADS

from headwater import limits
from headwater.collect.plan import plan_scope
from headwater.errors import UsageError
from headwater.manifest.declaration import Declaration, Preset, Relationship, Selected, Shape, View
from headwater.manifest.reading import read
from headwater.wire.messages import CollectionScope


def source(**members: Any) -> dict[str, Any]:
    """Return the source declaration with members replaced; None leaves one out."""
    return {name: value for name, value in {**SOURCE, **members}.items() if value is not None}


def of_stream(**members: Any) -> dict[str, Any]:
    """Return the source declaration with members of its first stream replaced; None leaves one out."""
    row = {name: value for name, value in {**STREAM, **members}.items() if value is not None}
    return source(streams=[row, THREADS])


def accepted(document: dict[str, Any]) -> Declaration:
    """Read a document that must be good."""
    return read(json.dumps(document).encode())


# What a document is


def test_the_shape_shows_in_the_document() -> None:
    """No flag says what is read: the members do."""
    assert accepted(SOURCE).shape is Shape.SOURCE
    assert accepted(MANIFEST).shape is Shape.CONSENT
    plain = {"connector_id": "c", "streams": [{"name": "a", "incremental": True}]}
    assert accepted(plain).shape is Shape.PLAIN


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, ("/connector_id", "required")),
        ({"streams": [{"name": "a"}]}, ("/connector_id", "required")),
        ({"provider_id": "x", "source_declaration": SOURCE}, ("/connector_id", "required")),
        ({**SOURCE, "connector_id": "c"}, ("/connector_id", "both")),
        ({**MANIFEST, "source": None}, ("/connector_id", "both")),
    ],
)
def test_a_document_that_is_neither_or_both_is_refused(faults, document: Any, expected: tuple[str, str]) -> None:
    """It is not guessed which of the two was meant."""
    assert faults(document) == [expected]


def test_a_source_declaration_becomes_a_declaration() -> None:
    """Everything that it says is kept as plain values."""
    read_ = accepted(SOURCE)
    assert (read_.connector_id, read_.version, read_.display_name, read_.publisher, read_.source_kind) == (
        "https://x.example/connectors/chat",
        "2026-08-11",
        "Chat",
        "https://x.example/",
        "connector",
    )
    messages = read_.streams["messages"]
    assert (messages.semantics, messages.primary_key) == ("mutable_state", ("id",))
    assert (messages.fields_selectable, messages.resources_selectable) == (True, False)
    assert messages.views == (View("short", "Times only", ("id", "at")),)
    assert messages.relationships == (Relationship("thread", "threads", "thread", "has_one"),)
    assert messages.range_filters == {"at": ("gte", "lt"), "count": ("gte", "gt", "lte", "lt")}
    assert messages.searchable == ("text",)
    assert (messages.label, messages.detail) == ("Your messages", "Texts and times.")
    assert read_.presets == (Preset("all", "All", (Selected("messages", "short"), Selected("threads"))),)
    assert read_.extensions == SOURCE["extensions"]


def test_a_manifest_with_a_consent_surface_says_the_same_of_its_streams() -> None:
    """The shapes differ in what stands around the streams."""
    left, right = accepted(SOURCE), accepted(MANIFEST)
    assert left.streams["messages"].views == right.streams["messages"].views
    assert left.presets == right.presets
    assert right.streams["threads"].parents == ("messages",)
    assert right.required_bindings == {"network"}
    assert left.bindings == {}


# The head


@pytest.mark.clause("CORE-100")
@pytest.mark.parametrize("version", ["0.1", "0.1.1", "1.0.0", "", 0.1, None])
def test_a_declaration_names_its_protocol_version(faults, version: Any) -> None:
    """Exactly one is read; none at all is none."""
    assert faults(source(protocol_version=version)) == [("/protocol_version", "protocol_version")]


@pytest.mark.clause("CORE-101")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"kind": "device", "id": "https://x.example"}, ("/source/kind", "enum")),
        ({"kind": "connector", "id": "spotify"}, ("/source/id", "uri")),
        ({"kind": "connector", "id": "/a/b"}, ("/source/id", "uri")),
        ({"kind": "connector", "id": "//x.example/a"}, ("/source/id", "uri")),
        ({"kind": "connector", "id": "https://x.example/a b"}, ("/source/id", "uri")),
        ({"kind": "connector", "id": "https://x.example/%zz"}, ("/source/id", "uri")),
        ({"kind": "connector", "id": "https:"}, ("/source/id", "uri")),
        ({"kind": "connector"}, ("/source/id", "required")),
        ({"id": "https://x.example"}, ("/source/kind", "required")),
        ({"kind": "connector", "id": "https://x.example", "extra": 1}, ("/source/extra", "unknown_member")),
        ([], ("/source", "type")),
    ],
)
def test_a_source_is_a_kind_and_an_absolute_uri(faults, given: Any, expected: tuple[str, str]) -> None:
    """Nothing more, nothing less."""
    assert expected in faults(source(source=given))


@pytest.mark.clause("CORE-101")
@pytest.mark.parametrize("kind", ["connector", "provider_native"])
@pytest.mark.parametrize("uri", ["https://x.example/a%20b?c#d", "urn:example:a", "tag:x.example,2026:chat"])
def test_each_kind_and_any_absolute_uri_is_accepted(kind: str, uri: str) -> None:
    """The id is kept letter for letter."""
    read_ = accepted(source(source={"kind": kind, "id": uri}))
    assert (read_.source_kind, read_.connector_id) == (kind, uri)


@pytest.mark.clause("CORE-102")
@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"declaration_version": ""}, ("/declaration_version", "type")),
        ({"declaration_version": 3}, ("/declaration_version", "type")),
        ({"declaration_version": None}, ("/declaration_version", "required")),
        ({"publisher": None}, ("/publisher", "required")),
        ({"publisher": {}}, ("/publisher/id", "required")),
        ({"publisher": {"id": "x.example"}}, ("/publisher/id", "uri")),
        ({"display": None}, ("/display", "required")),
        ({"display": {}}, ("/display/name", "required")),
        ({"display": {"name": 3}}, ("/display/name", "type")),
        ({"display": {"name": ""}}, ("/display/name", "type")),
    ],
)
def test_a_declaration_says_its_revision_its_publisher_and_its_name(faults, members: Any, expected: Any) -> None:
    """Each is refused at its own place, once."""
    assert faults(source(**members)) == [expected]


@pytest.mark.clause("CORE-102")
@pytest.mark.parametrize("version", ["b", "2026-08-11", "v1", "\u2603", " "])
def test_a_revision_is_opaque(version: str) -> None:
    """Any text is a revision, and none comes before another."""
    assert accepted(source(declaration_version=version)).version == version


@pytest.mark.clause("CORE-121", "CORE-124")
def test_extensions_are_named_by_uris_and_not_looked_into(faults) -> None:
    """What stands in one is theirs; a bare name is refused; none at all is fine."""
    assert faults(source(extensions={"foo": 1, "https://x.example/p": 2})) == [("/extensions/foo", "uri")]
    assert faults(source(extensions=[])) == [("/extensions", "type")]
    for extensions in (None, {}, {"urn:x:y": None}, {"https://x.example/p": [{"$schema": "draft-07", "name": "*"}]}):
        assert faults(source(extensions=extensions)) == []


@pytest.mark.clause("CORE-123")
@pytest.mark.parametrize(
    ("document", "place"),
    [
        (source(instance_ids=[]), "/instance_ids"),
        (source(source={**SOURCE["source"], "instance_ids": ["a"]}), "/source/instance_ids"),
        (of_stream(instance_ids=["me"]), "/streams/0/instance_ids"),
        (of_stream(display={"label": "a", "connection_id": "c"}), "/streams/0/display/connection_id"),
        ({**MANIFEST, "setup": [{"a": {"connector_instance_id": 1}}]}, "/setup/0/a/connector_instance_id"),
    ],
)
def test_a_declaration_names_no_owners_instance(faults, document: Any, place: str) -> None:
    """Whose data is meant is said in a selection, at any depth of a declaration it is refused."""
    assert (place, "owner_handle") in faults(document)


@pytest.mark.clause("CORE-123")
def test_a_record_may_have_a_field_of_that_name() -> None:
    """A provider's own `instance_id` is data."""
    schema = {"type": "object", "properties": {**STREAM["schema"]["properties"], "instance_id": {"type": "integer"}}}
    accepted(of_stream(schema=schema, query={"range_filters": {"instance_id": ["gt"]}}))


# Streams


@pytest.mark.clause("CORE-104", "CORE-131")
@pytest.mark.parametrize(
    ("name", "rule"),
    [("", "type"), ("*", "wildcard"), ("threads", "unique"), (3, "type"), ("messages?sender=x", "predicate")],
)
def test_a_stream_has_a_name_of_its_own(faults, name: Any, rule: str) -> None:
    """Empty, the wildcard, taken, or a predicate: refused at the name."""
    assert ("/streams/0/name", rule) in faults(of_stream(name=name))


@pytest.mark.clause("CORE-106")
@pytest.mark.parametrize(("value", "rule"), [(None, "required"), ("log", "enum"), ("append", "enum"), (3, "type")])
def test_semantics_are_one_of_two_words(faults, value: Any, rule: str) -> None:
    """In a source declaration, and in a manifest that has a consent surface, every stream says them."""
    assert faults(of_stream(semantics=value)) == [("/streams/0/semantics", rule)]
    rows = [{**row} for row in MANIFEST["streams"]]
    rows[1].pop("semantics") if value is None else rows[1].update(semantics=value)
    assert faults({**MANIFEST, "streams": rows}) == [("/streams/1/semantics", rule)]


@pytest.mark.parametrize("member", ["schema", "primary_key", "selection"])
def test_a_declared_stream_says_what_its_records_are(faults, member: str) -> None:
    """A source declaration owes schema, key and selection; a manifest may leave them out."""
    expected = faults(of_stream(**{member: None}))
    assert (f"/streams/0/{member}", "required") in expected
    rows = [{name: value for name, value in row.items() if name != member} for row in MANIFEST["streams"]]
    assert faults({**MANIFEST, "streams": rows}) == []


@pytest.mark.clause("CORE-107")
@pytest.mark.parametrize(
    "member", ["primary_key", "cursor_field", "consent_time_field"], ids=["key", "cursor", "consent time"]
)
def test_fields_are_those_of_the_schema(faults, member: str) -> None:
    """A name that the schema does not have, and one that only a field inside a field has, is refused."""
    for name in ("ghost", "at.day"):
        value: Any = [name] if member == "primary_key" else name
        assert faults(of_stream(**{member: value})) == [(f"/streams/0/{member}", "unknown_field")]
    assert (f"/streams/0/{member}", "unknown_field") in faults(of_stream(schema={"type": "object"}))


@pytest.mark.parametrize("kind", ["object", "array", "boolean", "null", ["null", "object"]])
def test_a_key_has_a_canonical_string(faults, kind: Any) -> None:
    """A field that can only hold a value without one is no key."""
    fields = {**STREAM["schema"]["properties"], "id": {"type": kind}}
    document = of_stream(schema={"type": "object", "properties": fields})
    assert faults(document) == [("/streams/0/primary_key", "key_type")]
    for fit in ("string", "integer", "number", ["null", "string"]):
        fields["id"] = {"type": fit}
        accepted(document)


@pytest.mark.clause("CORE-110")
def test_neither_time_is_taken_for_the_other(faults) -> None:
    """A cursor alone opens no window of time; a consent time alone is accepted and does."""
    window = msgspec.convert(
        {"streams": [{"name": "messages", "time_range": {"since": "2026-01-01"}}]}, CollectionScope
    )
    with pytest.raises(UsageError) as refused:
        plan_scope(accepted(of_stream(consent_time_field=None)), window)
    assert refused.value.data["faults"][0]["rule"] == "no_time_field"
    assert plan_scope(accepted(of_stream(cursor_field=None)), window).streams[0].time_range


@pytest.mark.clause("CORE-115")
def test_selection_is_two_booleans_and_grants_no_window(faults) -> None:
    """Anything else is refused; a `time_range` in it is nothing."""
    assert faults(of_stream(selection={"fields": "yes", "resources": True})) == [
        ("/streams/0/selection/fields", "type")
    ]
    assert faults(of_stream(selection={"fields": True})) == [("/streams/0/selection/resources", "required")]
    selection = {"fields": True, "resources": True, "time_range": True}
    declaration = accepted(of_stream(selection=selection, consent_time_field=None))
    window = msgspec.convert(
        {"streams": [{"name": "messages", "time_range": {"since": "2026-01-01"}}]}, CollectionScope
    )
    with pytest.raises(UsageError):
        plan_scope(declaration, window)


@pytest.mark.clause("CORE-116")
@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ({"id": "a", "label": "b", "fields": ["a.b"]}, ("/fields", "unknown_field")),
        ({"id": "a", "label": "b", "fields": ["id", "ghost"]}, ("/fields", "unknown_field")),
        ({"id": "a", "label": "b", "fields": "id"}, ("/fields", "type")),
        ({"id": "a", "label": "b"}, ("/fields", "required")),
        ({"id": "a", "fields": ["id"]}, ("/label", "required")),
        ({"label": "b", "fields": ["id"]}, ("/id", "required")),
        (3, ("", "type")),
    ],
)
def test_a_view_has_an_id_a_label_and_fields(faults, view: Any, expected: tuple[str, str]) -> None:
    """Its fields are top-level names of the schema."""
    good = STREAM["views"][0]
    assert faults(of_stream(views=[good, view])) == [(f"/streams/0/views/1{expected[0]}", expected[1])]


def test_two_views_do_not_share_an_id(faults) -> None:
    """A request names a view by it."""
    view = STREAM["views"][0]
    assert faults(of_stream(views=[view, view])) == [("/streams/0/views/1/id", "unique")]


@pytest.mark.clause("CORE-117")
@pytest.mark.parametrize("member", ["name", "stream", "foreign_key", "cardinality"])
def test_a_relationship_has_four_members(faults, member: str) -> None:
    """None may be missing."""
    related = {name: value for name, value in STREAM["relationships"][0].items() if name != member}
    assert faults(of_stream(relationships=[related])) == [(f"/streams/0/relationships/0/{member}", "required")]


@pytest.mark.clause("CORE-117")
@pytest.mark.parametrize(
    ("member", "value", "rule"),
    [
        ("cardinality", "many", "enum"),
        ("stream", "ghosts", "unknown_stream"),
        ("foreign_key", "ghost", "unknown_field"),
    ],
)
def test_a_relationship_leads_somewhere(faults, member: str, value: str, rule: str) -> None:
    """To a declared stream, by a field that one of the two has, as one or many."""
    related = {**STREAM["relationships"][0], member: value}
    assert faults(of_stream(relationships=[related])) == [(f"/streams/0/relationships/0/{member}", rule)]


@pytest.mark.clause("CORE-119")
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"at": ["between"]}, ("/at", "enum")),
        ({"at": "gte"}, ("/at", "type")),
        ({"at": []}, ("/at", "empty")),
        ({"ghost": ["gt"]}, ("/ghost", "unknown_field")),
        ([], ("", "type")),
    ],
)
def test_a_range_filter_maps_a_field_to_operators(faults, filters: Any, expected: tuple[str, str]) -> None:
    """There are four operators."""
    place = "/streams/0/query/range_filters"
    assert faults(of_stream(query={"range_filters": filters})) == [(f"{place}{expected[0]}", expected[1])]


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ({"lexical_fields": ["ghost"]}, ("/lexical_fields", "unknown_field")),
        ({"lexical_fields": "text"}, ("/lexical_fields", "type")),
        ({"lexical_fields": ["count"]}, ("/lexical_fields", "search_type")),
        (3, ("", "type")),
    ],
)
def test_what_can_be_searched_is_text_of_the_schema(faults, search: Any, expected: tuple[str, str]) -> None:
    """A number or a field that is not there is no text."""
    place = "/streams/0/query/search"
    assert faults(of_stream(query={"search": search})) == [(f"{place}{expected[0]}", expected[1])]


def test_the_fields_that_are_searched_are_bounded(faults) -> None:
    """As many as the bound are read, one more is refused."""
    names = [f"f{number}" for number in range(limits.SEARCH_FIELDS + 1)]
    schema = {"type": "object", "properties": {**STREAM["schema"]["properties"], **{name: {} for name in names}}}
    for searched, expected in ((names[:-1], []), (names, [("/streams/0/query/search/lexical_fields", "size")])):
        assert faults(of_stream(schema=schema, query={"search": {"lexical_fields": searched}})) == expected


@pytest.mark.clause("CORE-126")
def test_a_stream_is_called_by_its_label_else_its_description_else_its_name() -> None:
    """That is what the person who consents reads."""
    titles = [
        accepted(of_stream(**members)).streams["messages"].title
        for members in ({}, {"display": None}, {"display": None, "description": None})
    ]
    assert titles == ["Your messages", "What was said.", "messages"]


# Presets


@pytest.mark.clause("CORE-120")
@pytest.mark.parametrize("member", ["selection_presets", "profiles"])
def test_a_preset_lists_a_stream_once(faults, member: str) -> None:
    """A second time makes the document invalid, and not only the preset; connector manifests may say `profiles`."""
    twice = {"id": "a", "label": "b", "streams": [{"name": "messages"}, {"name": "threads"}, {"name": "messages"}]}
    assert faults(source(selection_presets=[twice])) == [("/selection_presets/0/streams/2/name", "unique")]
    rest = {name: value for name, value in MANIFEST.items() if name != "selection_presets"}
    assert faults({**rest, member: [twice]}) == [(f"/{member}/0/streams/2/name", "unique")]


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ({"label": "b", "streams": [{"name": "messages"}]}, ("/id", "required")),
        ({"id": "a", "streams": [{"name": "messages"}]}, ("/label", "required")),
        ({"id": "a", "label": "b"}, ("/streams", "required")),
        ({"id": "a", "label": "b", "streams": []}, ("/streams", "required")),
        ({"id": "a", "label": "b", "streams": 3}, ("/streams", "type")),
        ({"id": "a", "label": "b", "streams": [3]}, ("/streams/0", "type")),
        ({"id": "a", "label": "b", "streams": [{}]}, ("/streams/0/name", "required")),
        ({"id": "a", "label": "b", "streams": [{"name": "ghosts"}]}, ("/streams/0/name", "unknown_stream")),
        (
            {"id": "a", "label": "b", "streams": [{"name": "messages", "fields": ["ghost"]}]},
            ("/streams/0/fields", "unknown_field"),
        ),
        (
            {"id": "a", "label": "b", "streams": [{"name": "messages", "fields": ["id"], "view": "short"}]},
            ("/streams/0/fields", "both"),
        ),
    ],
)
def test_a_preset_selects_declared_streams(faults, preset: Any, expected: tuple[str, str]) -> None:
    """Each whole, as a view, or by fields of its schema."""
    assert faults(source(selection_presets=[preset])) == [(f"/selection_presets/0{expected[0]}", expected[1])]


# The Collection Profile's extension


def test_the_collection_extension_says_how_a_source_is_collected() -> None:
    """Bindings, questions and checkpoints stand there as they do in a connector manifest."""
    rows = [
        {"name": "threads", "incremental": False, "state_stream": "messages", "coverage_strategy": "checkpoint_window"}
    ]
    declaration = accepted(source(extensions={COLLECTION: {**RUN, "streams": rows}}))
    assert declaration.required_bindings == {"network"}
    assert declaration.bindings["x.example/gpu"].options == {"n": 2}
    assert declaration.human_interaction == {"otp"}
    assert declaration.streams["threads"].parents == ("messages",)
    assert (declaration.streams["threads"].incremental, declaration.streams["messages"].incremental) == (False, None)


RIDES = {"name": "threads", "state_stream": "messages"}
GPU = {"bindings": {"gpu": {"required": True}}}


@pytest.mark.parametrize(
    ("collection", "place", "rule"),
    [
        (3, "", "type"),
        ({"runtime_requirements": GPU}, "/runtime_requirements/bindings/gpu", "reserved_name"),
        ({"capabilities": {"human_interaction": ["sms"]}}, "/capabilities/human_interaction", "enum"),
        ({"streams": [{"name": "ghosts"}]}, "/streams/0/name", "unknown_stream"),
        ({"streams": [{"name": "threads"}, {"name": "threads"}]}, "/streams/1/name", "unknown_stream"),
        ({"streams": [{"name": "threads", "incremental": 1}]}, "/streams/0/incremental", "type"),
        ({"streams": [{"name": "messages"}, RIDES]}, "/streams/1", "strategy"),
    ],
)
def test_a_collection_extension_at_fault_is_refused_at_its_place(
    faults, collection: Any, place: str, rule: str
) -> None:
    """The pointer leads into the extension."""
    extension = "/extensions/https:~1~1pdpp.dev~1profile~1collection"
    assert faults(source(extensions={COLLECTION: collection})) == [(f"{extension}{place}", rule)]


# Other people's members


@pytest.mark.clause("CORE-115", "CP-900")
def test_members_of_others_are_left_alone() -> None:
    """What Core and the profile do not know is ignored, in both shapes, as deep as it goes."""
    for document in (SOURCE, MANIFEST):
        more = copy.deepcopy(document)
        more["setup"] = {"modality": "upload", "steps": [{"text": "Click"}]}
        more["streams"][0] |= {"freshness_strategy": "manual", "compaction": [1], "required": True}
        more["streams"][0]["query"] |= {"aggregations": {"count": True}, "expand": [{"name": "thread"}]}
        assert accepted(more).streams == accepted(document).streams
