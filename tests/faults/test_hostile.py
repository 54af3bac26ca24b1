"""A hostile connector for each rule that one can break: a named outcome, a line, what was good kept, memory bounded."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from faults.machine import Place

from headwater import limits

GUESTS = Path(__file__).parents[1] / "guests"
AT = '"emitted_at":"2026-04-01T10:00:00Z"'
MIB = 1024 * 1024
MEMORY_BYTES = 320 * MIB


class Row(NamedTuple):
    """What a connector writes, and what comes of it: why the run failed, or the receipts of one that succeeds."""

    name: str
    written: bytes
    cause: str = ""
    receipts: tuple[str, ...] = ()
    line: int = 3


def told(kind: str, members: str) -> bytes:
    return f'{{"type":"{kind}",{members}}}\n'.encode()


def record(members: str) -> bytes:
    return told("RECORD", members)


def held(key: str, data: str) -> bytes:
    return record(f'"stream":"alpha","key":{key},"data":{data},{AT}')


def covered(stream: str, parent: str, sets: str = ',"required_keys":["1"],"hydrated_keys":["1"]') -> bytes:
    return told("DETAIL_COVERAGE", f'"stream":"{stream}","state_stream":"{parent}","reference_only":true{sets}')


def measured(stream: str, considered: int) -> bytes:
    outcomes = '"outcomes":{"emitted":1,"unchanged":0,"gapped":0,"unaccounted":0}'
    return told("STREAM_EVIDENCE", f'"stream":"{stream}","reference_only":true,"considered":{considered},{outcomes}')


STREAM, KEY, DATA = '"stream":"alpha"', '"key":"x"', '"data":{"id":"x"}'
ASK = '"request_id":"q","kind":"otp","message":"m"'
DEEP = b"[" * 10_000 + b"]" * 10_000

BAD_LINES = [
    # CP-100 to CP-105: what a line is.
    Row("junk", b"hello\n", "not_json"),
    Row("two values", b"{} {}\n", "not_json"),
    Row("a list", b"[]\n", "not_a_message"),
    Row("no type", b"{}\n", "not_a_message"),
    Row("a type that is a number", b'{"type":5}\n', "not_a_message"),
    Row("a space", b" \n", "not_json"),
    Row("NaN", told("PROGRESS", '"message":"m","count":NaN'), "not_json"),
    Row("a byte order mark", b"\xef\xbb\xbf" + held('"x"', '{"id":"x"}'), "not_json"),
    Row("no UTF-8", b'{"type":"\xff"}\n', "not_utf8"),
    Row("a surrogate in UTF-8", b'{"type":"PROGRESS","message":"\xed\xa0\x80"}\n', "not_utf8"),
    Row("UTF-16", '{"type":"PROGRESS"}'.encode("utf-16-le") + b"\n", "not_json"),
    Row("a separator between tokens", '{"type":\u2028"PROGRESS"}\n'.encode(), "not_json"),
    Row("a CR for a line's end", b'{"type":"PROGRESS","message":"m"}\r{"type":"SKIP_RESULT"}\n', "not_json"),
    Row("a raw NUL", b'{"type":"PROGRESS","message":"\x00"}\n', "not_json"),
    Row("junk after blank lines", b"\n\r\n\nhello\n", "not_json", line=6),
    Row("junk after a good line", told("PROGRESS", '"message":"m"') + b"hello\n", "not_json", line=4),
    Row("a long line", b"x" * (limits.LINE_BYTES + 1) + b"\n", "line_too_long"),
    Row("a line of 33 MiB that is JSON", told("PROGRESS", f'"message":"{"x" * 33 * MIB}"'), "line_too_long"),
    Row("deep and broken", b'{"type":"RECORD","data":' + b"[" * 10_000 + b"}\n", "not_json"),
    Row("deep and no record", b'{"type":"STATE","stream":"alpha","cursor":{"n":' + DEEP + b"}}\n", "nested_too_deep"),
    # CP-107, CP-202, CP-910: types that are none, or not the connector's to say.
    Row("an unknown type", told("NOVEL", '"x":1'), "unknown_type"),
    Row("START", told("START", '"run_id":"r","scope":{"streams":[]},"state":null,"bindings":{}'), "unknown_type"),
    Row("an answer", told("INTERACTION_RESPONSE", '"request_id":"q","status":"success"'), "unknown_type"),
    # CP-115 to CP-119: RECORD.
    Row("a record without a stream", record(f"{KEY},{DATA},{AT}"), "invalid_message"),
    Row("a record of an empty stream", record(f'"stream":"",{KEY},{DATA},{AT}'), "invalid_message"),
    Row("a record of a number", record(f'"stream":3,{KEY},{DATA},{AT}'), "invalid_message"),
    Row("a record without data", record(f"{STREAM},{KEY},{AT}"), "record_data"),
    Row("a record of a list", record(f'{STREAM},{KEY},"data":[],{AT}'), "record_data"),
    Row("a record of null", record(f'{STREAM},{KEY},"data":null,{AT}'), "record_data"),
    Row("a record without a time", record(f"{STREAM},{KEY},{DATA}"), "invalid_message"),
    Row("a record of no time", record(f'{STREAM},{KEY},{DATA},"emitted_at":"yesterday"'), "emitted_at"),
    Row("a record of a day", record(f'{STREAM},{KEY},{DATA},"emitted_at":"2026-04-01"'), "emitted_at"),
    Row("a key that is a number", record(f'{STREAM},"key":5,{DATA},{AT}'), "invalid_message"),
    Row("a key of numbers", record(f'{STREAM},"key":[5],{DATA},{AT}'), "invalid_message"),
    Row("a key that is an object", record(f'{STREAM},"key":{{}},{DATA},{AT}'), "invalid_message"),
    Row("no key", record(f"{STREAM},{DATA},{AT}"), "invalid_message"),
    Row("an unknown op", record(f'{STREAM},{KEY},{DATA},{AT},"op":"merge"'), "invalid_message"),
    # CP-125, CP-126: STATE.
    Row("a cursor that is text", told("STATE", f'{STREAM},"cursor":"c"'), "state_cursor"),
    Row("no cursor", told("STATE", STREAM), "invalid_message"),
    Row("a STATE of a detail stream", told("STATE", '"stream":"bodies","cursor":{}'), "state_stream"),
    Row("a STATE of a rider", told("STATE", '"stream":"labels","cursor":{}'), "state_stream"),
    Row("a STATE of no stream", told("STATE", '"stream":"nonsuch","cursor":{}'), "state_stream"),
    Row("a cursor that names a member twice", told("STATE", f'{STREAM},"cursor":{{"a":1,"a":2}}'), "repeated_member"),
    # CP-130, CP-137, CP-150 to CP-153: SKIP_RESULT, PROGRESS, DONE.
    Row("a skip of a number", told("SKIP_RESULT", '"stream":5'), "invalid_message"),
    Row("a hint that is no hint", told("SKIP_RESULT", '"recovery_hint":"perhaps"'), "invalid_message"),
    Row("progress without words", told("PROGRESS", '"count":1'), "invalid_message"),
    Row("DONE of another status", told("DONE", '"status":"ok","records_emitted":1'), "invalid_message"),
    Row("DONE of half a record", told("DONE", '"status":"succeeded","records_emitted":1.5'), "done_count"),
    Row("DONE of true", told("DONE", '"status":"succeeded","records_emitted":true'), "invalid_message"),
    Row("DONE of less than none", told("DONE", '"status":"succeeded","records_emitted":-1'), "done_count"),
    Row("DONE twice", told("DONE", '"status":"succeeded","records_emitted":1'), "after_done", line=4),
    # CP-510 to CP-560: DETAIL_COVERAGE and DETAIL_GAP.
    Row("coverage of a foreign parent", covered("bodies", "beta"), "coverage_parent"),
    Row("coverage of a rider", covered("labels", "alpha"), "coverage_of_state_stream"),
    Row("coverage of no stream", covered("nonsuch", "alpha"), "coverage_scope"),
    Row("coverage without sets", covered("bodies", "alpha", ""), "invalid_message"),
    Row("coverage twice", covered("bodies", "alpha") * 2, "coverage_twice", line=4),
    Row("a gap of no stream", told("DETAIL_GAP", '"stream":"nonsuch","record_key":"1"'), "gap_scope"),
    # CP-600 to CP-624: STREAM_EVIDENCE.
    Row("evidence of a parent", measured("alpha", 1), "evidence_stream"),
    Row("evidence that does not add up", measured("labels", 2), "evidence_counts"),
    Row("evidence of less than none", measured("labels", -1), "evidence_counts"),
    Row("evidence twice", measured("labels", 1) * 2, "evidence_twice", line=4),
    Row("evidence for keeps", measured("labels", 1).replace(b"true", b"false"), "evidence_reference_only"),
    # CP-700 to CP-702: INTERACTION.
    Row("a question of no kind", told("INTERACTION", ASK.replace("otp", "riddle")), "invalid_message"),
    Row("a question for no time", told("INTERACTION", f'{ASK},"timeout_seconds":0'), "interaction_timeout"),
    Row("a second question", told("INTERACTION", ASK) * 2, "spoke_while_waiting", line=4),
    Row("a word behind a question", told("INTERACTION", ASK) + b"hello\n", "spoke_while_waiting", line=4),
]  # fmt: skip

POISON = [
    # A record that is none to keep costs the run nothing: it is receipted, and the cursor commits.
    Row("a member named twice", held('"x"', '{"id":"x","n":1,"n":2}'), receipts=("repeated_member",)),
    Row("half a surrogate pair", held('"x"', r'{"id":"x","t":"\ud800"}'), receipts=("lone_surrogate",)),
    Row("10,000 levels", held('"x"', f'{{"id":"x","n":{DEEP.decode()}}}'), receipts=("nested_too_deep",)),
    Row("a giant key", held(f'"{"k" * 100_000}"', f'{{"id":"{"k" * 100_000}"}}'), receipts=("key_size",)),
    Row("a key of another record", held('"y"', '{"id":"x"}'), receipts=("key_identity",)),
    Row("an empty list for a key", held("[]", '{"id":"x"}'), receipts=("key_identity",)),
    Row("a number of 6,000 digits", held('"x"', f'{{"id":"x","n":{"9" * 6_000}.5}}'), receipts=("unreadable_value",)),
    Row("30 digits", held('"x"', '{"id":"x","n":123456789012345678901234567890}')),
    Row("NUL in a key", held(r'"a\u0000b"', r'{"id":"a\u0000b"}')),
    Row("separators inside", held('"\u2028\u0085"', '{"id":"\u2028\u0085"}')),
    Row("CR LF", held('"x"', '{"id":"x"}').replace(b"\n", b"\r\n")),
    Row("blank lines", b"\n\n\r\n" + held('"x"', '{"id":"x"}') + b"\n"),
    Row("a record out of scope", record(f'"stream":"nonsuch",{KEY},{DATA},{AT}'), receipts=("out_of_scope",)),
    Row("a deep word in no place", told("PROGRESS", '"message":"m","extra":{"a":[[[1]]]}')),
    Row("a skip with nothing in it", b'{"type":"SKIP_RESULT"}\n'),
    Row("a gap with nothing in it", told("DETAIL_GAP", STREAM)),
]  # fmt: skip


@pytest.fixture
def place(tmp_path, hosts):
    """A Headwater whose connectors declare a parent, another, a detail stream and a rider."""
    common = {
        "primary_key": ["id"],
        "semantics": "mutable_state",
        "schema": {"type": "object", "properties": {"id": {}}},
    }
    detail = {"parent_streams": ["alpha"], "coverage_strategy": "parent_detail_accounting"}
    rider = {"state_stream": "alpha", "coverage_strategy": "checkpoint_window"}
    streams = [{"name": "alpha"}, {"name": "beta"}, {"name": "bodies", **detail}, {"name": "labels", **rider}]
    return Place(tmp_path, hosts, [{**common, **stream} for stream in streams])


def collect(place: Place, guest: str, *words: str, options: tuple[str, ...] = ()) -> dict[str, Any]:
    """Collect from a guest and return what the command printed; the host's memory stayed within its bound."""
    place.collect(sys.executable, "-SE", str(GUESTS / guest), *words, options=options)
    end = place.hosts.end()
    assert end.memory < MEMORY_BYTES
    return {"exit": end.status, **place.hosts.said}


