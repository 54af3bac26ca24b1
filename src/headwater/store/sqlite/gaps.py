"""The gaps of one instance and namespace, as rows: noted, leased to a retry, let go, healed."""

from collections.abc import Iterable

import apsw
import msgspec

from headwater import clock, limits
from headwater.collect.effects import Gap
from headwater.collect.gaps import OpenGap, Turn, wait_after
from headwater.store.sqlite.database import queries


class GapRows:
    """Call every method inside the transaction of the change that it belongs to."""

    def __init__(self, connection: apsw.Connection, instance: int, namespace: str) -> None:
        self._execute = connection.cursor().execute
        self._sql = queries()
        self._place = (instance, namespace)

    def note(self, gap: Gap, run: int) -> None:
        """Note a gap, or that it is still one. It is due after the first wait."""
        identity = gap.key if gap.key is not None else f"locator:{gap.locator}"
        place = (*self._place, gap.stream, gap.parent or "", identity)
        due = clock.text(clock.now() + wait_after(0))
        said = (gap.key, gap.locator, gap.reason, gap.retryable, gap.error)
        self._execute(self._sql["note_gap"], (*place, *said, run, due))

    def open_keys(self) -> list[tuple[str, str]]:
        """Return the (stream, key) of every gap that a record may heal."""
        return list(self._execute(self._sql["pending_gaps"], self._place))

    def heal(self, stream: str, key: str, run: int) -> None:
        """Note that the record of a gap came."""
        self._execute(self._sql["heal_gap"], (*self._place, stream, key, run))

    def open(self, turn: Turn) -> list[OpenGap]:
        """Return the gaps whose turn it is, those that waited longest first; enough for one retry."""
        due = clock.stamp() if turn.due_only else None
        streams, numbers = _json(turn.streams), _json(turn.numbers)
        bounds = (due, limits.GAP_TRIES, streams, numbers, turn.untried_since, limits.GAPS_PER_RETRY)
        return [OpenGap(*row) for row in self._execute(self._sql["gaps_by_turn"], (*self._place, *bounds))]

    def lease(self, gap: OpenGap, run: int) -> None:
        """Give a gap to a run: its try counts from now, and its next turn comes after the wait, whatever happens."""
        now = clock.now()
        due = clock.text(now + wait_after(gap.tries + 1))
        self._execute(self._sql["lease_gap"], (gap.number, run, clock.text(now), due))


def _json(values: Iterable[str | int]) -> str | None:
    return msgspec.json.encode(listed).decode() if (listed := list(values)) else None
