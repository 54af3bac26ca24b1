"""The hot path: one batch of records into versions.

For each record one point read says whether the text is new; only changed records are written. The text of a
record is written once, to `versions`, in the order it came; `records` only points to it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import apsw

from headwater import clock
from headwater.collect.effects import Keep, Receipt
from headwater.events import Tally
from headwater.store.blobs import BlobFolder
from headwater.store.sqlite.database import queries
from headwater.store.sqlite.search_index import SearchIndex

# How a key's current version differs from what came, as the query `current_version` says it.
OTHER, SAME, DELETED, ABSENT = 0, 1, 2, 3
_ABSENT = (None, ABSENT)

# What a record, or a delete, does to the number of live records in each of those states; None for nothing at all.
CHANGES = ((0, None, 1, 1), (-1, None, None, None))

REFUSALS = {
    "blob_missing": "The bytes that the record's blob_ref names did not come.",
    "append_only": "An append-only stream already holds this key with other content.",
}


class Current(NamedTuple):
    """The version of a key that a batch has written but not stored yet."""

    seq: int
    data: str | None

    def compare(self, data: str | None) -> int:
        """Say what `current_version` would say of it, were it stored."""
        if self.data == data:
            return SAME
        return DELETED if self.data is None else OTHER


class StreamBatch:
    """What one stream's writes need: its row, the keys this batch has written, the gaps it may heal."""

    def __init__(self, row: int, *, append_only: bool) -> None:
        self.row = row
        self.append_only = append_only
        self.written: dict[str, Current] = {}
        self.pending_gaps: set[str] = set()
        self.healed: list[str] = []
        self.live = 0

    def heal(self, key: str) -> None:
        """Note that the record of a pending gap came."""
        if key in self.pending_gaps:
            self.pending_gaps.discard(key)
            self.healed.append(key)


class Writer:
    """Writes the batches of one run. Use it inside a transaction."""

    def __init__(
        self, connection: apsw.Connection, run: int, streams: Mapping[str, StreamBatch], blobs: BlobFolder
    ) -> None:
        sql = queries()
        self._execute = connection.cursor().execute
        self._executemany = connection.cursor().executemany
        self._last, self._current = sql["last_version"], sql["current_version"]
        self._add, self._point, self._live = sql["add_version"], sql["point_record"], sql["count_live"]
        self._add_blob = sql["add_blob"]
        self._run = run
        self._streams = streams
        self._blobs = blobs
        self._index = SearchIndex(connection, (stream.row for stream in streams.values()))

    def store(self, keeps: Sequence[Keep], tallies: dict[str, Tally]) -> list[Receipt]:
        """Store records in order and count them into the tallies; return those the store refuses."""
        if not keeps:
            return []
        for stream in self._streams.values():
            stream.written, stream.live = {}, 0
        receipts: list[Receipt] = []
        versions: list[tuple[Any, ...]] = []
        counts = {name: [0, 0, 0] for name in {keep.stream for keep in keeps}}
        self._compare(keeps, versions, counts, receipts)
        self._executemany(self._add, versions)
        for stream in self._streams.values():
            if stream.written:
                rows = ((stream.row, key, current.seq) for key, current in stream.written.items())
                self._executemany(self._point, rows)
                self._execute(self._live, (stream.row, stream.live, clock.stamp()))
        self._index.follow(versions)
        for name, (accepted, unchanged, deleted) in counts.items():
            tallies[name] += Tally(accepted=accepted, unchanged=unchanged, deleted=deleted)
        return receipts

    def _compare(
        self,
        keeps: Sequence[Keep],
        versions: list[tuple[Any, ...]],
        counts: Mapping[str, list[int]],
        receipts: list[Receipt],
    ) -> None:
        """Find what each record changes. This loop sees every record: its names are local on purpose."""
        execute, current, run, streams = self._execute, self._current, self._run, self._streams
        seq = int(execute(self._last).get)
        for keep in keeps:
            name, key, data = keep.stream, keep.key, keep.data
            stream = streams[name]
            if keep.blob is not None and not self._adopt(keep.blob):
                receipts.append(_refused(keep, "blob_missing"))
                continue
            if stream.pending_gaps:
                stream.heal(key)
            before = stream.written.get(key)
            if before is None:
                prev, state = execute(current, (stream.row, key, data)).fetchone() or _ABSENT
            else:
                prev, state = before.seq, before.compare(data)
            change = CHANGES[data is None][state]
            if change is None:
                counts[name][1] += 1
                continue
            if change == 0 and stream.append_only:
                receipts.append(_refused(keep, "append_only"))
                continue
            stream.live += change
            seq += 1
            versions.append((seq, prev, stream.row, run, keep.time, key, keep.emitted_at, data))
            stream.written[key] = Current(seq, data)
            counts[name][2 if data is None else 0] += 1

    def healed(self) -> Iterator[tuple[str, str]]:
        """Yield the (stream, key) of each pending gap whose record came since the last call."""
        for name, stream in self._streams.items():
            for key in stream.healed:
                yield name, key
            stream.healed = []

    def _adopt(self, digest: str) -> bool:
        size = self._blobs.adopt(digest)
        if size is None:
            return False
        self._execute(self._add_blob, (digest, size, clock.stamp()))
        return True


def _refused(keep: Keep, reason: str) -> Receipt:
    return Receipt(keep.stream, reason, REFUSALS[reason], keep.key, (keep.data or "").encode())
