"""Keeps every clause that `connectors check` looks at, but for the one sin that its options name. No SDK."""

import hashlib
import json
import os
import signal
import socket
import sys
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

OPTIONS = json.loads(os.environ["HEADWATER_OPTIONS"])
SIN = OPTIONS.get("sin", "")
LETTERS = [{"id": f"l{n}", "at": f"2026-04-{n:02d}T10:00:00Z", "text": "Dear Ada. " * 90} for n in range(1, 13)]
if SIN == "saves_late":
    LETTERS = [{"id": f"l{n}", "at": "2026-04-01T10:00:00Z"} for n in range(2_500)]
sent = 0


def say(type_, more="", **members):
    line = json.dumps({"type": type_, **members}) + more
    with suppress(BlockingIOError):
        os.write(1, (line + "\n").encode())


def record(stream, data, scope, **members):
    global sent
    fields = scope.get("fields")
    if fields and SIN != "sends_all_fields":
        data = {name: value for name, value in data.items() if name in fields}
    key = uuid.uuid4().hex if SIN == "new_keys" else data["id"]
    if SIN == "new_keys":
        data = {**data, "id": key}
    say("RECORD", stream=stream, key=key, data=data, emitted_at=datetime.now(UTC).isoformat(), **members)
    sent += 1


def end(status, code=None, error=None):
    members = {} if error is None else {"error": {"message": error, "retryable": True}}
    if SIN == "leaves_without_done":
        sys.exit(0)
    if SIN == "half_a_line":
        os.write(1, b'{"type":"DONE","sta')
        sys.exit(0)
    say("DONE", status=status, records_emitted=sent + (SIN == "counts_wrong"), **members)
    if SIN == "speaks_after_done":
        say("PROGRESS", message="bye")
    sys.exit((0 if status == "succeeded" else 1) if code is None else code)


def wanted(scope, letter):
    window = scope.get("time_range", {})
    if SIN == "ignores_scope":
        return True
    if SIN == "until_is_inclusive" and letter["at"] == window.get("until", "")[:19] + "Z":
        return True
    at = datetime.fromisoformat(letter["at"])
    since, until = (window.get(side) for side in ("since", "until"))
    if SIN == "since_is_exclusive" and since and at == datetime.fromisoformat(since):
        return False
    return (
        letter["id"] in scope.get("resources", [letter["id"]])
        and (not since or at >= datetime.fromisoformat(since))
        and (not until or at < datetime.fromisoformat(until))
    )


def reach():
    """Look for the source; a network that is not there has none."""
    if "port" not in OPTIONS:
        return
    try:
        socket.create_connection(("127.0.0.1", OPTIONS["port"]), timeout=5).close()
    except OSError:
        if SIN == "claims_nothing":
            end("succeeded")
        if SIN == "dies_without_network":
            os._exit(1)
        end("failed", error="The source cannot be reached.")


def ask():
    for _ in range(1_000 if SIN == "asks_for_ever" else 1):
        more = '\n{"type":"PROGRESS","message":"waiting"}' if SIN == "speaks_while_waiting" else ""
        say("INTERACTION", more, request_id="q1", kind="otp", message="The code?")
        answer = json.loads(sys.stdin.readline())
        if answer["status"] == "success" and SIN != "asks_for_ever":
            return answer["data"]["code"]
        if answer["status"] == SIN.removeprefix("dies_when_"):
            os._exit(1)
    if SIN != "asks_for_ever":
        end("failed", error="There is no code.")
    return None


def before_records(start, code):
    """Do what is done besides collecting: nothing, in a connector without a sin."""
    global sent
    if SIN == "tells_stderr":
        sys.stderr.write(f"the code is {code}\n")
    if SIN == "tells_progress":
        say("PROGRESS", message=f"Signing in with {code}")
    if SIN == "ignores_sigterm":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say("PROGRESS", message="The next line does not fit into the pipe.")
        say("PROGRESS", message="x" * 9_000)
    if SIN in LINES:
        os.write(1, LINES[SIN])
        sent += SIN.startswith("record_")
    if SIN == "honours_strange" and "example.com/strange" in start["bindings"]:
        end("succeeded")
    if SIN == "remembers_in_its_folders":
        for mark in (Path(os.environ[name], "mark") for name in ("HEADWATER_BLOBS", "TMPDIR")):
            if mark.exists():
                end("succeeded")
            mark.touch()


def main():
    if SIN == "speaks_early":
        say("PROGRESS", message="here I am")
    start = json.loads(sys.stdin.readline())
    scopes = {entry["name"]: entry for entry in start["scope"]["streams"]}
    if SIN != "forgets_bindings" and "network" not in start["bindings"]:
        end("failed", error="START lacks network.")
    reach()
    code = ask() if OPTIONS.get("asks") else ""
    before_records(start, code)
    saved = (start["state"] or {}).get("letters", {}).get("after", "")
    drafts(scopes, (start["state"] or {}).get("drafts", {}).get("after", ""))
    letters(scopes, "" if SIN == "begins_again" else saved, code)
    if "stamps" in scopes and "letters" in scopes and OPTIONS.get("lanes"):
        say("STREAM_EVIDENCE", reference_only=True, stream="stamps", considered=1, outcomes=EVIDENCE)
        if SIN == "measures_twice":
            say("STREAM_EVIDENCE", reference_only=True, stream="stamps", considered=1, outcomes=EVIDENCE)
    end("succeeded", {"exits_wrong": 3}.get(SIN))


