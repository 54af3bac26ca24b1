"""Admission: which records of a stream reach the store, as what, and why each other one does not."""

import json
from typing import Any

import msgspec
import pytest

from headwater import clock, limits
from headwater.collect.admission import Gate, blob_digest, canonical_component
from headwater.collect.effects import Keep, Receipt
from headwater.manifest.declaration import Stream
from headwater.wire.decode import NotAMessage, decode
from headwater.wire.messages import CollectionStream

AT = "2026-04-01T10:00:00Z"
SHA = "0f" * 32
SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "name": {"type": "string"}, "n": {"type": "integer"}, "at": {}, "x": {}},
    "required": ["id"],
}
ALPHA = Stream("alpha", schema=SCHEMA, primary_key=("id",))
TIMED = Stream("alpha", schema=SCHEMA, primary_key=("id",), consent_time_field="at")
DAYS = Stream("days", primary_key=("user", "day"))
FILES = Stream("files", schema={"type": "object", "properties": {"id": {}, "blob_ref": {}}}, primary_key=("id",))
BLOB = {"blob_id": "b1", "mime_type": "image/jpeg", "size_bytes": 3, "sha256": SHA}


def gate(stream: Stream = ALPHA, **narrowing: Any) -> Gate:
    """Open a gate, narrowed as a scope entry would."""
    return Gate(stream, msgspec.convert({"name": stream.name, **narrowing}, CollectionStream))


def line_of(data: Any, key: Any = "a", **members: Any) -> bytes:
    """Write a RECORD."""
    record = {"type": "RECORD", "stream": "alpha", "key": key, "data": data, "emitted_at": AT, **members}
    return json.dumps(record, ensure_ascii=False).encode()


def spelled(data: str) -> str:
    """Write a RECORD around data that is spelled already."""
    return f'{{"type":"RECORD","stream":"alpha","key":"a","data":{data},"emitted_at":"{AT}"}}'


def show(at: Gate, line: bytes) -> Keep | Receipt:
    """Show a line to a gate."""
    record, members = decode(line)
    return at.admit(record, members["data"], line)


def fate(at: Gate, data: Any, key: Any = "a", **members: Any) -> str:
    """Return "kept", or the reason of the receipt."""
    effect = show(at, line_of(data, key, **members))
    return "kept" if isinstance(effect, Keep) else effect.reason


# What is kept.


def test_the_bytes_of_a_record_are_kept_as_they_came():
    """Spelling, order, spaces and long numbers survive, since nothing is read and written again."""
    data = '{ "n":1, "id" : "a","x":[1.0, 1e2, 0.10000000000000000001, 12345678901234567890123, "\\u00e9\u2028é"]}'
    line = spelled(data)
    assert show(gate(), line.encode()) == Keep("alpha", "a", AT, None, data, None)


@pytest.mark.clause("CP-119", "CP-120")
def test_the_directive_is_no_part_of_what_is_kept():
    """An upsert is the same with and without its op, and no member of the envelope enters the data."""
    plain, spelled = (show(gate(), line_of({"id": "a"}, **op)) for op in ({}, {"op": "upsert", "note": 1}))
    assert plain == spelled == Keep("alpha", "a", AT, None, '{"id": "a"}', None)


@pytest.mark.clause("CP-119")
def test_a_delete_keeps_no_data_and_needs_none():
    """A tombstone has a key and a time; its data need not meet the schema, and may leave out even the key."""
    for data in ({}, {"id": "a"}, {"id": "a", "name": 5}):
        assert show(gate(), line_of(data, op="delete")) == Keep("alpha", "a", AT, None, None, None)
    assert fate(gate(), {"id": "b"}, op="delete") == "key_identity"
    assert fate(gate(DAYS), {"user": "u1"}, ["u1", "d1"], op="delete") == "kept"
    assert fate(gate(DAYS), {"user": "u2"}, ["u1", "d1"], op="delete") == "key_identity"


@pytest.mark.clause("CP-115")
@pytest.mark.parametrize(
    "emitted_at",
    ["2026-04-01T10:00:00Z", "2026-04-01T10:00:00.123456+02:00", "2026-04-01T10:00:00", "2026-06-30T23:59:60Z"],
)
def test_a_time_with_or_without_offset_is_kept_as_it_came(emitted_at):
    """ISO 8601 in any of its date-time forms passes, a leap second among them."""
    assert show(gate(), line_of({"id": "a"}, emitted_at=emitted_at)).emitted_at == emitted_at


