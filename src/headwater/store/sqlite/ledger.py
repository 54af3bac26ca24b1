"""The durable side of a run, on SQLite. `store.apart` runs it in a process of its own and fills the `Ledger` port.

A batch is one transaction: what the child said between two commits is there whole or not. Each call raises
`storage_failed` where nothing of it was kept.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import apsw
import msgspec
from msgspec.structs import astuple

from headwater import clock
from headwater.collect.effects import Keep, Receipt, Stage, Write
from headwater.collect.gaps import OpenGap, Turn
from headwater.collect.plan import PROACTIVE, Authority, RunPlan
from headwater.collect.ports import Commit, Conclusion, Orphan
from headwater.events import Tally
from headwater.manifest.declaration import Stream
from headwater.manifest.graph import CheckpointGraph
from headwater.store.blobs import BlobFolder
from headwater.store.sqlite.batch import StreamBatch, Writer
from headwater.store.sqlite.database import queries, transaction, translated
from headwater.store.sqlite.gaps import GapRows
from headwater.store.sqlite.search_index import build, declare

# A narrowed run's namespace is its authority's and a digest (`RunPlan.namespace`).
NARROWING = re.compile(r"/[0-9a-f]{12}\Z")


@dataclass(frozen=True)
class InstanceName:
    """An instance as the store knows it. `connector` is for people; `connector_id` decides who it is."""

    connector_id: str
    connector: str
    name: str

    @property
    def distinct(self) -> str:
        """The connector's name where another connector has its short one already (CP-906)."""
        return f"{self.connector}{self._mark}"

    @property
    def chosen(self) -> str:
        """The instance's name as its owner typed it, whichever of the two the store has."""
        return f"{self.connector.removesuffix(self._mark)}/{self.name}"

    @property
    def _mark(self) -> str:
        return f"-{hashlib.sha256(self.connector_id.encode()).hexdigest()[:6]}"


def find_instance(connection: apsw.Connection, name: InstanceName) -> int:
    """Return the row of an instance, 0 where the store does not have it."""
    known = (name.connector_id, name.name, name.connector, name.distinct)
    return int(connection.execute(queries()["find_instance"], known).get or 0)


def add_instance(connection: apsw.Connection, name: InstanceName) -> int:
    """Add an instance, under a distinct name where another connector has its short one; return its row."""
    holder = connection.execute(queries()["connector_named"], (name.connector,)).get
    connector = name.connector if holder in (None, name.connector_id) else name.distinct
    row = (name.connector_id, connector, name.name, clock.stamp())
    return int(connection.execute(queries()["add_instance"], row).get)


