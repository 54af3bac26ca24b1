"""The clock of approvals: this machine's own, which is never believed to go back (CLI-759)."""

from typing import Final

from headwater import limits
from headwater.errors import refuse
from headwater.manifest.document import digest
from headwater.operate.writes.model import Interval

LOCAL: Final = digest({"format": "local-clock/1"})
"""The digest of having no clock but the machine's own."""


def measured(now_ms: int, latest_ms: int) -> Interval:
    """Return when it is, or raise `unavailable` where the clock stands behind the latest time that approvals saw."""
    if now_ms + limits.CLOCK_SLACK_SECONDS * 1000 < latest_ms:
        message = (
            "This machine's clock shows an earlier time than an approval was given at: set it. Where it is right and "
            "was wrong then, approvals key-rotate begins anew."
        )
        told = {"safe": "Nothing was sent.", "command": "timedatectl status"}
        raise refuse("unavailable", message, stage="observation", next_action="check_configuration", **told)
    return Interval(max(now_ms, latest_ms), max(now_ms, latest_ms))
