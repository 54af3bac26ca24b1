"""The ledger in a process of its own: the host decodes on one core while the store writes on another.

Calls go over a socket pair, one after the other, each answered before the next: four bytes of length, one that says
what follows, and the rest. A batch is MessagePack; every other call, and every answer, is a pickle, which is safe
because both ends are this program and nobody else can reach the socket.

A process may be started ahead, before it is known what it will keep: it takes as long to start as a run to be
planned. It gets a copy of the instance's lock with its first call. If the host dies, the lock is free only when the
batch that was on its way is stored or gone: no new run meets a writer of the old one.
"""

import asyncio
import pickle
import socket
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from headwater import limits
from headwater.collect.effects import Write
from headwater.collect.gaps import OpenGap, Turn
from headwater.collect.plan import RunPlan
from headwater.collect.ports import Commit, Conclusion, Orphan
from headwater.errors import refuse
from headwater.events import Tally
from headwater.store.frames import BATCH, CALL, LAST_BATCH, LOCK, receive, send
from headwater.store.sqlite.ledger import InstanceName
from headwater.store.starting import StoreProcess


class LedgerApart:
    """A `Ledger` whose work is done by another process. Blocking calls run on a thread, and are awaited."""

    def __init__(self, store: StoreProcess) -> None:
        self._process, self._link = store.process, store.link
        self._thread = ThreadPoolExecutor(1, "store")
        self._encode = msgspec.msgpack.Encoder().encode
        self._closed = False

    @classmethod
    async def open(
        cls, store: StoreProcess, database: Path, instance: InstanceName, blobs: Path, spool: Path, *, lock: int
    ) -> "LedgerApart":
        """Open the database in a store, with the refusals of `open_database`. `lock` is that of the instance."""
        ledger = cls(store)
        try:
            await ledger._give(lock)
            await ledger._call("open", database, instance, blobs, spool)
        except BaseException:
            await ledger.close()
            raise
        return ledger

    async def begin(self, plan: RunPlan) -> None:
        """See `Ledger.begin`."""
        await self._call("begin", plan)

    async def write(self, effects: Sequence[Write], *, ended: bool = False) -> Mapping[str, Tally]:
        """See `Ledger.write`."""
        kind = LAST_BATCH if ended else BATCH
        tallies: Mapping[str, Tally] = await self._asked(lambda: self._ask(kind, self._encode(effects)))
        return tallies

    async def note_cancelled(self) -> None:
        """See `Ledger.note_cancelled`."""
        await self._call("note_cancelled")

    async def conclude(self, conclusion: Conclusion, *, run_id: str | None = None) -> Commit:
        """See `Ledger.conclude`."""
        commit: Commit = await self._call("conclude", conclusion, run_id=run_id)
        return commit

    async def cursors(self, namespace: str) -> Mapping[str, str]:
        """See `Ledger.cursors`."""
        cursors: Mapping[str, str] = await self._call("cursors", namespace)
        return cursors

    async def orphans(self) -> Sequence[Orphan]:
        """See `Ledger.orphans`."""
        orphans: Sequence[Orphan] = await self._call("orphans")
        return orphans

    async def open_gaps(self, turn: Turn) -> Sequence[OpenGap]:
        """See `Ledger.open_gaps`."""
        gaps: Sequence[OpenGap] = await self._call("open_gaps", turn)
        return gaps

    async def close(self) -> None:
        """See `Ledger.close`. The process ends when it finds the socket closed; one that does not is killed."""
        if self._closed:
            return
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(self._thread, self._end)
        self._thread.shutdown(wait=False)

    def _end(self) -> None:
        self._link.close()
        try:
            self._process.wait(limits.STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    async def _give(self, lock: int) -> None:
        try:
            await self._asked(lambda: socket.send_fds(self._link, [LOCK], [lock]))
        except OSError:
            return  # the store is gone, and the call that follows says so

    async def _call(self, name: str, *values: Any, **named: Any) -> Any:
        return await self._asked(lambda: self._ask(CALL, pickle.dumps((name, values, named))))

    async def _asked(self, ask: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, ask)

    def _ask(self, kind: int, content: bytes) -> Any:
        try:
            send(self._link, kind, content)
            answer = receive(self._link)
        except OSError:
            answer = None
        if answer is None:
            message = "The store's process ended. The last batch was not kept."
            raise refuse("storage_failed", message, safe="What was stored before is whole.")
        succeeded, result = pickle.loads(answer[1])  # noqa: S301 - of this program's own other half
        if succeeded:
            return result
        code, message, members = result
        raise refuse(code, message, **members)
