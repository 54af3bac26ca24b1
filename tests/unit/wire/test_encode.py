"""Encoding: one object, one line, and no member more or less than the profile has."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.decode import decode
from headwater.wire.encode import encode
from headwater.wire.messages import (
    CollectionScope,
    CollectionStream,
    DetailCoverage,
    Done,
    InteractionResponse,
    Start,
    TimeRange,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def start(**members: object) -> Start:
    """Make a START for one stream."""
    scope = CollectionScope([CollectionStream("alpha")])
    fields = {"run_id": "r", "collection_mode": "incremental", "scope": scope, "state": None, "bindings": {}}
    return msgspec.structs.replace(Start(**fields), **members)


@pytest.mark.clause("CP-145")
def test_start_has_its_five_members_also_when_they_are_empty() -> None:
    """No state is an explicit null, and no bindings are an empty object."""
    assert json.loads(encode(start())) == {
        "type": "START",
        "run_id": "r",
        "collection_mode": "incremental",
        "scope": {"streams": [{"name": "alpha"}]},
        "state": None,
        "bindings": {},
    }


@pytest.mark.clause("CP-302")
def test_a_scope_entry_has_only_the_narrowing_that_was_set() -> None:
    """A side of the window that is open is left out, never null."""
    entry = CollectionStream("alpha", time_range=TimeRange(since="2026-01-01T00:00:00Z"), fields=[])
    sent = json.loads(encode(start(scope=CollectionScope([entry]))))
    assert sent["scope"]["streams"] == [
        {"name": "alpha", "time_range": {"since": "2026-01-01T00:00:00Z"}, "fields": []}
    ]


@pytest.mark.clause("CP-302")
@pytest.mark.parametrize("member", ["necessity", "view"])
def test_a_scope_entry_has_no_other_member(member: str) -> None:
    """What belongs to a grant's issuance does not fit into an entry at all."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"name": "alpha", member: "x"}, CollectionStream)


@pytest.mark.parametrize(
    "cursor",
    [
        b'{"n": 123456789012345678901234567890, "f":1.0,"e":1e999}',
        '{"s":"\u2028\u2029\u0085 \U0001f3b5","z":"\\u0000"}'.encode(),
        b'{ "b" : 1, "a" : [ ] }',
    ],
)
def test_a_saved_cursor_is_sent_byte_for_byte(cursor: bytes) -> None:
    """Spelling, order, spaces and great numbers return to the connector as they came."""
    line = encode(start(state={"alpha": msgspec.Raw(cursor)}))
    assert b'"state":{"alpha":' + cursor + b"}" in line
    assert bytes(msgspec.json.decode(line, type=Start).state["alpha"]) == cursor


@pytest.mark.parametrize("status", ["cancelled", "timeout"])
def test_an_answer_without_success_has_no_data(status: str) -> None:
    """The member is absent, not null."""
    sent = json.loads(encode(InteractionResponse("q1", status)))
    assert sent == {"type": "INTERACTION_RESPONSE", "request_id": "q1", "status": status}


def test_an_answer_does_not_print_what_the_owner_typed() -> None:
    """Its text holds the request and the status, and not the password."""
    answer = InteractionResponse("q1", "success", {"password": "hunter2"})
    assert "hunter2" not in f"{answer!r} {answer}"
    assert b"hunter2" in encode(answer)


@pytest.mark.clause("CP-100")
@given(st.dictionaries(st.text(), JSON, max_size=4), st.text())
def test_a_message_is_one_line_that_reads_back(data: dict[str, object], request_id: str) -> None:
    """Whatever text it holds, the only newline is the last byte."""
    answer = InteractionResponse(request_id, "success", data)
    line = encode(answer)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert msgspec.json.decode(line, type=InteractionResponse) == answer


@pytest.mark.parametrize(
    "message",
    [Done("succeeded", 3), DetailCoverage(True, "bodies", "inbox", ["a", 7], ["a"], [7])],
    ids=lambda message: type(message).__name__,
)
def test_what_a_connector_would_send_decodes_to_itself(message: object) -> None:
    """Encoding and decoding know the same members."""
    assert decode(encode(message)[:-1])[0] == message
