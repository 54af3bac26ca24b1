"""The shape of each message: which members it needs, of which type, and what is not guessed at."""

import json
from typing import Any

import pytest
from msgspec import UNSET

from headwater.wire.decode import NotAMessage, decode
from headwater.wire.keys import detail_key
from headwater.wire.messages import whole

RECORD = {"type": "RECORD", "stream": "alpha", "key": "k", "data": {}, "emitted_at": "2026-04-06T15:01:00Z"}
STATE = {"type": "STATE", "stream": "alpha", "cursor": {}}
SKIP = {"type": "SKIP_RESULT"}
CONTINUATION = {
    "boundary": "page",
    "slice_start": "2026-01",
    "slice_end": "2026-02",
    "considered": 5,
    "covered": 5,
    "remaining": True,
    "owner": "runtime",
}
COVERAGE = {
    "type": "DETAIL_COVERAGE",
    "reference_only": True,
    "stream": "bodies",
    "state_stream": "inbox",
    "required_keys": ["m1", 2],
    "hydrated_keys": ["m1"],
}
GAP = {"type": "DETAIL_GAP", "stream": "bodies"}
COUNTS = {"emitted": 30, "unchanged": 6, "gapped": 3, "unaccounted": 1}
EVIDENCE = {"type": "STREAM_EVIDENCE", "reference_only": True, "stream": "stamps", "considered": 40, "outcomes": COUNTS}
QUESTION = {"type": "INTERACTION", "request_id": "q1", "kind": "otp", "message": "The code?"}
PROGRESS = {"type": "PROGRESS", "message": "working"}
DONE = {"type": "DONE", "status": "succeeded", "records_emitted": 3}

ABSENT: Any = object()
NO_TEXT = [None, 3, True, [], {}]
NO_OBJECT = [None, 3, "c", [], True]
NO_FLAG = [None, 0, 1, "true", [], {}]
NO_NUMBER = [None, "5", True, [], {}]


def changed(message: dict[str, Any], /, **members: Any) -> dict[str, Any]:
    """Return a message with members replaced, or left out where they are ABSENT."""
    return {name: value for name, value in {**message, **members}.items() if value is not ABSENT}


def read(message: dict[str, Any]) -> Any:
    """Decode a message that must be good."""
    return decode(json.dumps(message).encode())[0]


def is_refused(message: dict[str, Any]) -> bool:
    """Say whether a message is a protocol violation by its shape alone."""
    try:
        read(message)
    except NotAMessage:
        return True
    return False


def each(member: str, *values: Any) -> list[Any]:
    """Name one parameter for each value of a member."""
    shown = ["absent" if value is ABSENT else json.dumps(value) for value in values]
    return [pytest.param(member, value, id=f"{member}={text}") for value, text in zip(values, shown, strict=True)]


# RECORD and STATE


@pytest.mark.clause("CP-115")
@pytest.mark.parametrize(
    ("member", "value"),
    [
        *each("stream", ABSENT, "", *NO_TEXT),
        *each("data", ABSENT, *NO_OBJECT),
        *each("emitted_at", ABSENT, *NO_TEXT),
    ],
)
def test_a_record_needs_its_stream_data_and_time(member: str, value: Any) -> None:
    """A missing member, an empty stream and data that is no object are refused."""
    assert is_refused(changed(RECORD, **{member: value}))
    assert read(RECORD).stream == "alpha"


@pytest.mark.clause("CP-116")
@pytest.mark.parametrize("key", [ABSENT, 5, None, {}, [1], ["u1", None], True, 1.0, [["u1"]]])
def test_a_record_key_of_another_type_is_refused(key: Any) -> None:
    """A number is not taken for its text."""
    assert is_refused(changed(RECORD, key=key))


@pytest.mark.clause("CP-116")
@pytest.mark.parametrize("key", ["k1", ["u1", "2026-04-01"], ["u1"], "5"])
def test_a_record_key_is_a_text_or_an_array_of_texts(key: Any) -> None:
    """Both forms arrive as they were."""
    assert read(changed(RECORD, key=key)).key == key


