"""Decoding what has no exact reading: lines that are no message, and records that the run goes on without."""

import json
from time import perf_counter
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headwater.wire.decode import NotAMessage, Unreadable, decode
from headwater.wire.messages import Record, State

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def record(data: str | bytes, **replaced: str) -> bytes:
    """Write a RECORD around the text of its data, with other members' texts replaced."""
    members = {"stream": '"alpha"', "key": '"k"', "emitted_at": '"2026-04-06T15:01:00Z"', **replaced}
    head = ",".join(f'"{name}":{text}' for name, text in members.items())
    body = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    return b'{"type":"RECORD",' + head.encode() + b',"data":' + body + b"}"


def rule_of(line: bytes) -> str:
    """Return the rule that a line breaks; it must break one."""
    with pytest.raises(NotAMessage) as refusal:
        decode(line)
    assert refusal.value.message
    return refusal.value.rule


def read(data: str) -> tuple[str, Any]:
    """Return a record's data as text, and as plain values; the record must be readable."""
    message, members = decode(record(data))
    assert type(message) is Record
    return bytes(message.data).decode(), members["data"]


def unread(line: bytes) -> tuple[str, str]:
    """Return the stream and the reason of a record that cannot be read exactly."""
    message, members = decode(line)
    assert type(message) is Unreadable
    assert members == {}
    return message.stream, message.reason


# Lines that are no message


@pytest.mark.clause("CP-101")
@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (b"hello", "not_json"),
        (b"", "not_json"),
        (b"   ", "not_json"),
        (record("{}")[:-1], "not_json"),
        (record("{}") * 2, "not_json"),
        (record("{}") + b",", "not_json"),
        (b"\xef\xbb\xbf" + record("{}"), "not_json"),
        (record('{"n":NaN}'), "not_json"),
        (record('{"n":-Infinity}'), "not_json"),
        (record('{"n":01}'), "not_json"),
        (record('{"n":1,}'), "not_json"),
        (record("{'n':1}"), "not_json"),
        (record('{"s":"\x01"}'), "not_json"),
        (record('{"s":"\\x41"}'), "not_json"),
        (record(b'{"s":"\xff"}'), "not_utf8"),
        (record(b'{"s":"\xc0\x80"}'), "not_utf8"),
        (record('{"s":"\ud800"}'), "not_utf8"),
        (b'{"type":"PROGRESS","message":"\xff"}', "not_utf8"),
        (record("{}")[:-1] + b',"x":"\xff"}', "not_utf8"),
    ],
)
def test_a_line_that_is_not_json_is_no_message(line: bytes, rule: str) -> None:
    """Neither half a message, two, nor one with a byte order mark, bad numbers, strings or UTF-8."""
    assert rule_of(line) == rule


@pytest.mark.clause("CP-102")
@pytest.mark.parametrize(
    "line",
    [b"[1]", b'"x"', b"3", b"null", b"true", b"{}", b'{"stream":"alpha"}', b'{"type":5}', b'{"type":null}',
     b'{"type":["RECORD"]}', b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000],
)  # fmt: skip
def test_a_line_without_a_string_type_is_no_message(line: bytes) -> None:
    """JSON of another kind, or an object that does not say what it is, ends the run."""
    assert rule_of(line) in ("not_a_message", "not_json")


@pytest.mark.clause("CP-104")
def test_an_object_over_several_lines_is_no_message() -> None:
    """Each of its lines is refused for itself."""
    for line in json.dumps({"type": "PROGRESS", "message": "m"}, indent=1).encode().split(b"\n"):
        rule_of(line)


@pytest.mark.parametrize(
    "kind", ["NOVEL1", "", "record", "RECORD ", "START", "INTERACTION_RESPONSE", "recursion limit"]
)
def test_an_unknown_type_is_refused_once_for_all(kind: str) -> None:
    """A type that a connector does not have, the host's own two among them, is fatal."""
    assert rule_of(json.dumps({"type": kind, "message": "m"}).encode()) == "unknown_type"


def test_a_refusal_never_repeats_the_line() -> None:
    """The words name the member and the type; the line may hold anything."""
    for line in (
        b"hunter2",
        record("{}", op='"hunter2"'),
        b'{"type":"hunter2"}',
        b'{"type":"DONE","status":"hunter2"}',
    ):
        with pytest.raises(NotAMessage) as refusal:
            decode(line)
        assert "hunter2" not in str(refusal.value)


# Records that the run goes on without


@pytest.mark.parametrize(
    "data",
    [
        '{"a":1,"a":2}',
        '{"a":1,"a":1}',
        '{"a":1,"\\u0061":2}',
        '{"x":{"y":{"a":1,"b":2,"a":3}}}',
        '{"x":[0,[{"a":1,"a":2}]]}',
        '{"":1,"":2}',
    ],
)
def test_a_repeated_member_makes_a_record_unreadable(data: str) -> None:
    """At any depth, and however it is spelt, a name that stands twice has no one meaning."""
    assert unread(record(data)) == ("alpha", "repeated_member")