@pytest.mark.clause("CP-115")
@pytest.mark.parametrize("emitted_at", ["yesterday", "", "2026-04-01", "2026-13-01T10:00:00Z", "1775037600", "T"])
def test_a_record_without_a_time_is_no_record(emitted_at):
    """Another emitted_at breaks the protocol, also right after a good one."""
    alpha = gate()
    assert fate(alpha, {"id": "a"}) == "kept"
    with pytest.raises(NotAMessage) as refusal:
        show(alpha, line_of({"id": "a"}, emitted_at=emitted_at))
    assert refusal.value.rule == "emitted_at"


@pytest.mark.clause("CP-115", "CP-116", "CP-119")
@pytest.mark.parametrize(
    "wrong",
    [
        {"stream": 3}, {"stream": ""}, {"data": []}, {"data": None}, {"emitted_at": 5}, {"emitted_at": "yesterday"},
        {"key": 5}, {"key": None}, {"key": {}}, {"key": [1]}, {"op": "merge"}, {"op": None},
    ],
)  # fmt: skip
def test_a_record_of_another_shape_ends_the_run(play, wrong):
    """A RECORD that is none is a violation, in scope or not."""
    record = {"type": "RECORD", "stream": "alpha", "key": "a", "data": {"id": "a"}, "emitted_at": AT, **wrong}
    play.refused("FLAT", json.dumps(record))


@pytest.mark.clause("CP-115")
@pytest.mark.parametrize("missing", ["stream", "key", "data", "emitted_at"])
def test_a_record_lacks_no_member(play, missing):
    """Each of the four members of a RECORD is mandatory."""
    record = {"type": "RECORD", "stream": "alpha", "key": "a", "data": {"id": "a"}, "emitted_at": AT}
    del record[missing]
    play.refused("FLAT", json.dumps(record))


# Identity.


@pytest.mark.clause("CP-121", "CORE-022")
def test_a_key_that_differs_from_the_data_is_receipted_with_its_bytes():
    """The record is not stored, its bytes can be looked at, and its neighbours are unharmed."""
    alpha, line = gate(), line_of({"id": "b"})
    receipt = show(alpha, line)
    assert receipt == Receipt("alpha", "key_identity", "The record's key differs from its primary key (id).", "a", line)
    assert fate(alpha, {"id": "a"}) == "kept"


@pytest.mark.clause("CP-116", "CP-121", "CORE-017", "CORE-018")
def test_a_compound_key_is_an_array_in_the_declared_order():
    """The canonical key is the array as minified JSON; another order, length or form is another key."""
    data = {"user": "ü1", "day": "2026-04-01"}
    assert show(gate(DAYS), line_of(data, ["ü1", "2026-04-01"])).key == '["ü1","2026-04-01"]'
    for key in (["2026-04-01", "ü1"], ["ü1"], ["ü1", "2026-04-01", ""], [], "ü1", '["ü1","2026-04-01"]'):
        assert fate(gate(DAYS), data, key) == "key_identity"
    assert fate(gate(), {"id": "a"}, ["a"]) == "key_identity"


@pytest.mark.clause("CORE-019")
@pytest.mark.parametrize(
    ("value", "component"),
    [
        ("7", "7"),
        (7, "7"),
        (7.0, "7"),
        (1e3, "1000"),
        (-1, "-1"),
        (7.5, "7.5"),
        (2**60, str(2**60)),
        ("2026-04-01",) * 2,
    ]
    + [(value, None) for value in (True, None, [], {})],
)
def test_a_component_is_a_string_in_its_one_form(value, component):
    """Integers are converted before they are compared, whatever their spelling; a boolean is no number."""
    stream = Stream("alpha", primary_key=("n",))
    assert canonical_component(value) == component
    assert fate(gate(stream), {"n": value}, str(component)) == ("key_identity" if component is None else "kept")
    if component is not None:
        assert fate(gate(stream), {"n": value}, f"{component}.0") == "key_identity"
        assert show(gate(Stream("s", primary_key=("n", "x"))), line_of({"n": value, "x": "x"}, [component, "x"])).key


def test_without_a_declared_primary_key_the_key_is_the_identity():
    """A first-revision manifest names none, and then nothing in the data has to agree."""
    assert show(gate(Stream("alpha")), line_of({"id": "b"})).key == "a"