class SqliteLedger:
    """The ledger of one instance. It owns its connection and closes it."""

    def __init__(self, connection: apsw.Connection, instance: InstanceName, blobs: BlobFolder) -> None:
        self._connection = connection
        self._blobs = blobs
        self._name = instance
        self._sql = queries()
        self._instance = 0
        self._run = 0
        self._namespace = ""
        self._writer: Writer | None = None
        self._searched: list[int] = []
        self._gaps = GapRows(connection, 0, "")

    def close(self) -> None:
        """See `Ledger.close`."""
        with suppress(apsw.Error):  # what was written stays: the next opening reads it from the log
            self._connection.close()
        self._blobs.discard_spool()

    def _ask(self, query: str, *values: Any) -> Any:
        return self._connection.execute(self._sql[query], values)

    # Starting.

    @translated()
    def begin(self, plan: RunPlan) -> None:
        """See `Ledger.begin`."""
        with transaction(self._connection):
            instance = self._known_instance() or self._add_instance()
            self._namespace = plan.namespace or ""
            state = (plan.namespace, plan.mode, clock.stamp(), _graph_text(plan.graph))
            self._run = self._ask("add_run", plan.run_id, instance, *state).get
            batches = {}
            for name in plan.streams:
                stream = plan.declaration.streams[name]
                row = self._ask("add_stream", instance, name, stream.semantics, stream.consent_time_field).get
                self._ask("add_run_stream", self._run, name)
                batches[name] = StreamBatch(row, append_only=stream.semantics == "append_only")
            self._gaps = GapRows(self._connection, instance, plan.gap_namespace)
            for stream_name, key in self._gaps.open_keys():
                if stream_name in batches:
                    batches[stream_name].pending_gaps.add(key)
            for gap in plan.retries:
                self._gaps.lease(gap, self._run)
            begun = {"mode": plan.mode, "streams": list(plan.streams), "retries": len(plan.retries)}
            self._event("run.started", begun)
            declare(
                self._connection, {batches[name].row: plan.declaration.streams[name].searchable for name in batches}
            )
        self._searched = [batch.row for batch in batches.values()]
        self._writer = Writer(self._connection, self._run, batches, self._blobs)
        while self._build_search():
            pass

    def _build_search(self) -> bool:
        """Index a part of what older runs stored; the database is free for others between two parts."""
        with transaction(self._connection):
            return build(self._connection, self._searched)

    def _known_instance(self) -> int:
        self._instance = find_instance(self._connection, self._name)
        return self._instance

    def _add_instance(self) -> int:
        self._instance = add_instance(self._connection, self._name)
        return self._instance

    @translated()
    def cursors(self, namespace: str) -> dict[str, str]:
        """See `Ledger.cursors`."""
        instance = self._known_instance()
        return dict(self._ask("checkpoints_of", instance, namespace)) if instance else {}

    @translated()
    def open_gaps(self, turn: Turn) -> list[OpenGap]:
        """See `Ledger.open_gaps`."""
        instance = self._known_instance()
        return GapRows(self._connection, instance, PROACTIVE.namespace or "").open(turn) if instance else []

    # Writing.

    @translated()
    def write(self, effects: Sequence[Write], *, ended: bool = False) -> Mapping[str, Tally]:
        """See `Ledger.write`."""
        assert self._writer is not None
        tallies: defaultdict[str, Tally] = defaultdict(Tally)
        staged: dict[str, str] = {}
        keeps: list[Keep] = []
        with transaction(self._connection):
            for effect in effects:
                if isinstance(effect, Keep):
                    keeps.append(effect)
                elif isinstance(effect, Stage):
                    staged[effect.stream] = effect.cursor
                elif isinstance(effect, Receipt):
                    self._receipt(effect, tallies)
                else:
                    self._gaps.note(effect, self._run)
                    tallies[effect.stream] += Tally(gaps=1)
            for receipt in self._writer.store(keeps, tallies):
                self._receipt(receipt, tallies)
            for stream, cursor in staged.items():
                self._ask("stage_cursor", self._run, stream, cursor)
            for healed in self._writer.healed():
                self._gaps.heal(*healed, self._run)
                tallies[healed[0]] += Tally(healed=1)
            for stream, tally in tallies.items():
                self._ask("add_tally", self._run, stream, *_counts(tally))
            if ended:
                self._ask("note_connector_ended", self._run)
        return tallies

    def _receipt(self, receipt: Receipt, tallies: defaultdict[str, Tally]) -> None:
        self._ask("add_receipt", self._run, *astuple(receipt), clock.stamp())
        tallies[receipt.stream] += Tally(rejected=1)

    # Ending.

    @translated()
    def note_cancelled(self) -> None:
        """See `Ledger.note_cancelled`."""
        self._ask("note_cancelled", self._run)

    @translated()
    def conclude(self, conclusion: Conclusion, *, run_id: str | None = None) -> Commit:
        """See `Ledger.conclude`."""
        own = (self._run, self._namespace)
        run, namespace = own if run_id is None else self._orphan_row(run_id)
        verdict, decision = conclusion.verdict, conclusion.decision
        committed: list[str] = []
        failed: str | None = None
        with transaction(self._connection):
            for stream in decision.committed:
                replaced = self._ask("checkpoint_at", self._instance, namespace, stream).fetchone() or ("null", None)
                if not self._commit(run, namespace, stream):
                    failed = stream
                    break
                committed.append(stream)
                self._ask("add_commit", run, stream, *replaced)
                self._event("checkpoint.committed", {"stream": stream}, run)
            for missed in decision.committed[len(committed) :]:
                reason = "write_failed" if missed == failed else "not_reached"
                self._ask("add_decision", run, missed, reason, "Its cursor could not be written.", None)
            for held in decision.withheld:
                keys = msgspec.json.encode(held.keys).decode() if held.keys else None
                self._ask("add_decision", run, held.stream, held.reason, held.message, keys)
                self._event("checkpoint.withheld", {"stream": held.stream, "reason": held.reason}, run)
            self._ask("drop_staged", run)
            self._ask("release_gaps", run)
            status, cause, message = verdict.status, verdict.cause, verdict.message
            if failed is not None:
                status, cause = "failed", "checkpoint_write_failed"
                message = f"The cursor of {failed} was not written."
            facts = msgspec.json.encode(asdict(conclusion.facts)).decode()
            self._ask("end_run", run, status, cause, message, clock.stamp(), facts, conclusion.stderr_tail or None)
            self._event("run.ended", {"status": status, "cause": cause}, run)
        return Commit(tuple(committed), failed)

    def _commit(self, run: int, namespace: str, stream: str) -> bool:
        """Write one checkpoint on its own savepoint, so that one that fails costs none before it."""
        try:
            with self._connection:
                self._ask("commit_checkpoint", self._instance, namespace, stream, run, clock.stamp())
        except apsw.Error:
            if not self._connection.in_transaction:  # SQLite gave all of it up, what committed before too
                raise
            return False
        return True

    def _orphan_row(self, run_id: str) -> tuple[int, str]:
        for row, name, namespace, *_ in self._ask("orphans_of", self._known_instance()):
            if name == run_id:
                return row, namespace or ""
        raise LookupError(run_id)

    @translated()
    def orphans(self) -> list[Orphan]:
        """See `Ledger.orphans`."""
        instance = self._known_instance()
        return [self._orphan(instance, row) for row in self._ask("orphans_of", instance).fetchall()] if instance else []

    def _orphan(self, instance: int, row: tuple[Any, ...]) -> Orphan:
        run, run_id, namespace, graph, ended, cancelled = row
        owner = NARROWING.sub("", namespace or "")
        grant = owner.removeprefix("grant:") if owner.startswith("grant:") else None
        return Orphan(
            run_id=run_id,
            authority=Authority(grant, single_use=namespace is None),
            graph=_graph(graph),
            staged=tuple(stream for (stream,) in self._ask("staged_of", run)),
            gapped=frozenset(stream for (stream,) in self._ask("gapped_streams", instance, owner)),
            connector_ended=bool(ended),
            cancelled=bool(cancelled),
        )

    def _event(self, kind: str, data: Mapping[str, Any], run: int | None = None) -> None:
        self._ask("add_event", run or self._run, kind, clock.stamp(), msgspec.json.encode(data).decode())


def _counts(tally: Tally) -> tuple[int, int, int, int, int]:
    return tally.accepted, tally.unchanged, tally.deleted, tally.rejected, tally.gaps


def _graph_text(graph: CheckpointGraph) -> str:
    edges = {name: [stream.state_stream, stream.parent_streams] for name, stream in graph.streams.items()}
    return msgspec.json.encode(edges).decode()


def _graph(text: str) -> CheckpointGraph:
    edges = msgspec.json.decode(text, type=dict[str, tuple[str | None, tuple[str, ...]]])
    return CheckpointGraph(
        {name: Stream(name, state_stream=one, parent_streams=many) for name, (one, many) in edges.items()}
    )