@pytest.mark.clause("CP-119")
@pytest.mark.parametrize("op", ["merge", "", "DELETE", None, 1, ["upsert"]])
def test_an_unknown_op_is_refused(op: Any) -> None:
    """It is not taken for an upsert, and null is not absent."""
    assert is_refused(changed(RECORD, op=op))


@pytest.mark.clause("CP-119")
@pytest.mark.parametrize(("op", "meant"), [(ABSENT, "upsert"), ("upsert", "upsert"), ("delete", "delete")])
def test_an_absent_op_means_upsert(op: Any, meant: str) -> None:
    """The two directives and their absence are read."""
    assert read(changed(RECORD, op=op)).op == meant


@pytest.mark.clause("CP-125")
@pytest.mark.parametrize(
    ("member", "value"), [*each("stream", ABSENT, "", *NO_TEXT), *each("cursor", ABSENT, *NO_OBJECT, 1.5)]
)
def test_a_state_needs_its_stream_and_a_cursor(member: str, value: Any) -> None:
    """A cursor is an object, an empty one included."""
    assert is_refused(changed(STATE, **{member: value}))
    assert bytes(read(STATE).cursor) == b"{}"


# SKIP_RESULT


@pytest.mark.clause("CP-130")
@pytest.mark.parametrize(
    ("member", "value"),
    [
        *each("stream", *NO_TEXT),
        *each("reason", *NO_TEXT),
        *each("message", *NO_TEXT),
        *each("continuation", *NO_OBJECT),
    ],
)
def test_a_skip_member_of_the_wrong_type_is_refused(member: str, value: Any) -> None:
    """It is not dropped to save the rest."""
    assert is_refused(changed(SKIP, **{member: value}))


@pytest.mark.clause("CP-130", "CP-832")
def test_a_skip_needs_nothing_but_its_type() -> None:
    """Every member may be absent, the hint among them."""
    skip = read(SKIP)
    assert (skip.stream, skip.reason, skip.message, skip.recovery_hint, skip.continuation) == (UNSET,) * 5


@pytest.mark.clause("CP-133")
@pytest.mark.parametrize(
    ("member", "value"),
    [
        *(pytest.param(name, ABSENT, id=f"{name}=absent") for name in CONTINUATION),
        *each("remaining", False, "true", None, 1),
        *each("owner", "connector", "", None),
        *each("considered", "5", None, 1.5, True),
        *each("covered", "5", None, 1.5, True),
        *each("boundary", None, 3),
    ],
)
def test_a_continuation_without_all_seven_facts_is_refused(member: str, value: Any) -> None:
    """It has every member, more remains, and the runtime owns the next page."""
    assert is_refused(changed(SKIP, continuation=changed(CONTINUATION, **{member: value})))


@pytest.mark.clause("CP-133")
def test_a_whole_continuation_is_read() -> None:
    """Its slice is opaque, and may be of any type."""
    fact = read(changed(SKIP, continuation=changed(CONTINUATION, slice_end=None))).continuation
    assert (fact.boundary, fact.slice_start, fact.slice_end, fact.owner) == ("page", "2026-01", None, "runtime")


# Details and evidence


@pytest.mark.clause("CP-503")
@pytest.mark.parametrize(
    ("member", "value"),
    [
        *each("required_keys", ABSENT, None, "m1", {}),
        *each("hydrated_keys", ABSENT, None, "m1", {}),
        *each("gap_keys", None, "m1", {}),
        *(case for name in ("required_keys", "hydrated_keys", "gap_keys")
          for case in each(name, [True], [None], [{}], [["a", "b"]], ["m1", False])),
    ],
)  # fmt: skip
def test_coverage_keys_are_arrays_of_texts_or_numbers(member: str, value: Any) -> None:
    """Two lists are mandatory, the third is not, and an entry is never anything else."""
    assert is_refused(changed(COVERAGE, **{member: value}))


