"""One stream in one run: what it may send, and what the scope keeps back before it is written."""

from datetime import timedelta
from typing import Any

import pytest

from headwater import clock
from headwater.sdk.testing import collect

TIMED = {
    "name": "alpha",
    "schema": {
        "properties": {name: {} for name in ("id", "at", "title", "body", "created")},
        "required": ["id", "created"],
    },
    "primary_key": ["id"],
    "consent_time_field": "at",
}


def body(*lines: str, stream: str = "alpha") -> str:
    """Write one stream's function."""
    return f"@stream({stream!r})\ndef {stream}(s):\n" + "\n".join(f"    {line}" for line in lines) + "\n"


def refused(transcript: Any) -> str:
    """Return stderr of a connector that got a Misuse, after holding that it wrote nothing else."""
    assert [message["type"] for message in transcript.messages] == ["SKIP_RESULT", "DONE"]
    assert "Misuse" in transcript.messages[0]["message"]
    return str(transcript.stderr)


# Checkpoints


@pytest.mark.clause("CP-127")
@pytest.mark.parametrize(("manifest", "stream"), [("RIDER", "stamps"), ("MIX", "bodies"), ("MIX", "labels")])
def test_a_stream_without_a_checkpoint_cannot_save(written: Any, manifest: str, stream: str) -> None:
    """The SDK raises, and no STATE is written."""
    transcript = collect(written(body("s.save({'n': 1})", stream=stream), manifest))
    assert "has no checkpoint of its own" in refused(transcript)


@pytest.mark.clause("CP-127")
@pytest.mark.parametrize("stream", ["threads", "notes"])
def test_a_checkpoint_stream_saves(written: Any, stream: str) -> None:
    """One call is one STATE."""
    transcript = collect(written(body("s.save({'n': 1})", stream=stream), "RIDER"))
    states = [message for message in transcript.messages if message["type"] == "STATE"]
    assert states == [{"type": "STATE", "stream": stream, "cursor": {"n": 1}}]


@pytest.mark.clause("CP-409")
def test_a_walk_saves_as_it_goes(written: Any) -> None:
    """Of 5,000 records, four saves stand before the last one, each just where it was called."""
    lines = [
        "for n in range(5000):",
        "    if n and n % 1000 == 0:",
        "        s.save({'next': n})",
        "    yield {'id': str(n)}",
        "s.save({'next': 5000})",
    ]
    messages = collect(written(body(*lines)), streams=["alpha"]).messages
    sent = 0
    for message in messages:
        if message["type"] == "STATE":
            assert message["cursor"]["next"] == sent
        sent += message["type"] == "RECORD"
    assert [message["type"] for message in messages].count("STATE") == 5
    assert [message["type"] for message in messages[-3:]] == ["RECORD", "STATE", "DONE"]


def test_a_save_is_handed_over_at_once(written: Any, launched: Any) -> None:
    """The host has the cursor, and the records before it, while the connector goes on."""
    child = launched(written(body("s.emit({'id': '1'})", "s.save({'n': 1})", "import time; time.sleep(60)")))
    child.start("alpha")
    assert [child.line()["type"] for _ in range(2)] == ["RECORD", "STATE"]


@pytest.mark.parametrize(
    ("mode", "seen"),
    [({}, "{'n': 7}"), ({"mode": "incremental"}, "{'n': 7}"), ({"mode": "full_refresh"}, "{}")],
)
def test_a_cursor_comes_back_unless_all_is_collected_anew(written: Any, mode: dict[str, Any], seen: str) -> None:
    """A stream starts where it saved; a full refresh starts from nothing, and the connector may ask which it is."""
    folder = written(body("yield {'id': str(s.cursor)}", "s.progress(s.run.mode)"))
    transcript = collect(folder, state={"alpha": {"n": 7}, "beta": {"n": 8}}, streams=["alpha"], **mode)
    assert transcript.records("alpha") == [{"id": seen}]
    assert transcript.messages[1]["message"] == mode.get("mode", "incremental")


def test_a_first_run_has_an_empty_cursor(written: Any) -> None:
    """Neither null nor another stream's cursor stands for one that was never saved."""
    folder = written(body("yield {'id': str(s.cursor)}"))
    for state in (None, {}, {"beta": {"n": 8}}):
        assert collect(folder, state=state, streams=["alpha"]).records("alpha") == [{"id": "{}"}]


