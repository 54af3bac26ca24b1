"""Whether a provider's own words prove that one record is gone for good."""

import re
from collections.abc import Mapping
from typing import Any

from headwater.wire.messages import Key
from headwater.wire.questions import texts_of

# What a provider calls a record that it has removed. A status, an age, an error or a count of tries is none of it.
_GONE = re.compile(r"(?:is)?(?:deleted|removed|purged|expunged|erased|tombstone)(?:at|on|time|date)?")


def proves_absence(key: Key, said: Mapping[str, Any] | None) -> bool:
    """Say whether what the provider answered names this very record and calls it removed (CP-558).

    Anything less (a bare status, an answer's age, a failed transport, tries used up, a general refusal) proves
    nothing (CP-559).
    """
    if not said:
        return False
    named = texts_of(said).issuperset([key] if isinstance(key, str) else key)
    return named and any(value and _GONE.fullmatch(re.sub(r"[^a-z]", "", name.lower())) for name, value in said.items())