@pytest.mark.clause("CP-503")
def test_coverage_without_gaps_has_none() -> None:
    """The list of gaps may be absent; texts and numbers arrive."""
    report = read(COVERAGE)
    assert (report.required_keys, report.hydrated_keys, report.gap_keys) == (["m1", 2], ["m1"], [])


@pytest.mark.parametrize(
    ("member", "value"),
    [
        *each("stream", ABSENT, "", *NO_TEXT),
        *each("state_stream", ABSENT, "", *NO_TEXT),
        *each("reference_only", ABSENT, *NO_FLAG),
    ],
)
def test_coverage_names_both_its_streams(member: str, value: Any) -> None:
    """Neither stream may be missing or empty, and the mark is a boolean."""
    assert is_refused(changed(COVERAGE, **{member: value}))


@pytest.mark.clause("CP-512", "CP-513")
@pytest.mark.parametrize(
    ("spellings", "key"),
    [
        (["1", "1.0", "1e0", "10e-1", '"1"'], "1"),
        (["0", "-0", "0.0", "-0.0"], "0"),
        (["1.5", "15e-1", "1.50"], "1.5"),
        (["1e23", "100000000000000000000000", "1.0E+23"], "100000000000000000000000"),
        (["123456789012345678901234567890"], "123456789012345678901234567890"),
    ],
)
def test_a_detail_key_has_one_form_however_it_is_spelt(spellings: list[str], key: str) -> None:
    """The number and its text are one key, also where a double alone could not tell."""
    for spelling in spellings:
        report = json.dumps(changed(COVERAGE, required_keys=ABSENT))[:-1] + f', "required_keys": [{spelling}]}}'
        assert detail_key(decode(report.encode())[0].required_keys[0]) == key


@pytest.mark.clause("CP-535")
@pytest.mark.parametrize(
    ("member", "value"),
    [
        *each("stream", ABSENT, "", *NO_TEXT),
        *each("record_key", [], None, True, {}),
        *each("retryable", *NO_FLAG, "yes"),
        *(case for name in ("detail_locator", "list_cursor", "last_error") for case in each(name, *NO_OBJECT)),
        *(case for name in ("parent_stream", "reason", "gap_id", "lease_id") for case in each(name, *NO_TEXT)),
    ],
)  # fmt: skip
def test_a_gap_member_of_the_wrong_type_is_refused(member: str, value: Any) -> None:
    """Only the type and the stream are needed; whatever else is sent has its type."""
    assert is_refused(changed(GAP, **{member: value}))
    assert read(GAP).stream == "bodies"


@pytest.mark.clause("CP-605")
@pytest.mark.parametrize("value", [ABSENT, *NO_NUMBER])
@pytest.mark.parametrize("count", ["considered", *COUNTS])
def test_each_count_of_evidence_is_a_number(count: str, value: Any) -> None:
    """All five are there, and none is a text, a null or a boolean."""
    if count == "considered":
        assert is_refused(changed(EVIDENCE, considered=value))
    else:
        assert is_refused(changed(EVIDENCE, outcomes=changed(COUNTS, **{count: value})))


@pytest.mark.clause("CP-605", "CP-610")
@pytest.mark.parametrize(
    ("text", "count"),
    [
        *(("214", 214), ("214.0", 214), ("2.14e2", 214), ("0", 0), ("-0.0", 0)),
        *(("9007199254740991", 9007199254740991), ("9007199254740992", None), ("9007199254740992.0", None)),
        *(("9007199254740991.5", None), ("1" + "0" * 30, None), ("1e30", None), ("1.5", None), ("-1", None)),
        *(("1e-9", None), ("-1e30", None)),
    ],
)
def test_a_count_is_judged_by_its_value(text: str, count: int | None) -> None:
    """214.0 is 214; what is negative, broken or past the safe integers is no count, without a crash."""
    line = json.dumps(changed(EVIDENCE, considered=ABSENT))[:-1] + f', "considered": {text}}}'
    found = whole(decode(line.encode())[0].considered)
    assert (found, type(found)) == (count, type(count))


