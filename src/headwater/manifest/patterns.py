"""Patterns for what a person enters: matched against the whole value, in linear time (INT-173).

The engine is the one of the schemas, Rust's `regex`: it looks around nothing, refers back to nothing, and its time
grows with the value and no faster. A repetition inside a repetition is refused all the same, since other readers of
the manifest, a browser for one, have engines that it would keep busy for ever.
"""

import re
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import jsonschema_rs

_LONGEST: Final = 200
# One class of characters, repeated or not. Every engine reads it alike, so that a manifest that is only looked at, and
# says no more than this, costs nobody the import of that engine.
_PLAIN: Final = re.compile(r"(?!.*(?:&&|~~|\|\|))\[\^?(?:\\[dsw]|[!-,.-Z^-~](?:-[!-,.-Z^-~])?)+\][*+]?")
_OPEN: Final = re.compile(r"[*+]|\{[0-9]*,(?:[0-9]{2,})?\}")
_TOKENS: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()]|[^\\\[()]", re.DOTALL)


def pattern_fault(pattern: str) -> str | None:
    """Return why a pattern cannot be used, or None."""
    if len(pattern) > _LONGEST:
        return f"is longer than {_LONGEST} characters"
    try:
        re.compile(pattern) if _PLAIN.fullmatch(pattern) else _compiled(pattern)
    except (ValueError, re.error):
        return "is not a regular expression without references and looking around"
    if _nests(pattern):
        return "repeats what repeats inside already, so that matching it could take for ever"
    return None


def matches(pattern: str, value: str) -> bool:
    """Whether a pattern that has no fault fits the whole value."""
    return _compiled(pattern).is_valid(value)


@cache
def _compiled(pattern: str) -> "jsonschema_rs.Draft202012Validator":
    import jsonschema_rs

    _alone, whole = (
        jsonschema_rs.Draft202012Validator({"pattern": text}, pattern_options=jsonschema_rs.RegexOptions())
        for text in (pattern, rf"\A(?:{pattern})\z")  # one that closes a group it did not open fails alone
    )
    return whole


def _nests(pattern: str) -> bool:
    """Whether a group that holds an open repetition is itself repeated openly."""
    holds = [False]
    place = 0
    while token := _TOKENS.match(pattern, place):
        place = token.end()
        inner = False
        if token[0] == "(":
            holds.append(False)
            continue
        if token[0] == ")" and len(holds) > 1:
            inner = holds.pop()
        repeat = _OPEN.match(pattern, place)
        if repeat and inner:
            return True
        holds[-1] = holds[-1] or inner or repeat is not None
        place = repeat.end() if repeat else place
    return False
