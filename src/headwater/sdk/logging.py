"""The log of a hook: lines on stderr, without the secrets of the call."""

import sys
from collections.abc import Iterable
from typing import Any, Final

_HIDDEN: Final = "<secret>"
_LONGEST: Final = 2_000
_SHORTEST: Final = 4


class Log:
    """Writes what a hook wants to be known, with every secret that the call was given put out."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted({text for text in secrets if len(text) >= _SHORTEST}, key=len, reverse=True)

    def write(self, message: str, **members: Any) -> None:
        """Write a line: a sentence, and members beside it."""
        told = " ".join(f"{name}={value!r}" for name, value in members.items())
        sys.stderr.write(self.redacted(f"{message} {told}".rstrip())[:_LONGEST] + "\n")
        sys.stderr.flush()

    def redacted(self, text: str) -> str:
        """Return a text without the secrets."""
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return "".join(character if character.isprintable() else " " for character in text)
