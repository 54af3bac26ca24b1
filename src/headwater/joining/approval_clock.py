"""The clock of approvals, as it is configured and as it stands now."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from headwater import clock
from headwater.configuration.refusals import unusable
from headwater.errors import refuse
from headwater.operate.writes.timing import measured
from headwater.store.sqlite.approvals import looked_at

if TYPE_CHECKING:
    from headwater.configuration.model import Configuration
    from headwater.operate.writes.model import Interval
    from headwater.settings import Settings

RETIRED: Final = "roughtime-clock/1"


def look_at_clock(settings: Settings, configuration: Configuration) -> Interval:
    """Return when it is by the clock of approvals, or raise why that cannot be told. Nothing is moved by looking."""
    check_clock(configuration)
    with looked_at(settings.database_path, os.geteuid()) as approvals:
        return measured(clock.millis(), approvals.latest())


def check_clock(configuration: Configuration) -> None:
    """Raise where approvals are to be timed by a clock that is not known here (CLI-758)."""
    named = configuration.approval_clock
    if named == RETIRED:
        raise unusable("the format of its approval_clock is retired", "approval_clock_format_retired")
    if named is not None:
        message = "The configuration names a clock for approvals, and this Headwater reads this machine's own only."
        raise refuse("unsupported", message, safe="Nothing was sent.")
