"""Writing for real: one write of one instance, admitted with its approval, done at most once, and kept.

Whatever fails from here on fails as a write: with its mutation record, and never with an invitation to send it again
that could do it twice.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from headwater import clock
from headwater.errors import HeadwaterError, refuse
from headwater.joining.approval_clock import check_clock
from headwater.joining.approving import place_of
from headwater.joining.configured import configuration_of
from headwater.operate.admission import admit_scopes
from headwater.operate.writes.model import Admitted, Attempt, Cause, Mutation, Proof
from headwater.operate.writes.outcome import as_write
from headwater.operate.writes.proof import check
from headwater.operate.writes.subject import fingerprint
from headwater.operate.writes.timing import measured
from headwater.operate.writes.writing import Writing, replayed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.connect.model import Connection
    from headwater.connect.using import Used
    from headwater.joining.approving import Approving
    from headwater.joining.connecting import Connecting
    from headwater.joining.operating import Aimed, Operating
    from headwater.operate.writes.model import Preparation
    from headwater.settings import Settings
    from headwater.store.sqlite.approvals import Approvals
    from headwater.store.sqlite.attempts import Attempts
    from headwater.store.sqlite.connections import ConnectionRegistry
    from headwater.store.sqlite.invocations import Invocations

Shown = dict[str, Any]


@dataclass(frozen=True)
class Order:
    """A write that a person ordered: the operation, its input, with which connection, and by which key.

    `key` digests the idempotency key; the same order with the same one is not done again.
    """

    aimed: Aimed
    given: Any
    reference: str | None
    key: str | None


@dataclass(frozen=True)
class _Open:
    """What a write works with, while it is alone at its instance."""

    registry: ConnectionRegistry
    approvals: Approvals
    ledger: Attempts
    journal: Invocations


class Writes:
    """The writes of one Headwater."""

    def __init__(self, settings: Settings, connecting: Connecting, operating: Operating, approving: Approving) -> None:
        self._settings, self._connecting = settings, connecting
        self._operating, self._approving = operating, approving

    async def write(self, order: Order, proof: Proof, seconds: float) -> Shown:
        """Do what was ordered within so many seconds, and return the whole answer, or raise what came of it."""
        import asyncio

        from headwater.store.turns import ConnectionTurns

        check_clock(configuration_of(self._settings))
        order.aimed.check(order.given)
        until = clock.monotonic() + seconds
        turns, instance = ConnectionTurns(self._settings.locks_dir / "connections"), order.aimed.target.instance_id
        told: list[Shown | HeadwaterError] = []
        try:
            async with turns.writing(instance, until):
                with self._opened(order) as open_:
                    told.append(await self._told(open_, order, proof, until))
        except HeadwaterError as error:
            if not told:
                raise _unattempted(error) from None
        except asyncio.CancelledError:
            if not told:
                raise _unattempted(refuse("interrupted", "Interrupted before anything was sent.")) from None
        (answer,) = told  # what is known of it counts, whatever failed behind it
        if isinstance(answer, HeadwaterError):
            raise answer
        return _whole(order, answer)

    async def before(self, order: Order, seconds: float) -> Shown | None:
        """Return what was told of an order that was given before, or raise it; None where it was not, by its key."""
        from headwater.store.turns import ConnectionTurns

        turns, instance = ConnectionTurns(self._settings.locks_dir / "connections"), order.aimed.target.instance_id
        try:
            async with turns.writing(instance, clock.monotonic() + seconds):
                with self._opened(order) as open_:
                    open_.ledger.recover()
                    answer = _before(open_, order)
        except HeadwaterError as error:
            raise _unattempted(error) from None
        return None if answer is None else _whole(order, answer)

    async def _told(self, open_: _Open, order: Order, proof: Proof, until: float) -> Shown | HeadwaterError:
        """Return what came of a write: its answer, or its failure with all that is known of it."""
        try:
            return await self._written(open_, order, proof, until)
        except HeadwaterError as error:
            return _unattempted(error)

    @contextmanager
    def _opened(self, order: Order) -> Iterator[_Open]:
        from headwater.store.sqlite import approvals, attempts, connections, invocations

        path, target = self._settings.database_path, order.aimed.target
        asking = invocations.Asking(target.owner, target.instance_id, target.connector, target.instance)
        with (
            connections.opened(path) as registry,
            approvals.opened(path, target.owner) as approving,
            closing(attempts.Attempts(path, target.owner, target.instance_id)) as ledger,
            closing(invocations.Invocations(path, asking)) as journal,
        ):
            yield _Open(registry, approving, ledger, journal)

    async def _written(self, open_: _Open, order: Order, proof: Proof, until: float) -> Shown:
        from headwater.connect.advice import advised
        from headwater.connect.choosing import usable

        aimed = order.aimed
        open_.ledger.recover()
        before = _before(open_, order)
        if before is not None:
            return before
        connection = usable(open_.registry, aimed.target, order.reference, clock.millis())
        preparation = self._admitted(open_, order, proof, connection)
        with advised(open_.registry, aimed.target):
            used = await self._used(open_, order, connection, until)
        revisions = preparation.issuer.revision, preparation.policy.revision
        admitted = Admitted(used.connection.generation, *revisions)
        async with aimed.way.changing(open_.journal) as changer:
            still = partial(self._still, open_, order, proof, used.connection)
            writing = Writing(open_.ledger, open_.journal, changer(used), admitted, until, still)
            attempt = Attempt(
                attempt_id=clock.identifier("attempt"),
                owner=aimed.target.owner,
                instance_id=aimed.target.instance_id,
                connection=connection.reference,
                operation=aimed.described.operation.id,
                fingerprint=fingerprint(place_of(aimed.target, connection), aimed.described, order.given),
                issuer=preparation.issuer.name,
                reference=proof.reference,
                request_id="",
                key=order.key,
            )
            return await writing.write(aimed.described, order.given, attempt)

    def _admitted(self, open_: _Open, order: Order, proof: Proof, connection: Connection) -> Preparation:
        """Return what the approval is of, where it is of this, and was not spent."""
        preparation = self._approved(open_, order, proof, connection)
        if open_.ledger.is_spent(preparation.issuer.name, proof.reference):
            raise refuse("approval_replayed")
        return preparation

    def _approved(self, open_: _Open, order: Order, proof: Proof, connection: Connection) -> Preparation:
        """Return a write as it is permitted now. Raise `approval_refused` where that is not what was approved."""
        from headwater.vault.signing import verify

        preparation = self._approving.permitted(order.aimed, open_.approvals, connection, order.given)
        now_ms = clock.millis()
        check(proof, preparation, measured(now_ms, open_.approvals.raised(now_ms)), verify)
        return preparation

    async def _used(self, open_: _Open, order: Order, connection: Connection, until: float) -> Used:
        """Return the credential, with its evidence brought up to date as for a read (CLI-727)."""
        import asyncio

        from headwater.operate.reading import timed_out

        target = order.aimed.target
        using = self._connecting.using(open_.registry, configuration_of(self._settings), target)
        seconds = until - clock.monotonic()
        try:
            async with asyncio.timeout(seconds):
                used = await using.use(connection, seconds)
        except TimeoutError:
            raise timed_out() from None
        admit_scopes(order.aimed.described, used.connection.profile, used.connection.evidence.scopes)
        return used

    def _still(self, open_: _Open, order: Order, proof: Proof, connection: Connection) -> None:
        """Raise where what the write was admitted by is not so any more, or its approval's time is over."""
        self._operating.check_running(order.aimed.target)
        self._approved(open_, replace(order, aimed=self._operating.again(order.aimed)), proof, connection)


def _whole(order: Order, answer: Shown) -> Shown:
    return {**order.aimed.selectors, "revision": order.aimed.described.revision, **answer}


def _before(open_: _Open, order: Order) -> Shown | None:
    """Tell again what came of a write that was asked before with the same key, if this is the same one.

    It was with a connection that may be revoked by now: then it is not the same any more.
    """
    before = None if order.key is None else open_.ledger.used(order.key)
    if before is None:
        return None
    connection = open_.registry.find(before.owner, before.connection)
    if connection is not None and order.reference in (None, before.connection):
        place = place_of(order.aimed.target, connection)
        if fingerprint(place, order.aimed.described, order.given) == before.fingerprint:
            return replayed(before)
    message = "The key stands for another write, or for this one before its connection or configuration changed."
    raise refuse("idempotency_conflict", message)


def _unattempted(error: HeadwaterError) -> HeadwaterError:
    """Return a failure as that of a write: what says nothing of it came about before anything was sent (CLI-713)."""
    if "mutation" in error.data:
        return error
    cause = Cause(error.code, "approval") if error.code.startswith("approval_") else None
    return as_write(error, Mutation("not_attempted", cause=cause))