@pytest.mark.parametrize("data", ['{"a":[{"n":1},{"n":1}]}', '{"a":{"n":1},"b":{"n":1}}', '{"a":1,"A":2}'])
def test_one_name_in_two_objects_is_no_repetition(data: str) -> None:
    """Siblings may share a name, and case tells names apart."""
    assert read(data)[0] == data


def test_a_repeated_member_of_the_envelope_makes_a_record_unreadable() -> None:
    """Two streams or two keys leave it open which was meant."""
    assert unread(record("{}")[:-1] + b',"key":"other"}')[1] == "repeated_member"
    assert unread(record("{}")[:-1] + b',"x":1,"x":2}')[1] == "repeated_member"


@pytest.mark.parametrize(
    "text",
    [
        r"\ud800",
        r"\udfff",
        r"\udc00\ud800",
        r"\ud83c x",
        r"\ud83c\u0041",
        r"\\\ud800",
        r"\uD800",
        r"\ud83c\udfb5\udfb5",
    ],
)
def test_half_of_a_surrogate_pair_makes_a_record_unreadable(text: str) -> None:
    """In a value or in a name, no UTF-8 can hold it."""
    assert unread(record(f'{{"s":"{text}"}}')) == ("alpha", "lone_surrogate")
    assert unread(record(f'{{"x":[{{"{text}":1}}]}}')) == ("alpha", "lone_surrogate")


@pytest.mark.parametrize("member", ["key", "emitted_at", "stream"])
def test_half_of_a_surrogate_pair_in_the_envelope_is_unreadable_too(member: str) -> None:
    """The run does not end over it."""
    assert unread(record("{}", **{member: r'"\ud800"'}))[1] == "lone_surrogate"
    assert unread(record("{}")[:-1] + rb',"\ud800":1}')[1] == "lone_surrogate"


@pytest.mark.parametrize("text", [r"\ud83c\udfb5", r"\\ud800", r"\\\\udfff", r"\uD83C\uDFB5\u0041"])
def test_a_whole_pair_is_never_blamed(text: str) -> None:
    """A message that is refused for its shape is refused for just that, whatever escapes it holds."""
    assert rule_of(f'{{"type":"STATE","stream":3,"cursor":{{"s":"{text}"}}}}'.encode()) == "invalid_message"
    assert (
        rule_of(f'{{"type":"STATE","stream":3,"cursor":{{"s":"{text}","t":"\\udfb5"}}}}'.encode()) == "lone_surrogate"
    )


@pytest.mark.parametrize("number", ["9" * 4_301, "-" + "9" * 5_000, "9" * 100_000, "9" * 5_000 + ".5"])
def test_a_number_too_long_to_read_makes_a_record_unreadable(number: str) -> None:
    """It is JSON, so it is not called anything else, and only the record is lost."""
    assert unread(record(f'{{"n":{number}}}')) == ("alpha", "unreadable_value")
    assert unread(record("{}")[:-1] + f',"x":[{number}]}}'.encode())[1] == "unreadable_value"
    assert rule_of(f'{{"type":"STATE","stream":"alpha","cursor":{{"n":{number}}}}}'.encode()) == "invalid_message"


def test_a_number_of_four_thousand_digits_reads_exactly() -> None:
    """Length alone is no reason, up to what can be read."""
    data = '{"n":' + "9" * 4_000 + "}"
    assert read(data)[0] == data


@pytest.mark.parametrize("depth", [250, 900, 1_100, 5_000, 200_000])
@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_nesting_without_end_makes_a_record_unreadable(depth: int, opened: str, closed: str) -> None:
    """The depth of data is no reason to end a run, nor to overflow a stack."""
    nested = f'{{"before":1,"n":{opened * depth}1{closed * depth},"after":"]}}"}}'
    assert unread(record(nested)) == ("alpha", "nested_too_deep")


@pytest.mark.parametrize("depth", [*range(960, 1_010), 1_500])
def test_no_depth_falls_between_two_readers(depth: int) -> None:
    """Where one reader's stack ends and another's does not yet, the record is still only unreadable."""
    line = record('{"n":' + "[" * depth + "]" * depth + "}", key=r'"\ud800"')
    assert unread(line)[0] == "alpha"