@pytest.mark.clause("CP-610")
@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999", "true"])
def test_what_is_not_finite_is_no_count(literal: str) -> None:
    """Neither JavaScript's names nor a number beyond every double reach a comparison."""
    line = json.dumps(changed(EVIDENCE, considered=ABSENT))[:-1] + f', "considered": {literal}}}'
    with pytest.raises(NotAMessage):
        decode(line.encode())


@pytest.mark.parametrize("outcomes", [ABSENT, [], None, "x"])
def test_evidence_without_outcomes_is_refused(outcomes: Any) -> None:
    """They are an object."""
    assert is_refused(changed(EVIDENCE, outcomes=outcomes))


# INTERACTION, PROGRESS and DONE


@pytest.mark.clause("CP-700")
@pytest.mark.parametrize(
    ("member", "value"),
    [
        *each("request_id", ABSENT, *NO_TEXT),
        *each("kind", ABSENT, "captcha", "", "OTP", *NO_TEXT),
        *each("message", ABSENT, *NO_TEXT),
        *each("schema", *NO_OBJECT),
        *each("timeout_seconds", "300", *NO_NUMBER),
    ],
)
def test_a_question_outside_its_shape_is_refused(member: str, value: Any) -> None:
    """Three members are needed, the kind is one of three, and two are optional but typed."""
    assert is_refused(changed(QUESTION, **{member: value}))
    assert (read(QUESTION).schema, read(QUESTION).timeout_seconds) == (UNSET, UNSET)


@pytest.mark.clause("CP-137")
@pytest.mark.parametrize(
    ("member", "value"),
    [
        *each("message", ABSENT, *NO_TEXT),
        *each("stream", *NO_TEXT),
        *each("count", *NO_NUMBER),
        *each("total", *NO_NUMBER),
    ],
)
def test_progress_outside_its_shape_is_refused(member: str, value: Any) -> None:
    """It needs a message; a count is a number."""
    assert is_refused(changed(PROGRESS, **{member: value}))
    assert read(changed(PROGRESS, count=1.5, total=0)).count == 1.5


@pytest.mark.clause("CP-150")
@pytest.mark.parametrize("status", [ABSENT, "ok", "", "SUCCEEDED", None, 0, True])
def test_an_unknown_status_is_refused(status: Any) -> None:
    """There are three ends."""
    assert is_refused(changed(DONE, status=status))
    for end in ("succeeded", "failed", "cancelled"):
        assert read(changed(DONE, status=end)).status == end


@pytest.mark.clause("CP-151")
@pytest.mark.parametrize("count", [ABSENT, *NO_NUMBER, -1, 1.5, 10**30])
def test_done_without_a_count_is_refused(count: Any) -> None:
    """It is refused by its type, or is no whole number by its value."""
    message = changed(DONE, records_emitted=count)
    assert is_refused(message) or whole(read(message).records_emitted) is None
    assert whole(read(changed(DONE, records_emitted=0)).records_emitted) == 0


@pytest.mark.parametrize("message", [RECORD, STATE, SKIP, COVERAGE, GAP, EVIDENCE, QUESTION, PROGRESS, DONE])
def test_members_that_the_profile_does_not_name_change_nothing(message: dict[str, Any]) -> None:
    """A message with extra members is the message without them."""
    extra = {"restart_safe": True, "x": {"y": [None]}}
    read_plain, read_extra = read(message), read({**message, **extra})
    names = [name for name in read_plain.__struct_fields__ if name not in ("data", "cursor")]
    assert [getattr(read_plain, name) for name in names] == [getattr(read_extra, name) for name in names]