def test_a_missing_key_field_is_no_identity():
    """A record that leaves out its primary key cannot be told from another."""
    assert fate(gate(Stream("alpha", primary_key=("id",))), {"name": "x"}) == "key_identity"


@pytest.mark.parametrize("character", ["k", "é", "𝄞"])
def test_a_key_is_bounded_in_bytes(character):
    """The limit is one of bytes, whatever the script; past it the record is receipted under its beginning."""
    stream = Stream("alpha", primary_key=("id",))
    fits = character * (limits.KEY_BYTES // len(character.encode()))
    assert fate(gate(stream), {"id": fits}, fits) == "kept"
    for data, op in (({"id": fits + "k"}, "upsert"), ({"id": "k"}, "upsert"), ({}, "delete")):
        receipt = show(gate(stream), line_of(data, fits + "k", op=op))
        assert receipt.reason == "key_size"
        assert f"{fits}k".startswith(receipt.key)


# Schema and blobs.


@pytest.mark.clause("CORE-016")
@pytest.mark.parametrize("data", [{"id": "a", "name": 5}, {"id": "a", "n": "1"}, {"id": "a", "n": 1.5}])
def test_data_that_breaks_its_schema_is_receipted(data):
    """A field of the wrong type is refused before storage, and the receipt names the place and not the value."""
    line = line_of(data)
    receipt = show(gate(), line)
    assert (receipt.reason, receipt.key, receipt.line) == ("schema", "a", line)
    assert receipt.message.endswith("breaks the rule `type` of the stream's schema.")


@pytest.mark.clause("CORE-016")
def test_data_without_a_required_field_is_receipted():
    """What the schema requires, every record has."""
    stream = Stream("alpha", schema={**SCHEMA, "required": ["id", "n"]}, primary_key=("id",))
    assert [fate(gate(stream), data) for data in ({"id": "a"}, {"id": "a", "n": 1})] == ["schema", "kept"]


@pytest.mark.clause("CORE-026")
@pytest.mark.parametrize(
    "wrong",
    [{"sha256": SHA.upper()}, {"sha256": SHA[1:]}, {"sha256": None}, {"size_bytes": -1}, {"size_bytes": "3"},
     {"size_bytes": True}, {"mime_type": "jpeg"}, {"mime_type": None}, {"blob_id": 5}],
)  # fmt: skip
def test_a_blob_ref_has_its_shape(wrong):
    """A reference without its digest, size, type or id points at nothing."""
    assert show(gate(FILES), line_of({"id": "a", "blob_ref": BLOB})).blob == SHA
    assert fate(gate(FILES), {"id": "a", "blob_ref": {**BLOB, **wrong}}) == "blob_ref"
    assert blob_digest({**BLOB, **wrong}) is None
    assert show(gate(FILES), line_of({"id": "a"})).blob is None


def test_a_blob_ref_that_is_not_declared_is_data():
    """Only a stream whose schema has the field gives it its meaning."""
    assert show(gate(Stream("alpha")), line_of({"id": "a", "blob_ref": "mine"})).blob is None


# Scope.


@pytest.mark.clause("CP-320")
def test_a_record_of_a_stream_outside_the_scope_never_gets_to_the_store(play):
    """It is counted and receipted without a byte of it, and the run goes on."""
    played = play("FLAT", "R beta 1; R ghost 1; R alpha 1; S alpha=a1", scope="alpha")
    message = "The record's stream is not in the scope of the run."
    assert played.effects[:2] == [Receipt(name, "out_of_scope", message, None, None) for name in ("beta", "?")]
    assert [type(effect) for effect in played.effects].count(Keep) == 1
    assert (played.verdict.status, played.committed, played.session.out_of_scope) == ("succeeded", {"alpha": "a1"}, 2)


@pytest.mark.clause("CP-321", "CP-325", "CP-311")
def test_only_the_resources_of_the_scope_pass():
    """A key that was not asked for changes nothing, not even by a delete; a compound one is named in its text form."""
    alpha = gate(resources=["r1"])
    assert [fate(alpha, {"id": key}, key) for key in ("r1", "r2")] == ["kept", "out_of_scope"]
    assert [fate(alpha, {}, key, op="delete") for key in ("r1", "r2")] == ["kept", "out_of_scope"]
    days = gate(DAYS, resources=['["u1","2026-04-01"]'])
    fates = [fate(days, {"user": "u1", "day": day}, ["u1", day]) for day in ("2026-04-01", "2026-04-02")]
    assert fates == ["kept", "out_of_scope"]


@pytest.mark.clause("CP-312", "CP-322", "CP-325")
@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2026-04-01T00:00:00Z", "kept"),
        ("2026-04-01", "kept"),
        ("2026-03-31T23:59:59.999999Z", "out_of_scope"),
        ("2026-04-30T23:59:59.999999Z", "kept"),
        ("2026-05-01T00:00:00Z", "out_of_scope"),
        ("2026-05-01T01:00:00+02:00", "kept"),
        ("2026-04-01T01:00:00+02:00", "out_of_scope"),
        (None, "out_of_scope"),
        (5, "out_of_scope"),
        ("April", "out_of_scope"),
    ],
)
def test_a_window_has_its_beginning_and_not_its_end(at, expected):
    """since is inclusive, until exclusive, by the moment and not its spelling; no time is outside any window."""
    window = {"since": "2026-04-01T00:00:00Z", "until": "2026-05-01T00:00:00Z"}
    assert fate(gate(TIMED, time_range=window), {"id": "a", "at": at}) == expected


