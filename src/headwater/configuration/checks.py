"""The shapes of what a configuration holds. Each check returns the value, or refuses the whole file."""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from headwater import limits
from headwater.configuration.refusals import unusable
from headwater.manifest.endpoints import is_endpoint

_SELECTOR: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
_IDENTIFIER: Final = re.compile(r"[!-~]{1,128}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_UNSPEAKABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_PREFIX: Final = re.compile(r"[^=\x00]{1,256}")

Word = TypeVar("Word", bound=str)


def table(value: Any, where: str) -> dict[str, Any]:
    """A table."""
    if not isinstance(value, dict):
        raise unusable(f"{where} is not a table")
    return value


def closed(row: Mapping[str, Any], known: Collection[str], where: str) -> None:
    """No key but the known ones (CLI-150)."""
    if not set(known).issuperset(row):
        raise unusable(f"{where} has a key that it does not know")


def selector(value: Any, where: str) -> str:
    """A name of 1 to 128 letters, digits, `.`, `_` and `-` (CLI-064)."""
    if not isinstance(value, str) or not _SELECTOR.fullmatch(value):
        raise unusable(f"{where} is not a name of 1 to 128 letters, digits, '.', '_' and '-'")
    return value


def choice(value: Any, words: Collection[Word], where: str) -> Word:
    """One of a few words."""
    for word in words:
        if value == word:
            return word
    raise unusable(f"{where} must be {' or '.join(words)}")


def digest(value: Any, where: str) -> str:
    """A SHA-256 in lower hex."""
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise unusable(f"{where} is not a SHA-256 of 64 lower hex digits")
    return value


def absolute(value: Any, where: str) -> Path:
    """An absolute path of at most 4 KiB. Nothing in it is expanded (CLI-053, CLI-062, CLI-166)."""
    fits = isinstance(value, str) and value.startswith("/") and "\0" not in value
    if not fits or len(value.encode()) > limits.PATH_BYTES:
        raise unusable(f"{where} is not an absolute path")
    return Path(value)


def endpoint(value: Any, where: str) -> str:
    """An endpoint of 1 to 2048 bytes without white space or control characters (CLI-179)."""
    if not is_endpoint(value):
        raise unusable(f"{where} is empty, too long, or holds white space")
    return str(value)


def line(value: Any, where: str) -> str:
    """One line of text for people."""
    if not isinstance(value, str) or len(value) > limits.DESCRIPTION_CHARACTERS or _UNSPEAKABLE.search(value):
        raise unusable(f"{where} is not one line of text")
    return value


def identifiers(value: Any, most: int, where: str) -> tuple[str, ...]:
    """A list of exact identifiers without white space."""
    return _texts(value, _IDENTIFIER, most, where)


def prefixes(value: Any, where: str) -> tuple[str, ...]:
    """A list of beginnings of variables' names, each 1 to 256 bytes (CLI-183)."""
    found = _texts(value, _PREFIX, limits.CONSUMER_PREFIXES, where)
    if any(len(prefix.encode()) > limits.PREFIX_BYTES for prefix in found):
        raise unusable(f"{where} holds one that is too long")
    return found


def arguments(value: Any, where: str) -> tuple[str, ...]:
    """What a program is started with, word for word (CLI-163)."""
    fits = isinstance(value, list) and len(value) <= limits.ARGUMENTS and all(isinstance(word, str) for word in value)
    if not fits or any("\0" in word or len(word.encode()) > limits.ARGUMENT_BYTES for word in value):
        raise unusable(f"{where} is not a list of texts that a program can be started with")
    return tuple(value)


def _texts(value: Any, shape: re.Pattern[str], most: int, where: str) -> tuple[str, ...]:
    fits = isinstance(value, list) and all(isinstance(word, str) and shape.fullmatch(word) for word in value)
    if not fits or len(value) > most or len(set(value)) < len(value):
        raise unusable(f"{where} is not a list of at most {most} different names")
    return tuple(value)