@pytest.mark.clause("CP-101")
@pytest.mark.parametrize("depth", [1_100, 1_199, 1_200, 1_201, 20_000])
@pytest.mark.parametrize(
    ("opened", "inside", "closed"),
    [
        ("[", "1 1", "]"),
        ("[", ",", "]"),
        ("[", "1,", "]"),
        ("[", "1", "}"),
        ("[", '"', "]"),
        ("[", "]", "]"),
        ("[", "[", "]"),
        ("[", "NaN", "]"),
        ('{"a":', "", "}"),
        ('{"a"', "1", "}"),
        ("{a:", "1", "}"),
    ],
)
def test_the_inside_of_a_deep_record_is_held_to_the_grammar(depth: int, opened: str, inside: str, closed: str) -> None:
    """However deep it lies, what is no JSON makes the line none, and not a record that may be passed over."""
    assert rule_of(record(f'{{"n":{opened * depth}{inside}{closed * depth}}}')) == "not_json"


def test_a_nesting_of_a_hundred_levels_is_ordinary() -> None:
    """It reads exactly."""
    data = '{"n":' + "[" * 100 + "]" * 100 + "}"
    assert read(data)[0] == data


@pytest.mark.parametrize(
    "wrong",
    [{"stream": "3"}, {"stream": '""'}, {"key": "5"}, {"op": '"merge"'}, {"op": r'"\ud800"'}, {"emitted_at": "1"}],
)
@pytest.mark.parametrize("data", ['{"a":1,"a":2}', r'{"s":"\ud800"}', '{"n":' + "[" * 3_000 + "]" * 3_000 + "}"])
def test_an_unreadable_record_still_needs_its_envelope(wrong: dict[str, str], data: str) -> None:
    """Poison in the data does not excuse a line that is no RECORD."""
    assert rule_of(record(data, **wrong)) == "invalid_message"


@pytest.mark.parametrize(
    ("tail", "rule"),
    [
        (r'"n":1,"n":1', "repeated_member"),
        (r'"s":"\ud800"', "lone_surrogate"),
        ('"d":' + "[" * 3_000 + "]" * 3_000, "nested_too_deep"),
    ],
)
def test_only_a_record_may_be_unreadable(tail: str, rule: str) -> None:
    """A cursor, or a word to the host, that has no exact reading ends the run."""
    assert rule_of(f'{{"type":"STATE","stream":"alpha","cursor":{{{tail}}}}}'.encode()) == rule
    assert rule_of(f'{{"type":"PROGRESS","message":"m",{tail}}}'.encode()) == rule


@pytest.mark.parametrize("tail", ['"', "", '"' + r"\"" * 500_000, ('"' * 500_000)])
def test_a_hostile_line_costs_no_more_than_its_length(tail: str) -> None:
    """A deep line full of open strings is refused in linear time."""
    began = perf_counter()
    rule_of(b'{"a":' + b"[" * 5_000 + tail.encode())
    assert perf_counter() - began < 5


# What reads exactly


@pytest.mark.parametrize(
    "data",
    [
        '{"n":123456789012345678901234567890}',
        '{"n":-123456789012345678901234567890,"m":0.1000000000000000055511151231257827}',
        '{"n":1e999,"m":-1e-999,"o":1.0,"p":1E+2,"q":-0}',
        '{"s":"\\u0000","t":"\\/\\b\\f\\n\\r\\t\\u00e9"}',
        '{"s":"\u2028\u2029\u0085\u007f"}',
        '{"s":"\\ud83c\\udfb5","t":"\U0001f3b5","u":"\\\\ud800"}',
        '{ "b" : [ ] ,\t"a" : { } }',
        "{}",
    ],
)
@pytest.mark.clause("CP-104")
def test_data_is_kept_as_the_bytes_that_came(data: str) -> None:
    """Great numbers, escapes, separators, order and spaces are not bent."""
    text, members = read(data)
    assert text == data
    assert members == json.loads(data)


def test_a_record_of_20_mb_reads_exactly() -> None:
    """Size alone is no reason to refuse, deep or shallow."""
    data = '{"s":"' + r"x\n" * 7_000_000 + '"}'
    assert read(data)[0] == data
    deep = data[:-1] + ',"d":' + "[" * 5_000 + "]" * 5_000 + "}"
    assert unread(record(deep)) == ("alpha", "nested_too_deep")


@given(st.dictionaries(st.text(), JSON, max_size=6), st.booleans(), st.sampled_from([None, 1]))
@example({"a": 10**30, "\u2028": "\x00", "b": -0.0}, False, None)
def test_any_json_object_round_trips(data: dict[str, Any], escaped: bool, indent: int | None) -> None:
    """Data and cursor come out as the very bytes that went in, and as the same values."""
    text = json.dumps(data, ensure_ascii=escaped, indent=indent).replace("\n", " ")
    assert read(text) == (text, json.loads(text))
    state, members = decode(b'{"type":"STATE","stream":"alpha","cursor":' + text.encode() + b"}")
    assert type(state) is State
    assert (bytes(state.cursor).decode(), members["cursor"]) == (text, json.loads(text))
