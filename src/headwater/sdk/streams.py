"""One run as a connector's code sees it."""

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from headwater import clock
from headwater.manifest.declaration import Declaration, InteractionKind
from headwater.manifest.graph import CheckpointGraph
from headwater.sdk.blobs import Spool
from headwater.sdk.channel import Channel
from headwater.sdk.lanes import DetailLane
from headwater.sdk.narrowing import Narrowing
from headwater.sdk.outcome import Declined, Misuse
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

    def details(self, child: str) -> DetailLane:
        """Open the lane that fetches a detail stream's records for this stream's records."""
        if self.name not in self.run.declaration.streams[child].parent_streams:
            raise Misuse(f"stream {child} does not declare {self.name} in parent_streams")
        if (child, self.name) in self.run.reported:
            raise Misuse(f"the coverage of {child} for {self.name} was sent: one lane serves the whole run")
        return DetailLane(self.run, self.run.stream(child), self.name)
