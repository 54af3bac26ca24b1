"""To a runtime that is not known to understand more, the SDK speaks the first revision, and lets no detail be lost."""

from typing import Any

import pytest

from headwater.sdk.testing import collect

EVERYTHING = """
@stream("inbox")
def inbox(s):
    with s.details("bodies") as lane, s.enumeration("labels") as walk:
        lane.emit({"id": "b1"})
        s.save({"n": 1})
        lane.gap("b2", "later", locator={"id": "b2"})
        walk.consider("l1")
        walk.unchanged("l1")
        s.save({"n": 2})
        s.save({"n": 3})
    s.skip("later", "Another time.", hint="retry_by_runtime")
@stream("archive")
def archive(s):
    with s.details("bodies") as lane:
        lane.require("b1")
        s.save({"n": 1})
        lane.emit({"id": "b1"})
        s.save({"n": 2})
@stream("people")
def people(s):
    raise Fail("Log in.", code="auth_failed", hint="refresh_credentials")
"""
NEWER = {"DETAIL_COVERAGE", "DETAIL_GAP", "STREAM_EVIDENCE"}


@pytest.mark.clause("CP-908")
def test_nothing_newer_is_said_to_an_older_runtime(written: Any) -> None:
    """No newer message, no hint, no code; records and counts are as ever."""
    transcript = collect(written(EVERYTHING, "MIX"), revision="first")
    kinds = {message["type"] for message in transcript.messages}
    assert kinds == {"RECORD", "STATE", "SKIP_RESULT", "DONE"}
    assert transcript.done["error"] == {"message": "Log in.", "retryable": True}
    assert all("recovery_hint" not in message for message in transcript.messages)
    assert transcript.done["records_emitted"] == len(transcript.records("bodies")) == 2


@pytest.mark.clause("CP-908")
def test_everything_is_said_to_a_runtime_of_today(written: Any) -> None:
    """The same connector sends all of it."""
    transcript = collect(written(EVERYTHING, "MIX"))
    assert {message["type"] for message in transcript.messages} > NEWER
    assert transcript.done["error"]["code"] == "auth_failed"


def test_a_missing_detail_keeps_the_cursor_where_an_older_runtime_would_lose_it(written: Any) -> None:
    """Such a runtime cannot be told of a gap: a cursor behind one is not sent, and a skip says so once."""
    transcript = collect(written(EVERYTHING, "MIX"), revision="first")
    saved = [
        (message["stream"], message["cursor"]["n"]) for message in transcript.messages if message["type"] == "STATE"
    ]
    assert saved == [("inbox", 1), ("archive", 2)]
    reasons = [(m["stream"], m["reason"]) for m in transcript.messages if m["type"] == "SKIP_RESULT"]
    assert reasons == [("inbox", "details_missing"), ("inbox", "later"), ("archive", "details_missing")]


@pytest.mark.clause("CP-908")
@pytest.mark.parametrize(
    ("environment", "newer"),
    [
        ({}, False),
        ({"HEADWATER_PROFILE": "first", "HEADWATER_OPTIONS": "{}"}, False),
        ({"HEADWATER_PROFILE": "third"}, False),
        ({"HEADWATER_PROFILE": "current"}, True),
        ({"HEADWATER_OPTIONS": "{}"}, True),
    ],
)
def test_a_runtime_is_known_by_what_it_sets(
    written: Any, launched: Any, environment: dict[str, str], newer: bool
) -> None:
    """Headwater's own variable, or the word of whoever deploys it; without either nothing newer is sent."""
    child = launched(written(EVERYTHING, "MIX"), environment)
    child.start("inbox", "bodies", "labels")
    messages, _, _ = child.end()
    assert bool(NEWER & {message["type"] for message in messages}) is newer