def drafts(scopes, after):
    scope = scopes.get("drafts", {"resources": []})
    for name in ("a", "b", "c", "d"):
        if name > after and SIN == "saves_early":
            say("STATE", stream="drafts", cursor={"after": name})
        if name > after and name in scope.get("resources", [name]):
            record("drafts", {"id": name}, scope)
    if "resources" not in scope:
        say("STATE", stream="drafts", cursor={"after": "d"})


def letters(scopes, after, code):
    scope = scopes.get("letters")
    if scope is None:
        return
    if "time_range" in scope and SIN == "skips_and_sends":
        say("SKIP_RESULT", stream="letters", reason="scope_not_supported")
    if SIN == "drops_when_slow":
        os.set_blocking(1, False)
    for letter in LETTERS:
        if SIN == "saves_late" or letter["at"] > after:
            one_letter(letter, scope, {"code": code} if SIN == "saves_code" else {})
    if SIN == "saves_late":
        say("STATE", stream="letters", cursor={"after": "2026-04-30T10:00:00Z"})
    if "scans" in scopes:
        scans(scopes["scans"], code)


def one_letter(letter, scope, more):
    if SIN == "remembers":
        with socket.create_connection(("127.0.0.1", OPTIONS["port"]), timeout=5) as source:
            source.sendall(letter["id"].encode())
            source.shutdown(socket.SHUT_WR)
            if source.recv(16) == b"taken":
                return
    if wanted(scope, letter):
        record("letters", letter, scope)
    if SIN != "saves_late" and not {"resources", "time_range"} & scope.keys():
        say("STATE", stream="letters", cursor={"after": letter["at"], **more})


def scans(scope, code):
    if SIN == "no_report":
        return
    required, hydrated = ["s1", "s2"], ["s1"]
    if "s1" in scope.get("resources", ["s1"]):
        record("scans", {"id": "s1", "blob_ref": scan()}, scope)
    if SIN != "unaccounted":
        locator = {"scan": "s2", **({"code": code} if SIN == "locates_code" else {})}
        say("DETAIL_GAP", stream="scans", record_key="s2", reason="later", detail_locator=locator)
    report = {"reference_only": True, "stream": "scans", "state_stream": "letters", "required_keys": required}
    gaps = [] if SIN == "unaccounted" else ["s2"]
    for _ in range(2 if SIN == "reports_twice" else 1):
        say("DETAIL_COVERAGE", **report, hydrated_keys=hydrated, gap_keys=gaps)


def scan():
    """Hand over the bytes of a scan, and refer to them."""
    content = b"What the scanner saw."
    digest = hashlib.sha256(content).hexdigest()
    if SIN != "keeps_the_bytes":
        Path(os.environ["HEADWATER_BLOBS"], digest).write_bytes(content if SIN != "other_bytes" else b"Another.")
    name = {"blob_id": f"blob_sha256_{digest}", "sha256": digest}
    return {**name, "mime_type": "image/png", "size_bytes": len(content)}


EVIDENCE = {"emitted": 0, "unchanged": 1, "gapped": 0, "unaccounted": 0}
RECORD = {"type": "RECORD", "stream": "letters", "key": "x", "data": {"id": "x", "at": "2026-04-01T00:00:00Z"}}
REPORT = {"type": "DETAIL_COVERAGE", "reference_only": True, "stream": "scans", "state_stream": "letters"}
COUNTED = {"type": "STREAM_EVIDENCE", "reference_only": True, "considered": 1, "outcomes": EVIDENCE}
WRONG = {
    "prints": "Hello",
    "lists": [1],
    "invents_a_type": {"type": "NOVEL"},
    "record_without_time": RECORD,
    "record_of_another_key": {**RECORD, "key": "y", "emitted_at": "2026-04-01T00:00:00Z"},
    "record_without_field": {**RECORD, "data": {"id": "x"}, "emitted_at": "2026-04-01T00:00:00Z"},
    "cursor_is_text": {"type": "STATE", "stream": "letters", "cursor": "l1"},
    "cursor_of_a_child": {"type": "STATE", "stream": "stamps", "cursor": {}},
    "skip_of_a_number": {"type": "SKIP_RESULT", "stream": 3},
    "progress_without_message": {"type": "PROGRESS"},
    "question_without_kind": {"type": "INTERACTION", "request_id": "q", "message": "?"},
    "done_without_count": {"type": "DONE", "status": "succeeded", "records_emitted": -1},
    "gap_of_a_stranger": {"type": "DETAIL_GAP", "stream": "ghost"},
    "report_without_keys": {**REPORT, "hydrated_keys": []},
    "report_of_a_key_too_many": {**REPORT, "required_keys": [], "hydrated_keys": ["s9"]},
    "report_of_a_child": {**REPORT, "stream": "stamps", "required_keys": [], "hydrated_keys": []},
    "report_to_a_stranger": {**REPORT, "state_stream": "stamps", "required_keys": [], "hydrated_keys": []},
    "evidence_of_a_parent": {**COUNTED, "stream": "letters"},
    "evidence_that_lies": {**COUNTED, "stream": "stamps", "considered": 7},
}
LINES = {sin: (wrong if isinstance(wrong, str) else json.dumps(wrong)).encode() + b"\n" for sin, wrong in WRONG.items()}

main()
