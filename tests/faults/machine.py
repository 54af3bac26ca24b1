"""A Headwater in a folder of its own, over the steady guest, and the promises that its database is held to."""

import json
import os
import select
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
from faults.hosts import Hosts

GUEST = Path(__file__).parents[1] / "guests" / "steady.py"
STREAMS = {"alpha": range(600), "beta": range(600), "files": range(0, 600, 40)}
LINES = 2 * 600 + 15 + 3 * 24 + 1

# What must never be found, whatever was killed: each query counts the offences.
OFFENCES = {
    "a version that repeats the one before it": "versions v JOIN versions p ON p.seq = v.prev WHERE v.data IS p.data",
    "a record that is not its newest version": "records r WHERE version != (SELECT max(seq) FROM versions v"
    " WHERE v.stream = r.stream AND v.key = r.key)",
    "a version without a record": "versions v WHERE NOT EXISTS (SELECT 1 FROM records r"
    " WHERE r.stream = v.stream AND r.key = v.key)",
    "a wrong number of records": "streams s WHERE live != (SELECT count(*) FROM records WHERE stream = s.id)",
    "a cursor that is staged for an ended run": "staged s JOIN runs r ON r.id = s.run WHERE r.status != 'running'",
    "a run that counts other versions than it wrote": "runs r WHERE (SELECT sum(accepted + deleted) FROM run_streams"
    " WHERE run = r.id) != (SELECT count(*) FROM versions WHERE run = r.id)",
    "a cursor of a run that did not commit it": "checkpoints c WHERE NOT EXISTS (SELECT 1 FROM decisions d"
    " WHERE d.run = c.run AND d.stream = c.stream AND d.committed)",
    "a receipt of a sound record": "receipts",
    "a record that the index has not": "records r JOIN versions v ON v.seq = r.version WHERE v.data IS NOT NULL"
    " AND NOT EXISTS (SELECT 1 FROM search_docsize WHERE id = v.seq)",
    "a row of the index without its record": "search_docsize d WHERE NOT EXISTS (SELECT 1 FROM records r"
    " JOIN versions v ON v.seq = r.version WHERE v.seq = d.id AND v.data IS NOT NULL)",
}

STORED = (
    "SELECT r.key, v.data FROM records r JOIN versions v ON v.seq = r.version"
    " JOIN streams s ON s.id = r.stream WHERE s.name = ?"
)


