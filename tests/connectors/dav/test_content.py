"""Content lines: folding, parameters, escapes, components; and nothing but a broken text is broken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.connectors.dav import content
from headwater.connectors.dav.content import BrokenError, components, split, unescaped


def one(*lines: str, end: str = "\r\n") -> content.Component:
    """Read one component with these lines in it."""
    (found,), unread = components(end.join(["BEGIN:X", *lines, "END:X", ""]))
    assert unread == 0
    return found


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
def test_a_folded_line_is_one(end: str) -> None:
    """RFC 5545, 3.1: the break and one blank go, whatever the line ends with."""
    assert one(f"NOTE:a{end} b{end}\tc{end}  d", end=end).text("NOTE") == "abc d"


def test_parameters_are_read_with_their_quotes() -> None:
    """Values in quotes may have separators; a caret escapes (RFC 6868)."""
    line = one('item1.Email;TYPE=work,"a:b;c";CN="say ^\'hi^\'^nyou^^":x:y').first("EMAIL")
    assert line is not None
    assert line.parameters == {"TYPE": ["work", "a:b;c"], "CN": ['say "hi"\nyou^']}
    assert (line.group, line.value) == ("item1", "x:y")


def test_a_bare_parameter_is_a_type() -> None:
    """As vCard 2.1 has it, and some programs still."""
    line = one("TEL;HOME;VOICE:1").first("TEL")
    assert line is not None
    assert line.parameters == {"TYPE": ["HOME", "VOICE"]}


@pytest.mark.parametrize(
    ("text", "plain"), [(r"a\, b\; c\\n\nd\N", "a, b; c\\n\nd\n"), ("\\", "\\"), (r"\x", "x"), ("", "")]
)
def test_escapes_are_undone_once(text: str, plain: str) -> None:
    """From left to right."""
    assert unescaped(text) == plain


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a;b;;c", ["a", "b", "", "c"]),
        (r"a\;b;c\\;d", [r"a\;b", r"c\\", "d"]),
        ("", []),
        (";", ["", ""]),
        ("a\\", ["a\\"]),
    ],
)
def test_a_value_is_split_where_no_backslash_stands(text: str, parts: list[str]) -> None:
    """A backslash may itself be behind one."""
    assert split(text, ";") == parts


def test_lines_that_cannot_be_read_are_counted() -> None:
    """The rest is there all the same."""
    (found,), unread = components("BEGIN:X\nno line\nNOTE:yes\n;:\nEND:X\nTRAILING:1\n")
    assert found.text("NOTE") == "yes"
    assert unread == 3


@pytest.mark.parametrize(
    "text",
    ["", "NOTE:x", "BEGIN:X", "END:X", "BEGIN:X\nEND:Y", "BEGIN:X\nEND:X\nEND:X", "BEGIN:X\nBEGIN:Y\nEND:X\nEND:Y"],
)
def test_components_that_do_not_end_are_broken(text: str) -> None:
    """Nothing is guessed about where they would."""
    with pytest.raises(BrokenError):
        components(text)


def test_nesting_and_length_have_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that never ends is not read to its end."""
    deep = [*(f"BEGIN:{n}" for n in range(16)), *(f"END:{n}" for n in reversed(range(16)))]
    with pytest.raises(BrokenError):
        components("\n".join(deep))
    assert components("\n".join(deep[1:-1]))
    monkeypatch.setattr(content, "LINES", 3)
    with pytest.raises(BrokenError):
        components("BEGIN:X\n" + "NOTE:x\n" * 3 + "END:X\n")


@given(
    st.lists(
        st.sampled_from(["BEGIN:X", "END:X", 'A;B="c:A', "A:b", " x", "", "A;=:", ":", "é:1", "\x00"]), max_size=12
    )
)
def test_any_text_is_read_or_broken(lines: list[str]) -> None:
    """No other exception is one for a connector to end by."""
    try:
        found, unread = components("\n".join(lines))
    except BrokenError:
        return
    assert found
    assert unread >= 0
