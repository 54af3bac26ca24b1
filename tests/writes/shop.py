"""A shop whose orders can be changed: real HTTP, a real sealed file, a real database; the host in this process."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import pytest
from operate.desk import HEAD, SELECTION, TOKEN, Desk, desk_in
from signin.provider import Asked, Reply

from headwater.errors import HeadwaterError
from headwater.joining.writing import Order
from headwater.operate.writes.model import Proof
from headwater.operate.writes.subject import key_digest

OPERATIONS = (
    HEAD
    + """
[operations."orders.show"]
description = "One order."
path = "/orders/{number}"
params.number = { in = "path" }

[operations."orders.cancel"]
description = "Cancel an order."
effect = "write"
method = "POST"
path = "/orders/{number}/cancel"
params.number = { in = "path" }
conflict_status = 409

[operations."orders.ship"]
description = "Send an order that is open."
effect = "write"
method = "PATCH"
path = "/orders/{number}"
params.number = { in = "path" }
conflict_status = 412
body = { type = "object", required = ["state"], properties = { state = { enum = ["sent"] } } }
guard.inputs.etag = "The etag that the order was read with."
guard.preflight = [
    { operation = "orders.show", values = { number = "/number" }, checks = [{ pointer = "/state", literal = "open" }] },
    { operation = "orders.show", values = { number = "/number" }, mismatch = "conflict", checks = [
        { pointer = "/etag", input = "/etag" },
    ] },
]
guard.postflight = { operation = "orders.show", values = { number = "/number" }, checks = [
    { pointer = "/state", input = "/body/state" },
] }

[operations."orders.drop"]
description = "Forget an order."
effect = "write"
method = "DELETE"
path = "/orders/{number}"
params.number = { in = "path" }
guard.postflight = { operation = "orders.show", values = { number = "/number" }, absent = true }
"""
)
WRITES = ("orders.cancel", "orders.drop", "orders.ship")
SHIP = {"number": "7", "etag": "v1", "body": {"state": "sent"}}
Replies = Callable[[Asked], Reply | None]


@dataclass
class Shop(Desk):
    """A desk whose shop keeps its orders, and does to them what it is asked."""

    orders: dict[str, dict[str, Any]] = field(default_factory=lambda: {"7": {"state": "open", "etag": "v1"}})
    instead: Replies = lambda asked: None
    """What a test has it answer in the place of that."""

    @property
    def database(self) -> Path:
        """Where everything is kept."""
        return self.headwater.state / "headwater.db"

    @property
    def changes(self) -> list[str]:
        """What it was asked to change."""
        return [f"{asked.method} {asked.path}" for asked in self.running.asked if asked.method != "GET"]

    def answer(self, asked: Asked) -> Reply:
        """Do what is asked, where it is asked by Anna."""
        if asked.headers.get("authorization") != f"Bearer {TOKEN}":
            return Reply(status=401, body={"message": "no"})
        if asked.path == "/whoami":
            return Reply(body={"id": "anna"})
        reply = self.instead(asked)
        return self._done(asked) if reply is None else reply

    def _done(self, asked: Asked) -> Reply:
        number = asked.path.split("/")[2]
        order = self.orders.get(number)
        if order is None:
            return Reply(status=404, body={"message": "no such order"})
        if asked.method == "DELETE":
            del self.orders[number]
            return Reply(status=204)
        if asked.method != "GET":
            order["state"] = "cancelled" if asked.path.endswith("/cancel") else json.loads(asked.body)["state"]
            order["etag"] = f"v{int(order['etag'][1:]) + 1}"
        return Reply(body=order)

    def permit(self, *operations: str) -> None:
        """Have a key and a policy."""
        if "issuer" not in self.host.approval_keys.status():
            asyncio.run(self.host.approval_keys.init(None))
        held = self.host.approving.policy_status(SELECTION).get("policy")
        seen = None if held is None else str(held["revision"])
        self.host.approving.policy_set(SELECTION, tuple(sorted(operations or WRITES)), seen)

    def approve(self, operation: str = "orders.cancel", given: Any = None) -> Proof:
        """Approve a write."""
        given = {"number": "7"} if given is None else given
        approving = self.host.approving
        aimed, preparation = approving.prepare(SELECTION, operation, (None, None), None, given)
        return asyncio.run(approving.issue(aimed, None, given, preparation.sha256))

    def write(
        self,
        operation: str = "orders.cancel",
        given: Any = None,
        *,
        proof: Proof | None = None,
        key: bytes | None = None,
        seconds: float = 10,
    ) -> Any:
        """Do a write, by a new approval where none is given."""
        given = {"number": "7"} if given is None else given
        host = self.host
        aimed = host.operating.aimed("shop/me", operation)
        order = Order(aimed, given, None, key and key_digest(key))
        return asyncio.run(host.writing.write(order, proof or self.approve(operation, given), seconds))

    def unwritten(self, *words: Any, **how: Any) -> HeadwaterError:
        """Do a write, and return why it failed."""
        with pytest.raises(HeadwaterError) as caught:
            self.write(*words, **how)
        return caught.value

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return what is in the database."""
        database = apsw.Connection(str(self.database), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return database.execute(query).fetchall()
        finally:
            database.close()

    def states(self) -> list[tuple[str, str]]:
        """Return the attempts, each with its state and its classification, the oldest first."""
        return self.rows("SELECT state, classification FROM attempts ORDER BY number")


def told(error: HeadwaterError) -> tuple[str, str, str, str]:
    """Return the code of a failed write, its stage, what to do next, and what is known of its effect."""
    return error.code, error.stage, error.next_action, error.data["mutation"]["classification"]


@contextmanager
def shop_in(place: Path) -> Iterator[Shop]:
    """Have such a shop, connected, whose writes may be approved."""
    with desk_in(place, Shop) as shop:
        assert isinstance(shop, Shop)
        shop.define(OPERATIONS)
        shop.connect()
        shop.permit()
        yield shop
