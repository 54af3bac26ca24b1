"""A note of a crash says where, and nothing of what."""

import itertools
import stat
from pathlib import Path

import pytest

from headwater import limits
from headwater.store.crashes import note_crash


def fail(secret: str) -> None:
    """Fail with a secret in the message, in a value and in what it came from."""
    try:
        raise KeyError(secret)
    except KeyError as error:
        raise ValueError(f"{secret} {error}") from error


def crashed(secret: str) -> BaseException:
    with pytest.raises(ValueError, match=secret) as raised:
        fail(secret)
    return raised.value


@pytest.mark.clause("CLI-011")
def test_a_note_has_types_and_places_and_no_message(tmp_path: Path) -> None:
    """It can be handed on."""
    note = note_crash(tmp_path / "crashes", crashed("s3nt1nel"))
    text = note.read_text()
    assert "builtins.ValueError" in text
    assert "because of\nbuiltins.KeyError" in text
    assert "/test_crashes.py:" in text
    assert ":fail\n" in text
    assert "s3nt1nel" not in text
    assert str(tmp_path) not in text
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    assert stat.S_IMODE(note.parent.stat().st_mode) == 0o700


def test_the_oldest_notes_give_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number is bounded, and the newest is there. Each is of a later millisecond, as crashes are."""
    numbers = itertools.count(100)
    monkeypatch.setattr("headwater.clock.identifier", lambda prefix: f"{prefix}_{next(numbers)}")
    notes = [note_crash(tmp_path, crashed("x")) for _ in range(limits.CRASH_NOTES + 3)]
    assert sorted(tmp_path.iterdir()) == sorted(notes[3:])


def test_a_chain_without_end_is_cut(tmp_path: Path) -> None:
    """A note stays small whatever happened."""
    error: BaseException = ValueError()
    for _ in range(100):
        outer = ValueError()
        outer.__cause__ = error
        error = outer
    assert note_crash(tmp_path, error).read_text().count("ValueError") == limits.CRASH_EXCEPTIONS + 1
    group = ExceptionGroup("x", [ValueError("s3nt1nel"), ExceptionGroup("y", [KeyError()])])
    assert "holding\nbuiltins.KeyError" in note_crash(tmp_path, group).read_text()
