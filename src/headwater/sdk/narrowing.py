"""Holding a stream's records to the scope of the run, before they are written."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import UNSET, UnsetType

from headwater import clock
from headwater.manifest.declaration import Stream
from headwater.sdk.outcome import Misuse
from headwater.wire.keys import canonical_component, canonical_key
from headwater.wire.messages import CollectionStream, Key


class Narrowing:
    """One stream's key, and what START asked of the stream."""

    def __init__(self, stream: Stream, scope: CollectionStream) -> None:
        self.stream = stream
        self.resources = None if scope.resources is UNSET else frozenset(scope.resources)
        self.fields = None if scope.fields is UNSET else frozenset(scope.fields) | stream.essential_fields
        window = None if scope.time_range is UNSET else scope.time_range
        self.since = None if window is None else _edge(window.since)
        self.until = None if window is None else _edge(window.until)

    def key_of(self, data: Mapping[str, Any]) -> Key:
        """Return a record's key by the declared primary key: a string, or an array for a compound key."""
        if not self.stream.primary_key:
            raise Misuse(f"stream {self.stream.name} declares no primary_key: pass key=")
        try:
            parts = [_component(data[name]) for name in self.stream.primary_key]
        except KeyError as error:
            raise Misuse(f"a record of {self.stream.name} lacks its key field {error}") from error
        return parts[0] if len(parts) == 1 else parts

    def admits(self, key: Key, data: Mapping[str, Any]) -> bool:
        """Say whether a record lies inside the scope's resources and time range (CP-313)."""
        if self.resources is not None and canonical_key(key) not in self.resources:
            return False
        if self.since is None and self.until is None:
            return True
        moment = clock.parse(data.get(self.stream.consent_time_field or ""))
        if moment is None:
            return False
        return (self.since is None or moment >= self.since) and (self.until is None or moment < self.until)

    def project(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Leave out the top-level fields that were not asked for (CP-315)."""
        if self.fields is None:
            return data
        return {name: value for name, value in data.items() if name in self.fields}


def _edge(value: str | UnsetType) -> datetime | None:
    """Read one side of the window; a side that cannot be read must not widen it (CP-317)."""
    if isinstance(value, UnsetType):
        return None
    moment = clock.parse(value)
    if moment is None:
        raise Misuse("START has a time_range that is no time")
    return moment


def _component(value: Any) -> str:
    component = canonical_component(value)
    if component is None:
        raise Misuse("a key field holds neither a string nor a number")
    return component
