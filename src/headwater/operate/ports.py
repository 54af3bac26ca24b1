"""What operating needs of others: somebody who asks, a provider to send to, and a journal of what was sent."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct

from headwater.manifest.operation import Effect
from headwater.operate.description import Described
from headwater.operate.planning import Request

Lost = Literal["unavailable", "timeout", "protocol", "too_large"]


class Reply(Struct, frozen=True):
    """What a provider answered. `reason` is the one text of it that may be told, already held to every rule."""

    status: int
    body: bytes
    media_type: str
    retry_after: int | None = None
    reason: str | None = None

    def __repr__(self) -> str:
        return f"Reply(status={self.status})"


class NoReply(Exception):
    """No whole answer came. With `sent`, the provider may have seen the request."""

    def __init__(self, lost: Lost, *, sent: bool) -> None:
        super().__init__(lost)
        self.lost: Lost = lost
        self.sent = sent


class Provider(Protocol):
    """Sends requests with the credential of one connection."""

    async def send(self, request: Request, seconds: float) -> Reply:
        """Send a request once and return what is answered within so many seconds. Raise `NoReply`."""
        ...


class Asker(Protocol):
    """Asks for the operations of one instance with the credential of one connection. Deadlines are monotonic times."""

    async def ready(self, until: float) -> None:
        """Have ready what asking needs. Nothing of an operation is sent yet. Raise a refusal where that fails."""
        ...

    async def ask(self, described: Described, given: Mapping[str, Any], until: float, check: Callable[[], None]) -> Any:
        """Ask once and return the result, which may not be as it is declared. Raise what a failure of it means.

        `check` raises where what was admitted is not so any more; it is called before anything is sent once more.
        """
        ...


class Journal(Protocol):
    """Keeps which requests were sent. A row is durable before its request leaves."""

    def dispatched(self, connection: str, operation: str, revision: str, effect: Effect) -> str:
        """Note that a request is about to leave; return its id."""
        ...

    def answered(self, request_id: str, outcome: str, *, at_once: bool = False) -> None:
        """Note what came of it: `succeeded`, or a failure's code. That is durable `at_once`, or a little later."""
        ...