def is_as_good_as_before(place: Place) -> None:
    """What was good before is kept, nothing is left open, and the database is sound."""
    assert ("a1",) in place.ask("SELECT key FROM records")
    assert place.ask("SELECT count(*) FROM staged") == [(0,)]
    assert place.ask("PRAGMA integrity_check") == [("ok",)]
    assert place.ask("SELECT count(*) FROM runs WHERE status = 'running'") == [(0,)]


@pytest.mark.clause("CP-101", "CP-102", "CP-115", "CP-116", "CP-125", "CP-126", "CP-212", "CP-213", "CP-700", "CP-702")
@pytest.mark.parametrize("row", BAD_LINES, ids=lambda row: row.name)
def test_a_bad_line_ends_the_run_and_is_named(place, tmp_path, row):
    """Its rule and its number are told, nothing of what it holds is, and no cursor moves."""
    (tmp_path / "bytes").write_bytes(row.written)
    said = collect(place, "writes.py", str(tmp_path / "bytes"))
    assert (said["exit"], said["code"], said["cause"]) == (1, "run_failed", row.cause)
    assert said["message"].endswith(f"See line {row.line} of its output.")
    assert said["checkpoints"]["committed"] == []
    ((facts,),) = place.ask("SELECT facts FROM runs")
    assert json.loads(facts)["violation_line"] == row.line
    assert place.ask("SELECT * FROM checkpoints") == []
    is_as_good_as_before(place)