# Records


def test_a_record_that_cannot_be_written_does_not_count(written: Any) -> None:
    """DONE counts what stands on the wire, so one bad record does not spoil the run's end."""
    lines = ["s.emit({'id': '1', 'x': object()})", "s.emit({'id': '2'})"]
    code = body("s.emit({'id': '1'})", *lines) + body("yield {'id': '1'}", stream="beta")
    transcript = collect(written(code))
    records = [message for message in transcript.messages if message["type"] == "RECORD"]
    assert len(records) == transcript.done["records_emitted"] == 2
    assert "TypeError" in transcript.messages[1]["message"]


def test_great_numbers_and_any_text_are_written_as_they_are(written: Any) -> None:
    """Nothing is bent on the way out."""
    value = {"id": "1", "n": 10**30, "s": "\u2028\u2029\u0085\x00\n\U0001f3b5"}
    assert collect(written(body(f"yield {value!r}")), streams=["alpha"]).records("alpha") == [value]


@pytest.mark.clause("CORE-024")
def test_emitted_at_is_the_time_of_emission(written: Any) -> None:
    """It is near the wall clock, however old the record is."""
    before = clock.now()
    (record, _) = collect(written(body("yield {'id': '1', 'at': '1999-01-01'}")), streams=["alpha"]).messages
    moment = clock.parse(record["emitted_at"])
    assert moment is not None
    assert before - timedelta(seconds=1) <= moment <= clock.now()


@pytest.mark.parametrize(
    ("value", "key"),
    [("'a'", "a"), ("7", "7"), ("7.0", "7"), ("10**30", "1" + "0" * 30), ("1.5", "1.5"), ("''", "")],
)
def test_a_key_is_the_text_of_its_field(written: Any, value: str, key: str) -> None:
    """A number has one spelling."""
    (record, _) = collect(written(body(f"yield {{'id': {value}}}")), streams=["alpha"]).messages
    assert record["key"] == key


@pytest.mark.parametrize("data", ["{}", "{'id': None}", "{'id': True}", "{'id': ['a']}"])
def test_a_record_without_its_key_is_refused(written: Any, data: str) -> None:
    """No key is made up."""
    refused(collect(written(body(f"yield {data}")), streams=["alpha"]))


def test_a_compound_key_is_an_array_in_the_declared_order(written: Any) -> None:
    """Its parts are texts."""
    rows = [{"name": "alpha", "primary_key": ["user", "n"]}, {"name": "beta"}]
    code = body("yield {'n': 7, 'user': 'u1'}") + body("s.emit({}, key=['x', 'y'])", stream="beta")
    records = collect(written(code, rows)).messages[:2]
    assert [record["key"] for record in records] == [["u1", "7"], ["x", "y"]]


def test_a_stream_that_declares_no_key_must_be_given_one(written: Any) -> None:
    """A key by guess would be an identity by guess."""
    assert "pass key=" in refused(collect(written(body("yield {'id': '1'}"), [{"name": "alpha"}])))


def test_a_delete_needs_its_key_only(written: Any) -> None:
    """It is a RECORD with the directive beside its data."""
    (record, _) = collect(written(body("s.delete({'id': '1'})")), streams=["alpha"]).messages
    assert (record["op"], record["key"], record["data"]) == ("delete", "1", {"id": "1"})


def test_a_skip_says_what_was_said(written: Any) -> None:
    """Members that were not given are absent."""
    messages = collect(written(body("s.skip('rate_limited')", "s.skip('x', 'why', hint='unknown')"))).messages
    assert messages[:2] == [
        {"type": "SKIP_RESULT", "stream": "alpha", "reason": "rate_limited"},
        {"type": "SKIP_RESULT", "stream": "alpha", "reason": "x", "message": "why", "recovery_hint": "unknown"},
    ]


# Scope


@pytest.mark.clause("CP-313")
@pytest.mark.parametrize("call", ["emit({'id': '1'})", "save({})", "delete({'id': '1'})"])
def test_a_stream_outside_the_scope_cannot_speak(written: Any, call: str) -> None:
    """The SDK raises; a stream of the scope goes on, and a function for another is not called at all."""
    code = body(f"s.run.stream('beta').{call}") + body("raise SystemExit", stream="gamma")
    assert "not in the scope" in refused(collect(written(code), streams=["alpha"]))


