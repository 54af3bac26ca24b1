"""The bindings beyond the profile's own that a person configures for an instance, such as `example.com/gpu`.

What one holds is between that person and the connector: any JSON object, announced in START as it stands.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from headwater.errors import refuse

_NAME: Final = re.compile(r"[A-Za-z0-9.-]{1,128}/[A-Za-z0-9._/-]{1,128}")
# Names that Headwater gives a meaning to are not the person's to offer.
_OURS: Final = "headwater.dev/"
# The integers that TOML has.
_INTEGERS: Final = 2**63

Extensions = Mapping[str, Mapping[str, Any]]


def is_extension(name: str, descriptor: Any) -> bool:
    """Whether a person may configure this: a namespaced name, and an object of what JSON can say (CP-011)."""
    named = _NAME.fullmatch(name) is not None and not name.startswith(_OURS)
    return named and isinstance(descriptor, dict) and _is_json(descriptor)


def typed_extensions(settings: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Read bindings from `name=object` texts, or raise `invalid_input`."""
    found = {}
    for setting in settings:
        name, _, text = setting.partition("=")
        try:
            descriptor = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            descriptor = None
        if not is_extension(name, descriptor) or _holds_null(descriptor):
            message = "--binding takes NAME=OBJECT: a namespaced name, such as example.com/gpu, and JSON without null."
            raise refuse("invalid_input", message)
        found[name] = descriptor
    return found


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_json(item) for item in value.values())
    if isinstance(value, list):
        return all(_is_json(item) for item in value)
    if isinstance(value, int):
        return abs(value) < _INTEGERS
    return math.isfinite(value) if isinstance(value, float) else isinstance(value, str | None)


def _holds_null(value: Any) -> bool:
    """Whether there is something in it that the file, which is TOML, cannot say."""
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value is None or any(_holds_null(member) for member in members)
