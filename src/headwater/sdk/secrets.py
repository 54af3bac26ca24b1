"""Keeping the owner's answers, and other secrets, out of what the host keeps: cursors and locators."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from headwater.sdk.outcome import Misuse
from headwater.wire.messages import Interaction
from headwater.wire.questions import secret_texts, texts_of

# A shorter answer is looked for as a whole value only: it would be found by chance in others.
_PART_CHARACTERS = 4
_SECRET_NAMES = re.compile(
    "accesskey|apikey|auth|authorization|bearer|clientsecret|cookie|credentials|jwt|otp|passcode|passwd|password|"
    "privatekey|secret|secretkey|setcookie|sig|signature|(?:access|auth|id|refresh|session)?token|"
    "x(?:amz|goog)(?:credential|securitytoken|signature)"
)
_BEARER = re.compile(r"(?:Bearer|Basic) \S{8}|eyJ[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)


class Secrets:
    """The secrets that this run was told."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def remember(self, question: Interaction, answer: Mapping[str, Any]) -> None:
        """Note the answer to a question; only its secret parts are remembered."""
        self._told |= secret_texts(question, answer)

    def check(self, value: Mapping[str, Any], what: str) -> None:
        """Raise `Misuse` where a value holds an answer (CP-408). The error does not say which."""
        for text in texts_of(value) if self._told else ():
            if text in self._told or any(len(told) >= _PART_CHARACTERS and told in text for told in self._told):
                raise Misuse(f"{what} holds what the owner answered: the host would keep it")

    def check_locator(self, locator: Mapping[str, Any]) -> None:
        """Raise `Misuse` where a locator holds a secret: an answer, or one by its name or URL (CP-537)."""
        self.check(locator, "a detail_locator")
        if fault := _fault(locator, ""):
            raise Misuse(f"a detail_locator holds a secret at {fault}: keep what finds the detail, and log in again")


def _fault(value: Any, place: str) -> str:
    """Return where a secret stands, empty where none does."""
    if isinstance(value, Mapping):
        named = next((f"{place}/{name}" for name in value if _is_secret(str(name))), "")
        return named or next(filter(None, (_fault(item, f"{place}/{name}") for name, item in value.items())), "")
    if isinstance(value, list | tuple):
        return next(filter(None, (_fault(item, f"{place}/{index}") for index, item in enumerate(value))), "")
    return place if isinstance(value, str) and _is_secret_text(value) else ""


def _is_secret(name: str) -> bool:
    return _SECRET_NAMES.fullmatch(re.sub(r"[^a-z0-9]", "", name.lower())) is not None


def _is_secret_text(text: str) -> bool:
    if _BEARER.search(text):
        return True
    try:
        url = urlsplit(text)
    except ValueError:
        return False
    parameters = parse_qsl(url.query) + parse_qsl(url.fragment)
    return bool(url.scheme and "@" in url.netloc) or any(_is_secret(name) for name, _ in parameters)
