"""Values that JSON does not have are refused with a word, and never sent as something else."""

from typing import Any

import pytest

from headwater.sdk.testing import collect


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("float('nan')", "nan, which JSON does not have"),
        ("float('-inf')", "-inf, which JSON does not have"),
        ("b'x'", "bytes, which JSON does not have"),
        ("bytearray(b'x')", "bytes"),
        ("memoryview(b'x')", "bytes"),
        ("{'deep': [1, {'x': float('nan')}]}", "/v/deep/1/x"),
        ("(b'x',)", "/v/0"),
        ("{float('nan')}", "/v/0"),
    ],
)
def test_a_record_with_such_a_value_is_refused(written: Any, value: str, said: str) -> None:
    """The stream fails with the place and the remedy on stderr; the record is not on stdout."""
    transcript = collect(
        written(f"@stream('alpha')\ndef alpha(s):\n    s.emit({{'id': '1', 'v': {value}}})"), streams=["alpha"]
    )
    assert [message["type"] for message in transcript.messages] == ["SKIP_RESULT", "DONE"]
    assert "a record of alpha holds" in transcript.stderr
    assert said in transcript.stderr
    assert transcript.exit_status == 1


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("s.save({'n': float('inf')})", "a STATE"),
        ("s.save({'n': b'x'})", "a STATE"),
        ("s.progress('x', count=float('nan'))", "a PROGRESS"),
    ],
)
def test_another_message_with_such_a_value_is_refused(written: Any, call: str, what: str) -> None:
    """A cursor that comes back as something else is worse than none."""
    transcript = collect(written(f"@stream('alpha')\ndef alpha(s):\n    {call}"), streams=["alpha"])
    assert [message["type"] for message in transcript.messages] == ["SKIP_RESULT", "DONE"]
    assert what in transcript.stderr


def test_what_json_has_is_sent_as_it_is(written: Any) -> None:
    """Numbers, nulls, texts and what they are nested in."""
    data = {"id": "1", "f": 0.1, "i": 9007199254740993, "n": None, "t": True, "l": [1.5, {"x": []}], "s": "NaN"}
    transcript = collect(written(f"@stream('alpha')\ndef alpha(s):\n    yield {data}"), streams=["alpha"])
    assert transcript.records("alpha") == [data]
