"""Which release this is, and how releases are ordered (SemVer 2.0.0, section 11)."""

import re
from typing import Final

RELEASE: Final = "0.1.0"

_IDENTIFIER: Final = r"(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)"
_SEMVER: Final = re.compile(
    rf"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII
)
_LONGEST_PRERELEASE: Final = 40

Order = tuple[tuple[int, int, int], bool, tuple[tuple[bool, int, str], ...]]


def order(version: str) -> Order | None:
    """Return what versions are compared by; None for one that cannot be ordered (CLI-088).

    A pre-release is below its release, its numbers below its words, and what stands behind + counts for nothing.
    """
    read = _SEMVER.fullmatch(version)
    if read is None or len(read[4] or "") > _LONGEST_PRERELEASE:
        return None
    parts = (read[4] or "").split(".") if read[4] else []
    ranked = tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)
    return (int(read[1]), int(read[2]), int(read[3])), read[4] is None, ranked
