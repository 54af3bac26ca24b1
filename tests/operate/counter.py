"""A shop whose integration's own code does the operations, in the program that an owner keeps."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from journeys.conftest import Answer
from operate.desk import Desk, desk_in
from owner.conftest import holder

from headwater.link.owner import Place, is_held

CODE = '''
"""What the shop can be asked, in words of its own."""

import pathlib
import time

from headwater.sdk.integration import Integration, Refused, operation

ORDER = {"type": "object", "properties": {"number": {"type": "string"}}, "required": ["number"]}
NUMBER = {"type": "object", "properties": {"number": {"type": "string"}}, "required": ["number"]}
PAGE = {"type": "object", "properties": {"page": {"type": "integer", "default": 1}}, "additionalProperties": False}


class Shop(Integration):
    @operation("orders.show", description="One order.", input=NUMBER, output=ORDER, contract="orders/v1")
    async def show(self, ctx, given):
        return self._get(ctx, f"/orders/{given['number']}")

    @operation(
        "orders.list",
        description="What was ordered.",
        input=PAGE,
        output={"type": "object"},
        walk={
            "param": "page",
            "counter": {},
            "records": "/orders",
            "ends": [{"name": "no_more", "pointer": "/more", "equals": False}],
        },
    )
    def list_(self, ctx, given):
        return self._get(ctx, f"/orders?page={given['page']}")

    @operation("orders.cancel", description="Cancel an order.", effect="write", input=NUMBER, output=ORDER)
    def cancel(self, ctx, given):
        return self._get(ctx, "/cancelled")

    @operation("anything", description="What a test says.", input={"type": "object"}, output={"type": "object"})
    def anything(self, ctx, given):
        if "code" in given:
            raise Refused(given["code"], retry_after=given.get("retry_after"))
        if "wait" in given:
            self._get(ctx, "/began")
            time.sleep(given["wait"])
        return eval(given["value"]) if "value" in given else given

    def _get(self, ctx, path):
        headers = {"authorization": f"Bearer {ctx.credential.access_token}"}
        return ctx.http.request("GET", path, headers=headers).accepted().json()
'''


class Counter(Desk):
    """A desk whose operations are code."""

    @property
    def place(self) -> Place:
        """Where its owner is."""
        return Place.of(self.headwater.state)

    @property
    def runs(self) -> bool:
        """Whether an owner runs."""
        return is_held(self.place)

    def code(self, source: str) -> None:
        """Give the integration this code."""
        (self.headwater.place / "connector" / "integration.py").write_text(source)

    def type(self, *words: str) -> Answer:
        """Type a command."""
        return self.headwater.type(*words)

    def stop(self) -> None:
        """End the owner."""
        assert self.type("setup", "owner-stop").status == 0

    def kill(self) -> None:
        """Kill the owner."""
        ended(self.headwater.state)

    def status(self) -> dict[str, Any]:
        """Return how the owner sees the instance."""
        observation: dict[str, Any] = self.type("instances", "status", "shop/me").result["observation"]
        return observation


@contextmanager
def counter_in(place: Path) -> Iterator[Counter]:
    """Have such a desk, configured and not connected."""
    with desk_in(place, Counter) as counter:
        assert isinstance(counter, Counter)
        (place / "connector" / "operations.toml").unlink()
        counter.code(CODE)
        try:
            yield counter
        finally:
            ended(counter.headwater.state)


def ended(state: Path) -> None:
    """Kill the owner of a state directory, if one runs."""
    if is_held(Place.of(state)):
        os.kill(holder(Place.of(state)), signal.SIGKILL)
