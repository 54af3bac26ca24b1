"""What the owner answered must not be kept: answers are taken out of every text that a connector sends for people.

Records are the owner's own data and are left as they come. A cursor would bring a password into the database and back
to every later run, so one that holds it ends the run.
"""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from headwater import limits
from headwater.collect.effects import Gap, Stage, Write
from headwater.collect.session import Facts, Skip
from headwater.wire.messages import Interaction
from headwater.wire.questions import secret_texts, texts_of


class Unsaid:
    """The answers of one run."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._secrets: set[str] = set()

    def __bool__(self) -> bool:
        """Whether anything was answered that can be looked for."""
        return bool(self._texts)

    def add(self, question: Interaction, data: Mapping[str, Any]) -> None:
        """Look for an answer from now on; texts that are too short are in every other text and are not looked for."""
        said = texts_of(list(data.values()))
        self._texts |= {text for text in said | _in_base64(said) if len(text) >= limits.ANSWER_CHARACTERS}
        self._secrets |= {text for text in secret_texts(question, data) if len(text) >= limits.SECRET_CHARACTERS}

    def scrub(self, text: str) -> str:
        """Return a text without any answer (CP-711)."""
        for answer in sorted(self._texts, key=len, reverse=True):
            text = text.replace(answer, "[removed]")
        return text

    def scrub_gap(self, gap: Gap) -> Gap:
        """Return a gap whose words hold no answer."""
        words = {
            name: self.scrub(text) if (text := getattr(gap, name)) else text for name in ("reason", "locator", "error")
        }
        return msgspec.structs.replace(gap, **words)

    def scrub_facts(self, facts: Facts) -> Facts:
        """Return the facts of a run without any answer."""
        skips = tuple(Skip(**self._members(vars(skip))) for skip in facts.skips)
        return replace(facts, skips=skips, error=None if facts.error is None else self._members(facts.error))

    def is_in(self, effect: Write) -> bool:
        """Whether an effect is a cursor that holds a secret, such as a password (CP-408)."""
        if not isinstance(effect, Stage):
            return False
        held = texts_of(msgspec.json.decode(effect.cursor))
        return any(secret in text for text in held for secret in self._secrets)

    def _members(self, members: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.scrub(text) if isinstance(text, str) else text for name, text in members.items()}


def _in_base64(texts: set[str]) -> set[str]:
    """Return texts as a log of requests has them: in base64, and each two as a user and a password (RFC 7617)."""
    few = len(texts) <= limits.AUTH_FIELDS
    pairs = {f"{user}:{password}" for user in texts for password in texts} if few else set()
    return {b64encode(text.encode("utf-8", "replace")).decode("ascii").rstrip("=") for text in texts | pairs}
