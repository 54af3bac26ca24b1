"""Patterns that are plain are judged without their engine, and as it judges them."""

import subprocess
import sys

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.manifest.patterns import _PLAIN, pattern_fault

pieces = st.sampled_from(
    [*"az09AZ!,.:/@^&~-+*[]{|}\\", r"\d", r"\s", r"\w", r"\b", "a-z", "z-a", "!-~", "&&", "~~", "||"]
)
classes = st.builds("[{}]{}".format, st.lists(pieces, max_size=5).map("".join), st.sampled_from(["", "+", "*", "?"]))


def fits(pattern: str) -> bool:
    """Whether the engine reads a pattern."""
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions())
    except ValueError:
        return False
    return True


@pytest.mark.clause("INT-173")
@given(classes)
def test_a_plain_pattern_is_judged_as_its_engine_judges_it(pattern: str) -> None:
    """Whatever is in the class: the short way accepts what the engine accepts, and nothing else."""
    if _PLAIN.fullmatch(pattern):
        assert (pattern_fault(pattern) is None) == fits(pattern)


@pytest.mark.parametrize("pattern", ["[^:]+", "[!-~]+", r"[^\s]+", "[A-Za-z0-9._-]+", "[a&b]"])
def test_usual_patterns_are_sound(pattern: str) -> None:
    """With the engine or without it."""
    assert pattern_fault(pattern) is None
    assert fits(pattern)


@pytest.mark.parametrize("pattern", ["[z-a]", "[^]", "[]", "[a", "[a&&b", "(?=a)", r"(a)\1"])
def test_what_no_engine_or_not_this_one_reads_is_a_fault(pattern: str) -> None:
    """A range that runs backwards, an empty or open class, looking around, references."""
    assert pattern_fault(pattern) is not None


def test_a_plain_pattern_needs_no_engine() -> None:
    """That is what the short way is for."""
    code = (
        "import sys; from headwater.manifest.patterns import pattern_fault\n"
        "assert pattern_fault('[^:]+') is None\nsys.exit('jsonschema_rs' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
