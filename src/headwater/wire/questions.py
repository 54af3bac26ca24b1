"""Questions and answers: which parts of an answer nobody may repeat."""

from collections.abc import Mapping
from typing import Any

from headwater.wire.messages import Interaction

_SECRET_NAMES = ("password", "passcode", "secret", "token", "otp", "code", "pin")


def secret_texts(question: Interaction, data: Mapping[str, Any]) -> set[str]:
    """Return the texts and numbers of an answer that are secrets: a code, a password.

    A user name is none, and neither is what was said to a manual action. A member is secret if its schema has the
    format `password`, or by its name; every member of an answer to `otp` is.
    """
    if question.kind == "manual_action":
        return set()
    schema = question.schema if isinstance(question.schema, dict) else {}
    properties = schema.get("properties")
    rules = properties if isinstance(properties, dict) else {}

    def is_secret(name: str) -> bool:
        rule = rules.get(name)
        hidden = isinstance(rule, dict) and rule.get("format") == "password"
        return question.kind == "otp" or hidden or any(word in name.lower() for word in _SECRET_NAMES)

    return {text for name, value in data.items() if is_secret(name) for text in texts_of(value) if text}


def texts_of(value: Any) -> set[str]:
    """Return every text and number in a JSON value, names of members included, as texts."""
    if isinstance(value, Mapping):
        return {text for pair in value.items() for part in pair for text in texts_of(part)}
    if isinstance(value, list | tuple):
        return {text for item in value for text in texts_of(item)}
    return {str(value)} if isinstance(value, str | int | float) and not isinstance(value, bool) else set()
