"""Admission: what a record must be before it may be stored.

Order matters. Scope comes first, because the bytes of what was not asked for are not even kept in a
receipt; then key identity, then the schema. The gate of a stream is compiled once for a run.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from headwater import clock, limits
from headwater.collect.effects import Keep, Receipt
from headwater.manifest.declaration import Stream
from headwater.manifest.schemas import compile_schema, explain
from headwater.wire.decode import NotAMessage
from headwater.wire.keys import canonical_component, canonical_key
from headwater.wire.messages import CollectionStream, Key, Record

BLOB_FIELD = "blob_ref"
OUT_OF_SCOPE = "out_of_scope"
# A key of this many characters fits its bound of bytes in any script.
_SHORT_KEY = limits.KEY_BYTES // 4


class Gate:
    """What admits the records of one stream in one run."""

    def __init__(self, stream: Stream, scope: CollectionStream) -> None:
        self.name = stream.name
        self._key_fields = stream.primary_key
        self._key_field = stream.primary_key[0] if len(stream.primary_key) == 1 else None
        self._validator = compile_schema(stream.schema) if stream.schema is not None else None
        self._is_valid = self._validator.is_valid if self._validator else None
        self._fields = None if scope.fields is UNSET else frozenset(scope.fields) | stream.essential_fields
        self._resources = None if scope.resources is UNSET else frozenset(scope.resources)
        window = None if scope.time_range is UNSET else scope.time_range
        self._since = _edge(window and window.since)
        self._until = _edge(window and window.until)
        self._time_field = stream.consent_time_field
        self._has_blobs = BLOB_FIELD in stream.fields
        self._last_emitted_at = ""
        narrowing = (self._fields, self._resources, self._since, self._until)
        self.narrowed = any(part is not None for part in narrowing)

    def admit(self, record: Record, data: Mapping[str, Any], line: bytes) -> Keep | Receipt:
        """Judge one record. Raise `NotAMessage` where it is not even a RECORD (CP-115)."""
        emitted_at = record.emitted_at
        if emitted_at != self._last_emitted_at:
            self._check_time(emitted_at)
        key = record.key
        name = key if type(key) is str else canonical_key(key)
        time = self._moment(data) if self._time_field is not None else None
        if self.narrowed and not self._in_scope(name, data, time):
            return self.refuse(OUT_OF_SCOPE, "The record lies outside the scope of the run.", None, None)
        if fault := self._fault_of_key(key, name, data, deleting=record.op == "delete"):
            return self.refuse(*fault, name[: limits.KEY_BYTES], line)
        if record.op == "delete":
            return Keep(self.name, name, emitted_at, time, None, None)
        if self._is_valid is not None and not self._is_valid(data):
            return self._invalid(name, data, line)
        keep = Keep(self.name, name, emitted_at, time, str(record.data, "utf-8"), None)
        return self._with_blob(keep, data, line) if self._has_blobs else keep

    def _fault_of_key(self, key: Key, name: str, data: Mapping[str, Any], *, deleting: bool) -> tuple[str, str] | None:
        """Return what is wrong with a record's key: a reason and a sentence."""
        if len(name) > _SHORT_KEY and len(name.encode()) > limits.KEY_BYTES:
            return "key_size", f"The record's key is longer than {limits.KEY_BYTES} bytes."
        # The quick comparison fits nearly every record; the long one knows compound keys and numbers.
        if self._key_field is not None and data.get(self._key_field) == key:
            return None
        if not self._key_fields or self._identical(key, data, deleting):
            return None
        return "key_identity", f"The record's key differs from its primary key ({', '.join(self._key_fields)})."

    def _with_blob(self, keep: Keep, data: Mapping[str, Any], line: bytes) -> Keep | Receipt:
        if BLOB_FIELD not in data:
            return keep
        digest = blob_digest(data[BLOB_FIELD])
        if digest is None:
            return self.refuse("blob_ref", "The record's blob_ref does not have its shape.", keep.key, line)
        return replace(keep, blob=digest)

    def refuse(self, reason: str, message: str, key: str | None, line: bytes | None) -> Receipt:
        """Make the receipt of a record that is refused."""
        return Receipt(self.name, reason, message, key, line)

    def _check_time(self, value: str) -> None:
        if "T" not in value or clock.parse(value.replace(":60Z", ":59Z")) is None:
            raise NotAMessage("emitted_at", "A RECORD has an emitted_at that is not an ISO 8601 time.")
        self._last_emitted_at = value

    def _moment(self, data: Mapping[str, Any]) -> int | None:
        moment = clock.parse(data.get(self._time_field or ""))
        return None if moment is None else clock.micros(moment)

    def _in_scope(self, key: str, data: Mapping[str, Any], time: int | None) -> bool:
        if self._resources is not None and key not in self._resources:
            return False
        if self._fields is not None and not self._fields.issuperset(data):
            return False
        if self._since is None and self._until is None:
            return True
        if time is None:
            return False
        return (self._since is None or time >= self._since) and (self._until is None or time < self._until)

    def _identical(self, key: Key, data: Mapping[str, Any], deleting: bool) -> bool:
        """Hold a key to the primary-key fields; a delete may leave out fields it does not know."""
        parts = [key] if isinstance(key, str) else key
        if isinstance(key, str) != (len(self._key_fields) == 1) or len(parts) != len(self._key_fields):
            return False
        for part, field in zip(parts, self._key_fields, strict=True):
            if deleting and field not in data:
                continue
            if canonical_component(data.get(field)) != part:
                return False
        return True

    def _invalid(self, key: str, data: Mapping[str, Any], line: bytes) -> Receipt:
        assert self._validator is not None
        return self.refuse("schema", f"The record {explain(self._validator, data)}.", key, line)


def blob_digest(reference: Any) -> str | None:
    """Return the SHA-256 that a blob_ref names, None where it is no blob_ref (CORE-026)."""
    if not isinstance(reference, dict):
        return None
    digest, size, kind = (reference.get(name) for name in ("sha256", "size_bytes", "mime_type"))
    if not isinstance(digest, str) or len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
        return None
    if not isinstance(size, int) or isinstance(size, bool) or size < 0 or not isinstance(kind, str):
        return None
    return digest if "/" in kind and isinstance(reference.get("blob_id"), str) else None


def _edge(value: Any) -> int | None:
    moment: datetime | None = clock.parse(value) if isinstance(value, str) else None
    return None if moment is None else clock.micros(moment)