@pytest.mark.clause("CP-312", "CP-322")
def test_a_window_may_be_open_on_either_side():
    """Only the side that was named bounds; a record without a consent time is outside both."""
    moments = [{"id": "a", "at": f"20{year}-01-01T00:00:00Z"} for year in (25, 26, 27)] + [{"id": "a"}]
    for window, expected in (({"since": "2026-01-01T00:00:00Z"}, [1, 2]), ({"until": "2026-01-01T00:00:00Z"}, [0])):
        timed = gate(TIMED, time_range=window)
        assert [n for n, data in enumerate(moments) if fate(timed, data) == "kept"] == expected
    assert [n for n, data in enumerate(moments) if fate(gate(TIMED), data) == "kept"] == [0, 1, 2, 3]


def test_the_consent_time_is_kept_beside_the_record():
    """The store gets the moment as microseconds since 1970, none where the field holds no time."""
    expected = clock.micros(clock.parse("2026-04-01T08:00:00Z"))
    assert show(gate(TIMED), line_of({"id": "a", "at": "2026-04-01T10:00:00+02:00"})).time == expected
    assert show(gate(TIMED), line_of({"id": "a", "at": "April"})).time is None


@pytest.mark.clause("CP-323", "CP-324", "CP-325")
def test_only_the_fields_of_the_scope_pass():
    """A field that was not asked for refuses the record, bytes and all; those every record needs are never extra."""
    alpha = gate(fields=["name"])
    assert fate(alpha, {"id": "a", "name": "x"}) == "kept"
    assert fate(gate(TIMED, fields=["name"]), {"id": "a", "at": AT}) == "kept"
    receipt = show(alpha, line_of({"id": "a", "x": "secret"}))
    assert (receipt.reason, receipt.key, receipt.line) == ("out_of_scope", None, None)


@pytest.mark.clause("CP-320", "CP-321")
def test_scope_is_asked_before_anything_else():
    """What was not asked for is not even kept as the evidence of its own fault."""
    alpha = gate(resources=["r1"])
    for line in (line_of({"id": "b"}, "r2"), line_of({"id": "r2", "name": 5}, "r2")):
        message = "The record lies outside the scope of the run."
        assert show(alpha, line) == Receipt("alpha", "out_of_scope", message, None, None)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ('{"id":"a","id":"b"}', "repeated_member"),
        ('{"id":"\\ud800"}', "lone_surrogate"),
        (f'{{"id":{"[" * 400}{"]" * 400}}}', "nested_too_deep"),
    ],
)
def test_an_unreadable_record_is_receipted_and_the_run_goes_on(play, data, reason):
    """Its bytes are kept, unless a narrowed scope leaves open whether they were asked for."""
    line = spelled(data)
    played = play("FLAT", f"{line}; S alpha=a1")
    assert (played.effects[0].reason, played.effects[0].line) == (reason, line.encode())
    assert (played.verdict.status, played.committed) == ("succeeded", {"alpha": "a1"})
    outside = play("FLAT", f"{line}; S beta=b1", scope="beta")
    assert (outside.effects[0].reason, outside.effects[0].line) == ("out_of_scope", None)
