"""What a write needs of others: somebody who does it, and a ledger of what was begun."""

from collections.abc import Mapping
from typing import Any, Protocol

from headwater.operate.description import Described
from headwater.operate.writes.model import Admitted, Attempt, Outcome


class Changer(Protocol):
    """Does the writes of one instance with the credential of one connection. Deadlines are monotonic times."""

    async def ready(self, until: float) -> None:
        """See `operate.ports.Asker.ready`."""
        ...

    async def preflight(self, described: Described, given: Mapping[str, Any], until: float) -> None:
        """Look whether all is at the service as the write needs it; raise what forbids it. Nothing is changed there."""
        ...

    async def commit(self, described: Described, given: Mapping[str, Any], until: float) -> Outcome:
        """Send the write once, and return what came of it, as far as that can be known. Raise nothing."""
        ...


class Ledger(Protocol):
    """Keeps the attempts of one instance. One process at a time writes there, and calls this.

    Raise `storage_failed` or `metadata_unavailable`; nothing of that call was kept then.
    """

    def recover(self) -> None:
        """Settle what a process left that is gone: prepared was not attempted, dispatching is unknown (CLI-731)."""
        ...

    def used(self, key: str) -> Attempt | None:
        """Return the attempt that a key stands for: for a day once it is settled, for good where it is unknown."""
        ...

    def is_spent(self, issuer: str, reference: str) -> bool:
        """Whether a proof was spent."""
        ...

    def prepare(self, attempt: Attempt) -> None:
        """Note an attempt, take its key, and spend its proof: all of it or nothing.

        Raise `approval_replayed` for a proof that was spent, `idempotency_conflict` for a key that is taken.
        """
        ...

    def dispatch(self, attempt: Attempt, admitted: Admitted) -> None:
        """Note that an attempt is about to be sent, unless something that it was admitted by has changed.

        Raise `revoked` or `lifecycle_conflict` for its connection, `approval_refused` for the keys or the policy then:
        revoking any of these and this are one after the other (CLI-330).
        """
        ...

    def settle(self, attempt: Attempt) -> None:
        """Note what came of an attempt. The key of one that was not attempted is free again."""
        ...