@pytest.mark.clause("CP-313")
def test_resources_are_applied_before_a_record_is_written(written: Any) -> None:
    """Only the named records are sent, deletes among them; the connector may ask which ones were."""
    code = body("sent = [s.emit({'id': i}) for i in ('r1', 'r2')]", "s.delete({'id': 'r2'})", "s.progress(str(sent))")
    messages = collect(written(code), streams=[{"name": "alpha", "resources": ["r1"]}]).messages
    assert [message.get("key") for message in messages] == ["r1", None, None]
    assert messages[1]["message"] == "[True, False]"
    assert messages[-1]["records_emitted"] == 1


@pytest.mark.clause("CP-313")
def test_a_compound_resource_is_named_by_its_canonical_key(written: Any) -> None:
    """It is the JSON text of the array, without spaces."""
    rows = [{"name": "alpha", "primary_key": ["user", "day"]}]
    code = body("for day in ('1', '2'): s.emit({'user': 'u\u00e9', 'day': day})")
    messages = collect(written(code, rows), streams=[{"name": "alpha", "resources": ['["u\u00e9","2"]']}]).messages
    assert [message.get("key") for message in messages] == [["u\u00e9", "2"], None]


@pytest.mark.clause("CP-313")
@pytest.mark.parametrize(
    ("window", "kept"),
    [
        ({"since": "2026-01-02T00:00:00Z", "until": "2026-01-03T00:00:00Z"}, ["at since", "other offset"]),
        ({"since": "2026-01-02T00:00:00Z"}, ["at since", "other offset", "at until"]),
        ({"until": "2026-01-03T00:00:00Z"}, ["before", "at since", "other offset"]),
        ({}, ["before", "at since", "other offset", "at until", "none", "no time"]),
    ],
)
def test_the_window_is_applied_before_a_record_is_written(
    written: Any, window: dict[str, str], kept: list[str]
) -> None:
    """`since` is inside and `until` is not; a record that has no time is outside any window."""
    times = {
        "before": "2026-01-01T23:59:59.999Z",
        "at since": "2026-01-02T00:00:00Z",
        "other offset": "2026-01-03T00:30:00+01:00",
        "at until": "2026-01-03T00:00:00Z",
        "none": None,
        "no time": "soon",
    }
    code = body(f"for name, at in {times!r}.items(): yield {{'id': name, 'at': at, 'created': 1}}")
    transcript = collect(written(code, [TIMED]), streams=[{"name": "alpha", "time_range": window}])
    assert [record["id"] for record in transcript.records("alpha")] == kept


@pytest.mark.parametrize("side", ["since", "until"])
def test_a_window_that_cannot_be_read_fails_the_run(written: Any, side: str) -> None:
    """It is never taken for no window."""
    entry = {"name": "alpha", "time_range": {side: "yesterday"}}
    transcript = collect(written(body("yield {'id': '1', 'at': '2026-01-01'}"), [TIMED]), streams=[entry])
    assert [message["type"] for message in transcript.messages] == ["DONE"]
    assert transcript.exit_status == 1


@pytest.mark.clause("CP-315")
def test_fields_that_were_not_asked_for_are_left_out(written: Any) -> None:
    """Only asked-for fields are sent, and those that every record needs although nobody named them."""
    code = body("yield {name: name for name in ('id', 'at', 'title', 'body', 'created', 'secret')}")
    transcript = collect(written(code, [TIMED]), streams=[{"name": "alpha", "fields": ["title"]}])
    assert [sorted(record) for record in transcript.records("alpha")] == [["at", "created", "id", "title"]]


@pytest.mark.clause("CP-315")
def test_without_fields_a_record_is_sent_whole(written: Any) -> None:
    """Nothing is left out that nobody asked to leave out; an empty list still keeps what every record needs."""
    code = body("yield {'id': '1', 'at': '2', 'created': 3, 'extra': 4}")
    folder = written(code, [TIMED])
    assert [sorted(record) for record in collect(folder).records("alpha")] == [["at", "created", "extra", "id"]]
    bare = collect(folder, streams=[{"name": "alpha", "fields": []}])
    assert [sorted(record) for record in bare.records("alpha")] == [["at", "created", "id"]]
