"""Valid lines, mutated: whatever comes, decoding answers or refuses, and does nothing else."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.wire.decode import NotAMessage, Unreadable, decode

MESSAGES: list[dict[str, Any]] = [
    {"type": "RECORD", "stream": "a", "key": ["u", "1"], "data": {"n": [1, {"x": None}]}, "emitted_at": "2026-04-06"},
    {"type": "RECORD", "stream": "a", "key": "k", "data": {"s": "\u2028\U0001f3b5"}, "emitted_at": "x", "op": "delete"},
    {"type": "STATE", "stream": "a", "cursor": {"n": 10**30}},
    {"type": "INTERACTION", "request_id": "q", "kind": "otp", "message": "m", "schema": {}, "timeout_seconds": 1.5},
    {"type": "SKIP_RESULT", "stream": "a", "recovery_hint": {"action": "unknown", "retryable": False}},
    {"type": "DETAIL_COVERAGE", "reference_only": True, "stream": "a", "state_stream": "b", "required_keys": [1, "2"],
     "hydrated_keys": [1.0], "gap_keys": ["2"]},
    {"type": "DETAIL_GAP", "stream": "a", "record_key": 7, "detail_locator": {"id": 1}, "retryable": True},
    {"type": "STREAM_EVIDENCE", "reference_only": True, "stream": "a", "considered": 2,
     "outcomes": {"emitted": 1, "unchanged": 1, "gapped": 0, "unaccounted": 0}},
    {"type": "PROGRESS", "message": "m", "count": 1, "total": 2},
    {"type": "DONE", "status": "failed", "records_emitted": 1, "error": {"message": "m", "retryable": True}},
]  # fmt: skip
LINES = [json.dumps(message, ensure_ascii=escaped).encode() for message in MESSAGES for escaped in (True, False)]

PIECES = st.sampled_from(
    [b"", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\x00", b"\xff", b"\xef\xbb\xbf", b"null", b"NaN", b"1e999",
     b"-", b"9" * 40, b"9" * 5_000, b"9" * 5_000 + b".5", b"[" * 300, b"[" * 2_000, b"]" * 2_000, b'{"a":' * 1_200,
     rb"\ud800", rb"\udc00", rb"\u0000", b'"type":"RECORD",', b'"type":"STATE",', b'"stream":"b",', b'"data":{},', b" "]
)  # fmt: skip
CUTS = st.tuples(st.integers(0, 400), st.integers(0, 12), PIECES | st.binary(max_size=6))


@settings(max_examples=600)
@given(st.sampled_from(LINES), st.lists(CUTS, min_size=1, max_size=5))
def test_a_mutated_line_is_read_or_refused(line: bytes, cuts: list[tuple[int, int, bytes]]) -> None:
    """Pieces cut out and put in at random never raise anything but the refusal, and never invent a stream."""
    for start, length, piece in cuts:
        at = start % (len(line) + 1)
        line = line[:at] + piece + line[at + length :]
    line = line.replace(b"\n", b" ")
    try:
        message, members = decode(line)
    except NotAMessage:
        return
    if isinstance(message, Unreadable):
        assert message.reason in {"repeated_member", "lone_surrogate", "nested_too_deep", "unreadable_value"}
        return
    assert members == json.loads(line)
    assert members["type"] == type(message).__struct_config__.tag


@settings(max_examples=300)
@given(st.sampled_from(MESSAGES), st.data())
def test_a_message_with_a_member_replaced_is_read_or_refused(message: dict[str, Any], data: st.DataObject) -> None:
    """A value of any other kind in any place is refused or has its own meaning; it never raises otherwise."""
    other = st.sampled_from([None, True, 0, -1, 1.5, 10**30, "", "x", [], [1], {}, {"a": 1}, {"action": "unknown"}])
    name = data.draw(st.sampled_from(sorted(message)))
    changed = {**message, name: data.draw(other)}
    try:
        read, members = decode(json.dumps(changed).encode())
    except NotAMessage:
        return
    assert members == changed
    assert not isinstance(read, Unreadable)
