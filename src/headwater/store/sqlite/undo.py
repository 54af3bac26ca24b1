"""Undoing a run: what it wrote is written back to what was there before, in one transaction, or not at all.

Nothing is erased. Each record that the run changed gets one more version, that of before, under a run of its own; so
whoever follows the versions sees the change, and the history tells what happened.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import apsw

from headwater import clock, limits
from headwater.collect.effects import Keep
from headwater.errors import HeadwaterError, refuse
from headwater.events import Tally
from headwater.store.blobs import BlobFolder
from headwater.store.sqlite.batch import StreamBatch, Writer
from headwater.store.sqlite.database import queries, transaction, translated

_SHOWN = 5


class Version(NamedTuple):
    """One version of a record."""

    seq: int
    prev: int | None
    run: int
    time: int | None
    emitted_at: str
    data: str | None


@dataclass(frozen=True)
class Undone:
    """What an undo brought back: by stream how many records are as before, or gone; and the cursors that moved."""

    run_id: str
    undone: str
    streams: dict[str, Tally]
    cursors: tuple[str, ...]


class _Rehearsed(Exception):
    """Everything was done, and is to be taken back."""


def undo(connection: apsw.Connection, blobs: BlobFolder, run_id: str, *, rehearse: bool = False) -> Undone:
    """Undo a run. Call it while no run of the instance can begin.

    Raise `not_found`, `run_active` or `run_superseded`, and leave everything as it is. With `rehearse` nothing
    stays: the answer says what an undo would do.
    """
    rollback = _Rollback(connection, blobs, run_id)
    try:
        with translated(), transaction(connection):
            undone = rollback.write()
            if rehearse:
                raise _Rehearsed
    except _Rehearsed:
        pass
    return undone


class _Rollback:
    def __init__(self, connection: apsw.Connection, blobs: BlobFolder, run_id: str) -> None:
        self._connection = connection
        self._blobs = blobs
        self._sql = queries()
        self._asked = run_id
        self._run_id = clock.identifier("run")
        self._later: set[int] = set()

    def _ask(self, query: str, *values: Any) -> Any:
        return self._connection.execute(self._sql[query], values)

    def write(self) -> Undone:
        """Do all of it, inside the caller's transaction."""
        self._find()
        cursors = self._cursors()
        own = (self._run_id, self._instance, self._namespace, clock.stamp(), self._run, f"It undid {self._asked}.")
        self._own: int = self._ask("add_undoing_run", *own).get
        tallies = self._records()
        if self._later:
            raise self._superseded(self._later)
        for stream, previous, previous_run in cursors:
            place = (self._instance, self._namespace, stream)
            if previous == "null":
                self._ask("drop_checkpoint", *place)
            else:
                self._ask("restore_checkpoint", *place, previous, previous_run, clock.stamp())
        self._ask("forget_gaps_of", self._run)
        self._ask("reopen_gaps_of", self._run)
        self._ask("note_undone", self._run, self._own)
        return Undone(self._run_id, self._asked, tallies, tuple(stream for stream, *_ in cursors))

    def _find(self) -> None:
        """Read the run, and refuse one that cannot be undone whatever it wrote."""
        row = self._ask("run_to_undo", self._asked).fetchone()
        if row is None:
            raise refuse("not_found", "There is no such run.", command="headwater runs list")
        self._run, self._instance, self._namespace, self._first, undoes, undone, busy = row
        if busy:
            message = "A run of the instance is active, or was cut off and is settled when it is next collected."
            raise refuse("run_active", message, safe="Nothing was changed.")
        if undoes is not None or undone:
            message = "It is undone already." if undone else "It undid a run itself; collect again instead."
            raise refuse("run_superseded", message, safe="Nothing was changed.")

    def _cursors(self) -> list[tuple[str, str, int | None]]:
        """Return the cursors to bring back; refuse where a later run committed over one of them."""
        rows = self._ask("cursors_to_undo", self._run, self._instance, self._namespace).fetchall()
        if any(previous is None for _, previous, _, _ in rows):
            message = "An older release made it, and did not keep the cursors that it replaced."
            raise refuse("run_superseded", message, safe="Nothing was changed.")
        later = [run for *_, run in rows if run != self._run]
        if later:
            raise self._superseded({run for run in later if run is not None})
        return [(stream, previous, previous_run) for stream, previous, previous_run, _ in rows]

    def _records(self) -> dict[str, Tally]:
        """Write the versions of before, a batch at a time."""
        tallies: dict[str, Tally] = {}
        batches = {name: StreamBatch(row, append_only=False) for row, name in self._ask("streams_of", self._instance)}
        writer = Writer(self._connection, self._own, batches, self._blobs)
        for name in batches:
            self._ask("add_run_stream", self._own, name)
            tallies[name] = Tally()
        keeps = self._keeps()
        while batch := list(islice(keeps, limits.BATCH_EFFECTS)):
            writer.store(batch, tallies)
        for name, tally in tallies.items():
            counts = (tally.accepted, tally.unchanged, tally.deleted, tally.rejected, tally.gaps)
            self._ask("add_tally", self._own, name, *counts)
        return {name: tally for name, tally in tallies.items() if tally.seen}

    def _keeps(self) -> Iterator[Keep]:
        """Yield what each record of the run was before; note the later runs where one holds another version by now."""
        void = {row for (row,) in self._ask("void_runs", self._instance)}
        last = self._ask("last_version").get
        for stream, key, current in self._ask("records_of_run", self._run, self._first or 0, last):
            holding = self._holding(current, void)
            if holding is None or holding.run != self._run:
                self._later.add(holding.run if holding is not None else self._run)
                continue
            before = self._holding(holding.prev, void | {self._run})
            if before is None or before.data is None:
                yield Keep(stream, key, clock.stamp(), None, None, None)
            else:
                yield Keep(stream, key, before.emitted_at, before.time, before.data, None)

    def _holding(self, seq: int | None, void: Collection[int]) -> Version | None:
        """Return the newest version, from one on downwards, that no void run wrote: a run undone, or an undo."""
        while seq is not None:
            version = Version(*self._ask("version_at", seq).fetchone())
            if version.run not in void:
                return version
            seq = version.prev
        return None

    def _superseded(self, later: Collection[int]) -> HeadwaterError:
        names = sorted(self._ask("run_named", run).get for run in later)
        message = (
            f"Later runs built on it: {', '.join(names[:_SHOWN])}. Undo those first, the newest before the others."
        )
        command = f"headwater runs undo {names[-1]}" if names else "headwater runs list"
        return refuse("run_superseded", message, safe="Nothing was changed.", command=command, runs=names[:_SHOWN])