class Place:
    """A Headwater in a folder of its own, for a program that declares some streams, and what its database holds."""

    def __init__(self, folder: Path, hosts: Hosts, streams: list[dict[str, Any]], **members: Any) -> None:
        self.hosts = hosts
        self.state = folder / "s"
        self.database = self.state / "headwater.db"
        self.manifest = folder / "manifest.json"
        self.manifest.write_text(json.dumps({"connector_id": "https://x.example/guest", "streams": streams, **members}))
        self.where = ["--config", str(folder / "c.toml"), "--state-dir", str(self.state), "--output", "json"]

    def collect(self, *program: str, options: Sequence[str] = (), fault: dict[str, Any] | None = None) -> int:
        """Start a run of a program, and return the pid of its host."""
        words = [*self.where, "collect", "--manifest", str(self.manifest), *options, "--", *program]
        return self.hosts.start(words, fault)

    def ask(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.looking() as ask:
            return ask(sql, *values)

    @contextmanager
    def looking(self) -> Iterator[Callable[..., list[tuple[Any, ...]]]]:
        """Ask several things of one moment: the store of a killed host may still write what was on its way."""
        connection = apsw.Connection(str(self.database))
        connection.set_busy_timeout(10_000)
        try:
            connection.execute("BEGIN")
            yield lambda sql, *values: connection.execute(sql, values).fetchall()
        finally:
            connection.close()

    def has(self, sql: str) -> bool:
        """Whether the database has all its tables yet, and a query gives a row."""
        if not self.database.exists() or not self.ask("SELECT 1 FROM sqlite_master WHERE name = 'search_docsize'"):
            return False
        return bool(self.ask(sql))

    def left_behind(self) -> list[str]:
        """Return the processes of its connectors that do not come to an end."""
        mark = f"={self.state}/spool/".encode()
        left = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (entry / "environ").read_bytes():
                    descriptor = os.pidfd_open(int(entry.name))
                    if not select.select([descriptor], [], [], 10)[0]:
                        left.append((entry / "cmdline").read_text())
                    os.close(descriptor)
        return left


class Machine(Place):
    """A place for the steady guest, whose whole truth is known."""

    def __init__(self, folder: Path, hosts: Hosts) -> None:
        properties = {"id": {"type": "string"}, "text": {"type": "string"}, "blob_ref": {"type": "object"}}
        schema = {"type": "object", "properties": properties}
        common = {"primary_key": ["id"], "incremental": True, "semantics": "mutable_state", "schema": schema}
        common["query"] = {"search": {"lexical_fields": ["text"]}}
        super().__init__(folder, hosts, [{"name": name, **common} for name in STREAMS])

    def start(self, *told: object, fault: dict[str, Any] | None = None) -> int:
        """Start a run, and return the pid of its host."""
        return self.collect(sys.executable, "-SE", str(GUEST), *map(str, told), fault=fault)

    def finish(self) -> dict[str, Any]:
        """Run to the end and return the result."""
        self.start()
        assert self.hosts.end().status == 0, self.hosts.said
        return self.hosts.said

    def stored(self, stream: str) -> dict[str, Any]:
        rows = self.ask(STORED, stream)
        return {key: json.loads(data) for key, data in rows}

    def cursors(self) -> dict[str, int]:
        rows = self.ask("SELECT stream, cursor FROM checkpoints") if self.has("SELECT 1") else []
        return {stream: json.loads(cursor)["next"] for stream, cursor in rows}

    def check(self) -> None:
        """Hold the database to its promises, whatever happened to the run."""
        if not self.has("SELECT 1"):
            return
        with self.looking() as ask:
            keys = {stream: {key for key, _ in ask(STORED, stream)} for stream in STREAMS}
            claims = ask("SELECT stream, cursor FROM checkpoints UNION SELECT stream, cursor FROM staged")
        for stream, cursor in claims:
            claimed = {f"{n:05d}" for n in STREAMS[stream] if n < json.loads(cursor)["next"]}
            assert claimed <= keys[stream], f"{stream} claims {cursor}"
        assert self.ask("PRAGMA integrity_check") == [("ok",)]
        assert self.ask("PRAGMA foreign_key_check") == []
        assert {name: self.ask(f"SELECT count(*) FROM {sql}")[0][0] for name, sql in OFFENCES.items()} == dict.fromkeys(
            OFFENCES, 0
        )
        blobs = self.ask("SELECT sha256, size_bytes FROM blobs")
        for digest, size in blobs:
            content = (self.state / "blobs" / digest[:2] / digest).read_bytes()
            assert (len(content), sha256(content).hexdigest()) == (size, digest)
        referred = {data["blob_ref"]["sha256"] for data in self.stored("files").values()}
        assert referred <= {digest for digest, _ in blobs}

    def is_whole(self) -> None:
        """Hold the database to exactly the truth: each record once, no run open, nothing lying about."""
        self.check()
        for stream, positions in STREAMS.items():
            assert self.stored(stream) == {f"{n:05d}": truth(stream, n) for n in positions}
        assert self.cursors() == dict.fromkeys(STREAMS, 600)
        assert self.ask("SELECT count(*) FROM versions") == [(sum(map(len, STREAMS.values())),)]
        assert self.ask("SELECT count(*) FROM runs WHERE status = 'running'") == [(0,)]
        assert list((self.state / "spool").iterdir()) == []


def truth(stream: str, position: int) -> dict[str, Any]:
    """Return the data of a record, as the steady guest sends it."""
    text = f"{stream} {position}"
    data: dict[str, Any] = {"id": f"{position:05d}", "text": text}
    if stream == "files":
        digest = sha256(text.encode()).hexdigest()
        data["blob_ref"] = {"blob_id": "b", "sha256": digest, "size_bytes": len(text), "mime_type": "text/plain"}
    return data
