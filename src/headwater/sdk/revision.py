"""Which revision of the profile the runtime understands, and what is said to one that understands only the first.

The wire does not say it: START is the same in both. A connector is known to be spoken to by a runtime of today if
Headwater started it, which the variable for its options shows, or if whoever deploys it elsewhere says so in
`HEADWATER_PROFILE=current`. To any other runtime the SDK speaks the first revision (CP-908).
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from headwater.wire.surroundings import OPTIONS_VARIABLE, PROFILE_VARIABLE

Revision = Literal["first", "current"]

_NEWER_TYPES: Final = frozenset({"DETAIL_COVERAGE", "DETAIL_GAP", "STREAM_EVIDENCE"})
_NEWER_MEMBERS: Final = ("recovery_hint", "continuation")
_NEWER_OF_ERROR: Final = ("code", "recovery_hint")


def revision_of(environment: Mapping[str, str]) -> Revision:
    """Return what the runtime of this process is known to understand."""
    if told := environment.get(PROFILE_VARIABLE):
        return "current" if told == "current" else "first"
    return "current" if OPTIONS_VARIABLE in environment else "first"


def in_first_revision(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a message as the first revision has it, None where it has none."""
    if message["type"] in _NEWER_TYPES:
        return None
    older = {name: value for name, value in message.items() if name not in _NEWER_MEMBERS}
    if isinstance(error := older.get("error"), Mapping):
        older["error"] = {name: value for name, value in error.items() if name not in _NEWER_OF_ERROR}
    return older
