"""One run as a connector's code sees it: the run, its streams, and the lanes of their details."""

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import msgspec

from headwater import clock
from headwater.manifest.declaration import Declaration, InteractionKind
from headwater.manifest.graph import CheckpointGraph
from headwater.sdk.blobs import Spool
from headwater.sdk.channel import Channel
from headwater.sdk.narrowing import Narrowing
from headwater.sdk.outcome import Declined, Misuse
from headwater.wire.keys import canonical_key
from headwater.wire.messages import Interaction, Key, RecoveryAction, Start
from headwater.wire.surroundings import OPTIONS_VARIABLE, SPOOL_VARIABLE


class RunContext:
    """What the streams of one run share."""

    def __init__(self, declaration: Declaration, start: Start, channel: Channel) -> None:
        self.declaration = declaration
        self.channel = channel
        self.bindings = start.bindings
        self.mode = start.collection_mode
        self.options: dict[str, Any] = msgspec.json.decode(os.environ.get(OPTIONS_VARIABLE) or "{}")
        self.graph = CheckpointGraph(declaration.streams)
        self._state = start.state or {}
        self._scope = {entry.name: entry for entry in start.scope.streams}
        self._spool = Spool(os.environ.get(SPOOL_VARIABLE))
        self._streams: dict[str, StreamRun] = {}
        self._questions = 0
        self.reported: set[tuple[str, str]] = set()

    @property
    def records_emitted(self) -> int:
        """How many records were written so far."""
        return self.channel.records

    def wants(self, stream: str) -> bool:
        """Say whether this run collects a stream."""
        return stream in self._scope

    def stream(self, name: str) -> "StreamRun":
        """Return a stream of this run; raise `Misuse` where the scope does not have it (CP-313)."""
        if name not in self._scope or name not in self.declaration.streams:
            raise Misuse(f"stream {name} is not in the scope of this run")
        if name not in self._streams:
            narrowing = Narrowing(self.declaration.streams[name], self._scope[name])
            self._streams[name] = StreamRun(self, narrowing)
        return self._streams[name]

    def cursor(self, stream: str) -> dict[str, Any]:
        """Return the cursor that an earlier run saved for a stream, or an empty one."""
        saved = self._state.get(stream)
        return dict(msgspec.json.decode(saved)) if saved is not None and self.mode == "incremental" else {}

    def progress(
        self, message: str, *, stream: str | None = None, count: int | None = None, total: int | None = None
    ) -> None:
        """Tell the owner how far the run is."""
        self.send("PROGRESS", stream=stream, message=message, count=count, total=total)
        self.channel.flush()

    def ask(
        self,
        kind: InteractionKind,
        message: str,
        schema: Mapping[str, Any] | None = None,
        timeout_seconds: float | None = None,
    ) -> dict[str, Any]:
        """Ask the owner and wait; raise `Declined` where the owner cancels or nobody answers."""
        self._questions += 1
        question = Interaction(
            request_id=f"q{self._questions}",
            kind=kind,
            message=message,
            schema=dict(schema) if schema is not None else msgspec.UNSET,
            timeout_seconds=timeout_seconds if timeout_seconds is not None else msgspec.UNSET,
        )
        answer = self.channel.ask(question)
        if answer.status != "success" or answer.data is msgspec.UNSET:
            raise Declined(f"The owner's answer was: {answer.status}.", hint="manual_action_required")
        return answer.data

    def blob(self, content: Any, mime_type: str) -> dict[str, Any]:
        """Hand bytes, a path or an iterable of chunks to the host; put the result under `blob_ref` in a record."""
        return self._spool.put(content, mime_type)

    def send(self, kind: str, **members: Any) -> None:
        """Write a message, without the members that are None."""
        self.channel.send({"type": kind, **{name: value for name, value in members.items() if value is not None}})


class StreamRun:
    """One stream in one run."""

    def __init__(self, run: RunContext, narrowing: Narrowing) -> None:
        self.run = run
        self.name = narrowing.stream.name
        self.cursor = run.cursor(self.name)
        self.since, self.until = narrowing.since, narrowing.until
        self.resources = narrowing.resources
        self._narrowing = narrowing

    def key_of(self, data: Mapping[str, Any]) -> Key:
        """Return a record's key by the declared primary key."""
        return self._narrowing.key_of(data)

    def emit(self, data: Mapping[str, Any], *, key: Key | None = None) -> bool:
        """Send a record. What lies outside the scope is left out; return whether the record was sent."""
        return self._record(data, key, None)

    def delete(self, data: Mapping[str, Any], *, key: Key | None = None) -> bool:
        """Say that the source states a record gone; `data` needs its key fields only."""
        return self._record(data, key, "delete")

    def _record(self, data: Mapping[str, Any], key: Key | None, op: str | None) -> bool:
        key = self.key_of(data) if key is None else key
        if not self._narrowing.admits(key, data):
            return False
        message = {"type": "RECORD", "stream": self.name, "key": key, "data": self._narrowing.project(data)}
        message["emitted_at"] = clock.stamp()
        if op is not None:
            message["op"] = op
        self.run.channel.send(message, records=1)
        return True

    def save(self, cursor: Mapping[str, Any]) -> None:
        """Save how far the stream is. Everything emitted before this call counts as covered."""
        if self.name not in self.run.graph.checkpoint_streams:
            raise Misuse(f"stream {self.name} has no checkpoint of its own: save its parent's")
        self.run.send("STATE", stream=self.name, cursor=dict(cursor))
        self.run.channel.flush()

    def progress(self, message: str, *, count: int | None = None, total: int | None = None) -> None:
        """Tell the owner how far this stream is."""
        self.run.progress(message, stream=self.name, count=count, total=total)

    def skip(self, reason: str, message: str = "", *, hint: RecoveryAction | None = None) -> None:
        """Say that this stream is left out on purpose."""
        self.run.send("SKIP_RESULT", stream=self.name, reason=reason, message=message or None, recovery_hint=hint)

    def alone(self, parent: str) -> "DetailLane":
        """Open the lane of details that a run asks for without their parent; it reports no coverage.

        So a run tries gaps again: `resources` names the keys that are missed.
        """
        return DetailLane(self.run, self, parent)

    def details(self, child: str) -> "DetailLane":
        """Open the lane that fetches a detail stream's records for this stream's records."""
        if self.name not in self.run.declaration.streams[child].parent_streams:
            raise Misuse(f"stream {child} does not declare {self.name} in parent_streams")
        if (child, self.name) in self.run.reported:
            raise Misuse(f"the coverage of {child} for {self.name} was sent: one lane serves the whole run")
        return DetailLane(self.run, self.run.stream(child), self.name)


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

    def __init__(self, run: RunContext, stream: StreamRun, parent: str) -> None:
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
