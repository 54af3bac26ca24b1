"""The other half of `store.apart`: a process that keeps one ledger, until its host closes the socket or dies."""

import os
import pickle
import signal
import socket
from pathlib import Path
from typing import Any, Never

import msgspec

from headwater.collect.effects import Write
from headwater.errors import HeadwaterError, refuse
from headwater.store.blobs import BlobFolder
from headwater.store.frames import ANSWER, CALL, LAST_BATCH, LOCK, receive, send
from headwater.store.sqlite.database import open_database
from headwater.store.sqlite.ledger import InstanceName, SqliteLedger


class _Served:
    """One ledger, and what may be asked of it."""

    def __init__(self) -> None:
        self._ledger: SqliteLedger | None = None
        self._decode = msgspec.msgpack.Decoder(list[Write]).decode

    def open(self, database: Path, instance: InstanceName, blobs: Path, spool: Path) -> None:
        """Open the ledger that the other calls are for."""
        self._ledger = SqliteLedger(open_database(database), instance, BlobFolder(blobs, spool))

    def close(self) -> None:
        """Let go of the ledger."""
        if self._ledger is not None:
            self._ledger.close()

    def do(self, kind: int, content: bytearray) -> Any:
        """Do what a frame asks for and return its result."""
        if kind != CALL:
            assert self._ledger is not None
            return self._ledger.write(self._decode(content), ended=kind == LAST_BATCH)
        name, values, named = pickle.loads(content)  # noqa: S301 - of this program's own other half
        return getattr(self if name == "open" else self._ledger, name)(*values, **named)


def main(descriptor: int) -> Never:
    """Serve, and end at once: nothing is left to do then, and the host waits for the end."""
    serve(descriptor)
    os._exit(0)


def serve(descriptor: int) -> None:
    """Answer the host that has the other end of a socket. A signal to the whole group is the host's to act on."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    served = _Served()
    with socket.socket(fileno=descriptor) as link:
        socket.recv_fds(link, len(LOCK), 1)  # the lock is held for as long as this process lives
        while (frame := receive(link)) is not None:
            try:
                answer = (True, served.do(*frame))
            except Exception as error:  # noqa: BLE001 - the boundary of the process: whatever it is, the host hears of it
                answer = (False, _described(error))
            try:
                send(link, ANSWER, pickle.dumps(answer))
            except OSError:
                break
        served.close()


def _described(error: Exception) -> tuple[str, str, dict[str, Any]]:
    if not isinstance(error, HeadwaterError):
        error = refuse("storage_failed", "The store failed inside.", safe="What was stored before is whole.")
    words = {"stage": error.stage, "next_action": error.next_action, "safe": error.safe, "command": error.command}
    return error.code, error.message, {**words, **error.data}
