"""One run as a connector's code sees it: what its streams share, and each of its streams."""

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from headwater.manifest.declaration import Declaration, InteractionKind
from headwater.manifest.graph import CheckpointGraph
from headwater.sdk.blobs import Spool
from headwater.sdk.channel import Channel
from headwater.sdk.lanes import DetailLane, Enumeration
from headwater.sdk.narrowing import Narrowing
from headwater.sdk.outcome import Declined, Misuse
from headwater.sdk.writing import Writer
from headwater.wire.messages import Interaction, Key, RecoveryAction, Start
from headwater.wire.surroundings import OPTIONAL_SKIPS, OPTIONS_VARIABLE, SPOOL_VARIABLE


class RunContext:
    """What the streams of one run share."""

    def __init__(self, declaration: Declaration, start: Start, channel: Channel) -> None:
        self.declaration = declaration
        self.channel = channel
        self.bindings = start.bindings
        self.mode = start.collection_mode
        self.options: dict[str, Any] = msgspec.json.decode(os.environ.get(OPTIONS_VARIABLE) or "{}")
        self.graph = CheckpointGraph(declaration.streams)
        self.reported: set[tuple[str, str]] = set()
        self.enumerated: set[str] = set()
        self._state = start.state or {}
        self._scope = {entry.name: entry for entry in start.scope.streams}
        self._spool = Spool(os.environ.get(SPOOL_VARIABLE))
        self._streams: dict[str, StreamRun] = {}
        self._questions = 0

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
        self.channel.say("PROGRESS", stream=stream, message=message, count=count, total=total)
        self.channel.flush()

    def ask(
        self,
        kind: InteractionKind,
        message: str,
        schema: Mapping[str, Any] | None = None,
        timeout_seconds: float | None = None,
    ) -> dict[str, Any]:
        """Ask the owner and wait; raise `Declined` where the owner cancels or nobody answers.

        What is secret in the answer is refused in a cursor and in a gap's locator from then on.
        """
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


class StreamRun:
    """One stream in one run."""

    def __init__(self, run: RunContext, narrowing: Narrowing) -> None:
        self.run = run
        self.name = narrowing.stream.name
        self.cursor = run.cursor(self.name)
        self.since, self.until = narrowing.since, narrowing.until
        self.resources = narrowing.resources
        self.writer = Writer(run.channel, narrowing)
        self._covered: list[DetailLane | Enumeration] = []
        self._withheld = False

    def key_of(self, data: Mapping[str, Any]) -> Key:
        """Return a record's key by the declared primary key."""
        return self.writer.key_of(data)

    def emit(self, data: Mapping[str, Any], *, key: Key | None = None) -> bool:
        """Send a record. What lies outside the scope is left out; return whether the record was sent.

        Raise `Misuse` for NaN, Infinity and bytes, which JSON does not have.
        """
        return self.writer.record(data, key)

    def delete(self, data: Mapping[str, Any], *, key: Key | None = None) -> bool:
        """Say that the source states a record gone; `data` needs its key fields only."""
        return self.writer.record(data, key, "delete")

    def save(self, cursor: Mapping[str, Any]) -> None:
        """Save how far the stream is. Everything emitted before this call counts as covered.

        Raise `Misuse` where the cursor holds what the owner answered (CP-408). A runtime of the first revision
        cannot be told of a missing detail: there the cursor stays where it was once one is missing.
        """
        if self.name not in self.run.graph.checkpoint_streams:
            raise Misuse(f"stream {self.name} has no checkpoint of its own: save its parent's")
        self.run.channel.secrets.check(cursor, f"the cursor of {self.name}")
        if self._has_untold_loss:
            self._withhold()
            return
        self.run.channel.say("STATE", stream=self.name, cursor=dict(cursor))
        self.run.channel.flush()

    @property
    def _has_untold_loss(self) -> bool:
        return self.run.channel.revision == "first" and any(lane.missing for lane in self._covered)

    def _withhold(self) -> None:
        if not self._withheld:
            self.skip("details_missing", f"Details of {self.name} are missing; its cursor stays where it was.")
        self._withheld = True

    def progress(self, message: str, *, count: int | None = None, total: int | None = None) -> None:
        """Tell the owner how far this stream is."""
        self.run.progress(message, stream=self.name, count=count, total=total)

    def skip(self, reason: str, message: str = "", *, hint: RecoveryAction | None = None) -> None:
        """Say that this stream is left out on purpose."""
        told = {"reason": reason, "message": message or None, "recovery_hint": hint}
        self.run.channel.say("SKIP_RESULT", stream=self.name, **told)

    def alone(self, parent: str) -> DetailLane:
        """Open the lane of details that a run asks for without their parent; it reports no coverage.

        So a run tries gaps again: `resources` names the keys that are missed.
        """
        return DetailLane(self.writer, parent, self.run.reported)

    def details(self, child: str) -> DetailLane:
        """Open the lane that fetches a detail stream's records for this stream's records."""
        if self.name not in self.run.declaration.streams[child].parent_streams:
            raise Misuse(f"stream {child} does not declare {self.name} in parent_streams")
        if (child, self.name) in self.run.reported:
            raise Misuse(f"the coverage of {child} for {self.name} was sent: one lane serves the whole run")
        opted_in = OPTIONAL_SKIPS in self.run.bindings
        lane = DetailLane(self.run.stream(child).writer, self.name, self.run.reported, credits_absence=opted_in)
        self._covered.append(lane)
        return lane

    def enumeration(self, child: str) -> Enumeration:
        """Open the count of a `state_stream` child that rides on this stream's cursor, once a run (CP-634)."""
        if self.run.declaration.streams[child].state_stream != self.name:
            raise Misuse(f"stream {child} does not declare {self.name} as its state_stream")
        if child in self.run.enumerated:
            raise Misuse(f"the enumeration of {child} was opened before: one serves the whole run")
        walk = Enumeration(self.run.stream(child).writer, self.name)
        self.run.enumerated.add(child)
        self._covered.append(walk)
        return walk
