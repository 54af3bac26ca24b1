"""Framing: a message ends at LF and at nothing else, however the bytes arrive."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import limits
from headwater.wire.framing import Framer, LineTooLong


def lines_of(*chunks: bytes, max_bytes: int = limits.LINE_BYTES) -> list[bytes]:
    """Feed chunks and return every line."""
    framer = Framer(max_bytes)
    return [line for chunk in chunks for line in framer.feed(chunk)]


@pytest.mark.clause("CP-105")
def test_what_no_newline_ends_is_no_line() -> None:
    """Half a message is never handed on, and is known to be half."""
    framer = Framer()
    assert framer.feed(b'{"type":"STATE"}\n{"type":"DONE","status":"succ') == [b'{"type":"STATE"}']
    assert framer.unfinished


def test_a_whole_last_line_leaves_nothing_unfinished() -> None:
    """Nothing is held before the first byte, nor after a newline."""
    framer = Framer()
    assert not framer.unfinished
    assert framer.feed(b"") == []
    assert framer.feed(b"one\n") == [b"one"]
    assert not framer.unfinished


@pytest.mark.clause("CP-104")
@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\v", "\f", "\x1c", "\x1d", "\x1e", "\r", "\x00"])
def test_no_other_separator_ends_a_line(separator: str) -> None:
    """What other readers take for a line's end stays inside the line."""
    inside = f"a{separator}b".encode()
    assert lines_of(inside + b"\nnext\n") == [inside, b"next"]


@pytest.mark.clause("CP-100")
def test_blank_lines_keep_their_place() -> None:
    """A CR before the LF is dropped, and only that one; a line of nothing is there, so that lines can be counted."""
    assert lines_of(b"\n\r\na\r\n\nb\r\r\n \n") == [b"", b"", b"a", b"", b"b\r", b" "]


@pytest.mark.parametrize("newline", [b"", b"\n"])
def test_a_line_over_the_bound_is_refused(newline: bytes) -> None:
    """One byte too many raises, whether or not the line has ended."""
    assert lines_of(b"x" * 10 + b"\n", max_bytes=10) == [b"x" * 10]
    with pytest.raises(LineTooLong):
        lines_of(b"x" * 11 + newline, max_bytes=10)


@pytest.mark.parametrize("newline", [b"", b"\n"])
def test_the_bound_holds_for_every_line_of_a_chunk(newline: bytes) -> None:
    """A long line behind a short one is refused too."""
    with pytest.raises(LineTooLong):
        lines_of(b"short\n" + b"x" * 11 + newline, max_bytes=10)


def test_the_bound_holds_across_chunks() -> None:
    """A line that grows byte by byte is refused at the byte that passes the bound."""
    framer = Framer(10)
    for _ in range(10):
        assert framer.feed(b"x") == []
    with pytest.raises(LineTooLong):
        framer.feed(b"x")
    with pytest.raises(LineTooLong):
        framer.feed(b"\nnext\n")


def test_a_line_of_20_mb_passes() -> None:
    """It arrives in pipe-sized chunks and leaves in one piece."""
    line = bytes(range(32, 127)) * 210_000
    size = limits.READ_BYTES
    chunks = [line[at : at + size] for at in range(0, len(line), size)]
    assert lines_of(*chunks, b"\n") == [line]


def test_a_line_past_the_real_bound_is_refused_before_it_is_held() -> None:
    """The bound is 32 MB: what comes beyond it is not kept."""
    framer = Framer()
    chunk = b"x" * limits.READ_BYTES
    for _ in range(limits.LINE_BYTES // limits.READ_BYTES):
        framer.feed(chunk)
    with pytest.raises(LineTooLong):
        framer.feed(b"x")


@pytest.mark.clause("CP-100", "CP-104", "CP-105")
@given(st.binary(max_size=200), st.lists(st.integers(0, 200)))
def test_chunking_never_changes_the_lines(stream: bytes, cuts: list[int]) -> None:
    """Cut anywhere, the bytes give the lines that a reader of the whole would find."""
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    chunks = [stream[start:end] for start, end in pairwise(edges)]
    framer = Framer()
    found = [line for chunk in chunks for line in framer.feed(chunk)]
    *whole, rest = stream.split(b"\n")
    assert found == [line.removesuffix(b"\r") for line in whole]
    assert framer.unfinished == bool(rest)


@given(st.lists(st.integers(0, 12), max_size=12), st.integers(1, 30))
def test_the_bound_does_not_depend_on_the_chunks(lengths: list[int], size: int) -> None:
    """A stream is refused just when one of its lines is too long."""
    stream = b"".join(b"x" * length + b"\n" for length in lengths)
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    if any(length > 10 for length in lengths):
        with pytest.raises(LineTooLong):
            lines_of(*chunks, max_bytes=10)
    else:
        assert len(lines_of(*chunks, max_bytes=10)) == len(lengths)
