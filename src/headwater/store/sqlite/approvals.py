"""What approvals stand on, as rows: the ports `Issuers` and `Policies` of one owner, and its clock."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec

from headwater.errors import refuse
from headwater.operate.writes.model import Issuer, Policy, SigningKey
from headwater.store.locks import ours
from headwater.store.sqlite.database import nothing, open_database, queries, transaction, translated

Row = dict[str, Any]
T = TypeVar("T")


class Approvals:
    """The keys, policies and clock of one owner."""

    def __init__(self, connection: apsw.Connection, owner: int) -> None:
        self._owner = owner
        self._sql = queries("approvals")
        self._connection = connection

    def close(self) -> None:
        """Let go of the database."""
        self._connection.close()

    def issuer(self) -> Issuer | None:
        """See `Issuers.issuer`."""
        with translated():
            row = self._connection.execute(self._sql["issuer"], (self._owner,)).fetchone()
        return None if row is None else Issuer(row[0], row[1], _decoded(row[2], tuple[SigningKey, ...]))

    def put_issuer(self, before: Issuer | None, after: Issuer) -> bool:
        """See `Issuers.put_issuer`."""
        keys = msgspec.json.encode(after.keys).decode()
        row = {"issuer_id": after.issuer_id, "revision": after.revision, "keys": keys}
        if before is None:
            return self._did("add_issuer", row)
        return self._did("change_issuer", {**row, "before": before.revision})

    def policy(self, instance_id: str) -> Policy | None:
        """See `Policies.policy`."""
        with translated():
            row = self._connection.execute(self._sql["policy"], (self._owner, instance_id)).fetchone()
        return None if row is None else _decoded(row[0], Policy)

    def put_policy(self, before: Policy | None, after: Policy) -> bool:
        """See `Policies.put_policy`."""
        policy = msgspec.json.encode(after).decode()
        row = {"instance_id": after.instance_id, "revision": after.revision, "policy": policy}
        if before is None:
            return self._did("add_policy", row)
        return self._did("change_policy", {**row, "before": before.revision})

    def latest(self) -> int:
        """Return the latest time that an approval was given or looked at; 0 where there was none."""
        with translated():
            return int(self._connection.execute(self._sql["floor"], (self._owner,)).get or 0)

    def raised(self, now_ms: int) -> int:
        """Return that time, from now on at least `now_ms`: it never goes back."""
        with translated(), transaction(self._connection):
            return int(self._connection.execute(self._sql["raise_floor"], (self._owner, now_ms)).get)

    def begin_clock(self, now_ms: int) -> None:
        """Forget the latest time: only where no approval that was given before counts any more."""
        with translated(), transaction(self._connection):
            self._connection.execute(self._sql["set_floor"], (self._owner, now_ms))

    def _did(self, name: str, row: Row) -> bool:
        with translated(), transaction(self._connection):
            return self._connection.execute(self._sql[name], {**row, "owner": self._owner}).fetchone() is not None


@contextmanager
def opened(path: Path, owner: int) -> Iterator[Approvals]:
    """Open what approvals stand on. Raise `forbidden` where others may write there."""
    ours(path.parent)
    with closing(Approvals(open_database(path), owner)) as found:
        yield found


@contextmanager
def looked_at(path: Path, owner: int) -> Iterator[Approvals]:
    """Open it for looking: where there is no database nothing was ever approved, and none is made."""
    with closing(Approvals(open_database(path, readonly=True) if path.exists() else nothing(), owner)) as found:
        yield found


def _decoded(text: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise refuse("metadata_unavailable", safe="Nothing was changed.") from error
