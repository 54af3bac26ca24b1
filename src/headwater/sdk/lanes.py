"""The lanes of a stream's dependents: details that are fetched one by one, and children that are only counted."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from headwater.sdk.accounts import Accounts
from headwater.sdk.outcome import Misuse
from headwater.sdk.tombstones import proves_absence
from headwater.sdk.writing import Writer
from headwater.wire.keys import canonical_key
from headwater.wire.messages import Key

FETCHED, GAP, UNCHANGED, ABSENT = "fetched", "a gap", "unchanged", "absent"


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

    def __init__(
        self, writer: Writer, parent: str, reported: set[tuple[str, str]], *, credits_absence: bool = False
    ) -> None:
        self._writer, self._parent, self._reported = writer, parent, reported
        self._credits_absence = credits_absence
        self._keys = Accounts()

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
        return len(self._keys)

    def __bool__(self) -> bool:
        """An open lane is a lane, also while nothing is required."""
        return True

    def require(self, *keys: Key) -> None:
        """Name details that the parent's records need."""
        self._check_open()
        self._keys.name(*keys)

    def emit(self, data: Mapping[str, Any], *, key: Key | None = None) -> bool:
        """Send a detail record; it counts as fetched under its own key, once it was sent."""
        self._check_open()
        key = self._writer.key_of(data) if key is None else key
        name = canonical_key(key)
        self._keys.check(name, FETCHED)
        self._keys.name(key)
        sent = self._writer.record(data, key)
        if sent:
            self._keys.settle(name, FETCHED)
        else:
            self._keys.drop(name)
        return sent

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
        self._keys.check(name, GAP)
        self._keys.name(key)
        told = {"reason": reason, "retryable": retryable, "detail_locator": locator, "last_error": error}
        self._writer.gap(self._parent, name, **told)
        self._keys.settle(name, GAP)

    def absent(self, key: Key, said: Mapping[str, Any] | None) -> bool:
        """Say that the provider calls this very record removed; return whether that accounts for it.

        `said` is the provider's own answer: it names the record, and has a member such as `deleted_at`. Without such
        proof, or where not both sides opted in (the manifest declares `headwater.dev/optional-skip-keys`, and the host
        offers it), the key stays unaccounted, and comes again.
        """
        self._check_open()
        name = canonical_key(key)
        self._keys.check(name, ABSENT)
        self._keys.name(key)
        accounts = self._credits_absence and proves_absence(key, said)
        if accounts:
            self._keys.settle(name, ABSENT)
        return accounts

    def close(self) -> None:
        """Send this parent's coverage, once."""
        if self._boundary in self._reported:
            return
        self._reported.add(self._boundary)
        self._writer.channel.say(
            "DETAIL_COVERAGE",
            reference_only=True,
            stream=self._writer.name,
            state_stream=self._parent,
            required_keys=self._keys.all,
            hydrated_keys=self._keys.of(FETCHED),
            gap_keys=self._keys.of(GAP) or None,
            optional_skip_keys=self._keys.of(ABSENT) or None,
        )
        self._writer.channel.flush()

    @property
    def missing(self) -> bool:
        """Whether a detail that is required has not come."""
        return bool(self._keys.of(None) or self._keys.of(GAP))

    @property
    def _boundary(self) -> tuple[str, str]:
        return self._writer.name, self._parent

    def _check_open(self) -> None:
        if self._boundary in self._reported:
            raise Misuse("this parent's coverage was sent: nothing of it can follow")


class Enumeration:
    """What became of each key that a walk of a `state_stream` child found. It gates nothing; it tells the owner.

    `consider` the keys where they are listed, before anything is done with them; then each is emitted, unchanged or
    a gap, and what is left is unaccounted. Leaving the block sends the one STREAM_EVIDENCE of the stream, also after
    an error. Where nothing was ever considered, nothing is sent; a list that was walked and is empty is
    `consider()` without keys (CP-635).

        with threads.enumeration("reactions") as walk:
            for thread in listed:
                walk.consider(*thread.reaction_ids)
                for reaction in fetch(thread):
                    walk.emit(reaction)
    """

    def __init__(self, writer: Writer, parent: str) -> None:
        self._writer, self._parent = writer, parent
        self._keys = Accounts()
        self._ran = self._closed = False

    def __enter__(self) -> "Enumeration":
        """Begin; nothing is enumerated yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Report what was enumerated so far."""
        self.close()

    def consider(self, *keys: Key) -> None:
        """Count keys where the source lists them; call it for an empty list too."""
        self._check_open()
        self._ran = True
        self._keys.name(*keys)

    def emit(self, data: Mapping[str, Any], *, key: Key | None = None) -> bool:
        """Send the record of a key that was considered. One that the scope leaves out is not counted."""
        key = self._writer.key_of(data) if key is None else key
        name = self._considered(key, FETCHED)
        sent = self._writer.record(data, key)
        if sent:
            self._keys.settle(name, FETCHED)
        else:
            self._keys.drop(name)
        return sent

    def unchanged(self, key: Key) -> None:
        """Say that a key was looked at and is as the host has it."""
        self._keys.settle(self._considered(key, UNCHANGED), UNCHANGED)

    def gap(
        self,
        key: Key,
        reason: str,
        *,
        locator: Mapping[str, Any] | None = None,
        retryable: bool = True,
        error: Mapping[str, Any] | None = None,
    ) -> None:
        """Say that a record is missing for now; see `DetailLane.gap`."""
        name = self._considered(key, GAP)
        told = {"reason": reason, "retryable": retryable, "detail_locator": locator, "last_error": error}
        self._writer.gap(self._parent, name, **told)
        self._keys.settle(name, GAP)

    def close(self) -> None:
        """Send the evidence, once, and only if anything was enumerated."""
        if self._ran and not self._closed:
            counts = {"emitted": FETCHED, "unchanged": UNCHANGED, "gapped": GAP, "unaccounted": None}
            outcomes = {name: len(self._keys.of(outcome)) for name, outcome in counts.items()}
            self._writer.channel.say(
                "STREAM_EVIDENCE",
                reference_only=True,
                stream=self._writer.name,
                considered=len(self._keys),
                outcomes=outcomes,
            )
        self._closed = True

    @property
    def missing(self) -> bool:
        """Whether a key is a gap."""
        return bool(self._keys.of(GAP))

    def _considered(self, key: Key, outcome: str) -> str:
        self._check_open()
        name = canonical_key(key)
        if name not in self._keys:
            raise Misuse("this key was not considered: count it where the source lists it")
        self._keys.check(name, outcome)
        return name

    def _check_open(self) -> None:
        if self._closed:
            raise Misuse("the evidence of this stream was sent: nothing of it can follow")
