"""A list-and-detail lane: every detail that a parent's records need is fetched, or is known to be missing."""

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from headwater.sdk.outcome import Misuse
from headwater.wire.keys import canonical_key
from headwater.wire.messages import Key

if TYPE_CHECKING:
    from headwater.sdk.streams import RunContext, StreamRun


class DetailLane:
    """The details of one parent in one run.

    `require` each key that the parent's list names, then `emit` its record or report its `gap`. Leaving the
    lane sends the one DETAIL_COVERAGE of this parent (CP-516). A key that is neither emitted nor a gap
    stays unaccounted, and the host withholds the parent's checkpoint: that is what honesty costs. A detail
    that the scope of the run leaves out is not required. Open one lane for a parent and run, not one a page.

        with messages.details("attachments") as lane:
            for key, url in wanted:
                lane.require(key)
                lane.emit(fetch(url))
    """

    def __init__(self, run: "RunContext", stream: "StreamRun", parent: str) -> None:
        self._run, self._stream, self._parent = run, stream, parent
        self._required: dict[str, None] = {}
        self._hydrated: dict[str, None] = {}
        self._gaps: dict[str, None] = {}

    def __enter__(self) -> "DetailLane":
        """Open the lane."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Report the coverage, unless the stream failed on the way."""
        if kind is None:
            self.close()

    def __len__(self) -> int:
        """Return how many details are required so far."""
        return len(self._required)

    def __bool__(self) -> bool:
        """An open lane is a lane, also while nothing is required."""
        return True

    def require(self, *keys: Key) -> None:
        """Name details that the parent's records need."""
        self._check_open()
        self._required.update(dict.fromkeys(map(canonical_key, keys)))

    def require_all(self, keys: Iterable[Key]) -> None:
        """Name many details at once."""
        self.require(*keys)

    def emit(self, data: Mapping[str, Any], *, key: Key | None = None) -> bool:
        """Send a detail record; it counts as fetched under its own key, once it was sent."""
        self._check_open()
        key = self._stream.key_of(data) if key is None else key
        name = canonical_key(key)
        if name in self._gaps:
            raise Misuse("a detail was reported as a gap before: it cannot also be fetched")
        self._required[name] = None
        sent = self._stream.emit(data, key=key)
        if sent:
            self._hydrated[name] = None
        elif name not in self._hydrated:
            del self._required[name]
        return sent

    def unchanged(self, key: Key) -> None:
        """Say that a detail was collected by an earlier run and is still the same."""
        self._check_open()
        name = canonical_key(key)
        if name in self._gaps:
            raise Misuse("a detail was reported as a gap before: it cannot also be unchanged")
        self._required[name] = None
        self._hydrated[name] = None

    def gap(
        self,
        key: Key,
        reason: str,
        *,
        locator: Mapping[str, Any] | None = None,
        retryable: bool = True,
        error: Mapping[str, Any] | None = None,
    ) -> None:
        """Say that a detail is missing for now; `locator` is all a later run needs to fetch it, and no secret."""
        self._check_open()
        name = canonical_key(key)
        if name in self._hydrated:
            raise Misuse("a detail was fetched before: it cannot also be a gap")
        self._required[name] = None
        self._run.send(
            "DETAIL_GAP",
            stream=self._stream.name,
            parent_stream=self._parent,
            record_key=name,
            reason=reason,
            retryable=retryable,
            detail_locator=dict(locator) if locator is not None else None,
            last_error=dict(error) if error is not None else None,
        )
        self._gaps[name] = None

    def close(self) -> None:
        """Send this parent's coverage, once."""
        if self._boundary in self._run.reported:
            return
        self._run.reported.add(self._boundary)
        self._run.send(
            "DETAIL_COVERAGE",
            reference_only=True,
            stream=self._stream.name,
            state_stream=self._parent,
            required_keys=list(self._required),
            hydrated_keys=list(self._hydrated),
            gap_keys=list(self._gaps) or None,
        )
        self._run.channel.flush()

    @property
    def _boundary(self) -> tuple[str, str]:
        return self._stream.name, self._parent

    def _check_open(self) -> None:
        if self._boundary in self._run.reported:
            raise Misuse("this parent's coverage was sent: nothing of it can follow")
