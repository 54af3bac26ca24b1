"""Schedules as people write them: what is read, and what is refused with a reason."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from headwater.catalog.schedules import read_schedule
from headwater.collect.schedules import EPOCH, Cron, Every, Schedule
from headwater.errors import HeadwaterError

SINCE = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("members", "schedule"),
    [
        ({"every": "6h"}, Schedule(Every(21_600), 0, EPOCH)),
        ({"every": "1m", "jitter": "60s", "paused": True}, Schedule(Every(60), 60, EPOCH, paused=True)),
        ({"every": "366d", "since": SINCE}, Schedule(Every(366 * 86_400), 0, SINCE)),
        ({"cron": "0 7 * * *"}, Schedule(Cron("0 7 * * *", ZoneInfo("UTC")))),
        (
            {"cron": "0 7 * * *", "zone": "Europe/Zurich", "jitter": "1d"},
            Schedule(Cron("0 7 * * *", ZoneInfo("Europe/Zurich")), 86_400),
        ),
        (
            {"every": "1h", "since": datetime(2026, 11, 30, 9, 0, tzinfo=ZoneInfo("Europe/Zurich"))},
            Schedule(Every(3600), 0, SINCE),
        ),
    ],
)
def test_a_schedule_is_read_as_it_is_written(members, schedule):
    """Durations have a unit, times an offset, zones a name."""
    assert read_schedule(members) == schedule


@pytest.mark.parametrize(
    ("members", "word"),
    [
        ({}, "either"),
        ({"cron": "0 7 * * *", "every": "6h"}, "either"),
        ({"every": "6h", "often": True}, "member"),
        ({"every": "59s"}, "1m"),
        ({"every": "0m"}, "1m"),
        ({"every": "367d"}, "366d"),
        ({"every": "99999999999d"}, "such as"),
        ({"every": "6 h"}, "such as"),
        ({"every": "-6h"}, "such as"),
        ({"every": "６h"}, "such as"),
        ({"every": "6h\n"}, "such as"),
        ({"every": 6}, "such as"),
        ({"every": "6h", "zone": "UTC"}, "zone"),
        ({"every": "6h", "jitter": "7h"}, "jitter"),
        ({"every": "6h", "jitter": "5"}, "jitter"),
        ({"cron": "0 7 * * *", "jitter": "25h"}, "jitter"),
        ({"cron": "0 0 7 * * *"}, "five fields"),
        ({"cron": "@daily"}, "five fields"),
        ({"cron": 7}, "five fields"),
        ({"cron": "0 24 * * *"}, "does not fit"),
        ({"cron": "0 0 31 4 *"}, "does not fit"),
        ({"cron": "0 0 */20 * 1L"}, "ever"),
        ({"cron": "0 7 * * *", "zone": "Europe/Nowhere"}, "zone"),
        ({"cron": "0 7 * * *", "zone": "Europe"}, "zone"),
        ({"cron": "0 7 * * *", "zone": "../../etc/passwd"}, "zone"),
        ({"cron": "0 7 * * *", "zone": ""}, "zone"),
        ({"cron": "0 7 * * *", "zone": 1}, "zone"),
        ({"every": "6h", "since": datetime(2026, 11, 30, 8, 0)}, "offset"),
        ({"every": "6h", "since": "2026-11-30"}, "offset"),
        ({"every": "6h", "paused": "yes"}, "true or false"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_reason(members, word):
    """The one next thing to mend is named, and nothing that was typed is repeated."""
    with pytest.raises(HeadwaterError) as raised:
        read_schedule(members)
    assert raised.value.code == "invalid_schedule"
    assert word in raised.value.message