@pytest.mark.clause("CP-104", "CP-121", "CP-320")
@pytest.mark.parametrize("row", POISON, ids=lambda row: row.name)
def test_an_odd_record_costs_the_run_nothing(place, tmp_path, row):
    """It is kept as it came, or receipted, and the cursor commits."""
    (tmp_path / "bytes").write_bytes(row.written)
    said = collect(place, "writes.py", str(tmp_path / "bytes"), options=("--stream", "alpha"))
    assert (said["exit"], said.get("cause")) == (0, "succeeded"), said
    assert said["checkpoints"]["committed"] == ["alpha"]
    assert place.ask("SELECT reason FROM receipts") == [(reason,) for reason in row.receipts]
    is_as_good_as_before(place)


@pytest.mark.parametrize(
    ("way", "cause", "options"),
    [
        ("blank lines", "idle", ("--idle-timeout", "0.5")),
        ("a blank line now and then", "idle", ("--idle-timeout", "0.5")),
        ("a byte now and then", "idle", ("--idle-timeout", "0.5")),
        ("a byte now and then", "run_time", ("--time-limit", "0.7")),
        ("a line without end", "line_too_long", ()),
        ("progress without end", "run_time", ("--time-limit", "0.7")),
        ("poison without end", "run_time", ("--time-limit", "0.7")),
        ("stops itself", "idle", ("--idle-timeout", "0.5")),
        ("leaves a crowd", "", ()),
        ("tells secrets", "", ()),
        ("closes its input", "", ()),
    ],
)
def test_no_behaviour_holds_the_host(place, way, cause, options):
    """Every wait ends, whatever the connector does or does not do, and no process of its group stays."""
    said = collect(place, "misbehaves.py", way, options=("--stream", "alpha", *options))
    assert (said["exit"], said["cause"]) == ((1, cause) if cause else (0, "succeeded")), said
    assert said["checkpoints"]["committed"] == ([] if cause else ["alpha"])
    assert place.left_behind() == []
    is_as_good_as_before(place)


@pytest.mark.parametrize("way", ["progress without end", "blank lines", "poison without end", "stops itself"])
def test_a_connector_that_never_pauses_can_be_interrupted(place, way):
    """Ctrl-C is heard through any flood, and the run is recorded as cancelled."""
    host = place.collect(sys.executable, "-SE", str(GUESTS / "misbehaves.py"), way)
    while not place.has("SELECT 1 FROM records"):
        pass
    os.kill(host, signal.SIGINT)
    assert place.hosts.end().status == 130
    assert place.ask("SELECT status FROM runs") == [("cancelled",)]
    assert place.ask("SELECT * FROM checkpoints") == []
    assert place.left_behind() == []


def test_what_a_connector_tells_on_stderr_stays_within_its_bound(place):
    """A flood of secrets leaves the last 16 KiB with the run, and none in what the command prints."""
    collect(place, "misbehaves.py", "tells secrets")
    assert "hunter2" not in json.dumps(place.hosts.said)
    ((tail,),) = place.ask("SELECT stderr_tail FROM runs")
    assert len(tail.encode()) <= limits.STDERR_TAIL_BYTES
