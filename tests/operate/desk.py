"""A shop whose counter can be asked: real HTTP, a real sealed file, a real database; the host in this process."""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import pytest
from connectors.connecting import written
from journeys.conftest import GUESTS, Headwater
from msgspec.structs import replace
from signin.provider import Asked, Provider, Reply, provider

from headwater.cli.consent import AtTerminal
from headwater.configuration.selecting import Selection
from headwater.connect.entries import Means
from headwater.errors import HeadwaterError
from headwater.host import Host
from headwater.secret import Secret
from headwater.settings import resolve
from headwater.store.sqlite.connections import opened
from headwater.store.sqlite.invocations import Asking, past

TOKEN = "token-of-anna-0123"
HEAD = 'format = "connectors-definition/1"\n'
OPERATIONS = (
    HEAD
    + """
[operations."orders.list"]
description = "What was ordered."
path = "/orders"
params.state = { values = ["open", "sent"] }
params.page = { type = "integer", minimum = 1, maximum = 9 }
output = { type = "array" }

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
"""
)
SELECTION = Selection("shop", "me")


def whoami(asked: Asked) -> Reply:
    """Answer whose token it is, and an order for everything else."""
    if asked.headers.get("authorization") != f"Bearer {TOKEN}":
        return Reply(status=401, body={"message": "no"})
    return Reply(body={"id": "anna"} if asked.path == "/whoami" else [{"number": "1", "item": "tea"}])


@dataclass
class Desk:
    """A Headwater with one instance, `shop/me`."""

    headwater: Headwater
    running: Provider
    shut: Callable[[], None]
    replies: dict[str, Reply | Callable[[Asked], Reply]] = field(default_factory=dict)

    @property
    def host(self) -> Host:
        """The host, made anew: it keeps nothing."""
        return Host(resolve(str(self.headwater.place / "config.toml"), str(self.headwater.state)))

    @property
    def paths(self) -> list[str]:
        """What the shop was asked for, without who is asking."""
        return [asked.path for asked in self.running.asked if asked.path != "/whoami"]

    def answer(self, asked: Asked) -> Reply:
        """Answer as a test says, by the path; else as `whoami` does."""
        reply = self.replies.get(asked.path.partition("?")[0])
        return whoami(asked) if reply is None else reply if isinstance(reply, Reply) else reply(asked)

    def define(self, operations: str) -> None:
        """Give the connector these operations."""
        (self.headwater.place / "connector" / "operations.toml").write_text(operations)

    def lapse(self) -> None:
        """Let what was last checked of the first connection be too old."""
        with opened(self.headwater.state / "headwater.db") as registry:
            now = registry.held(os.geteuid(), "shop.me")[0]
            evidence = replace(now.evidence, collected_at_ms=1, valid_until_ms=2)
            assert registry.publish(now, replace(now, evidence=evidence), 0)

    def another_connection(self) -> str:
        """Have the connection of each instance twice, as from before there was just one; custody has it once."""
        database = apsw.Connection(str(self.headwater.state / "headwater.db"))
        columns = [row[1] for row in database.execute("PRAGMA table_info(connections)")]
        values = ", ".join("reference || 'x'" if name == "reference" else name for name in columns)
        database.execute(f"INSERT INTO connections ({', '.join(columns)}) SELECT {values} FROM connections")
        database.close()
        with opened(self.headwater.state / "headwater.db") as registry:
            return registry.held(os.geteuid(), "shop.me")[-1].reference

    def configure(self, table: str = "", head: str = "") -> None:
        """Write the configuration, with more in the table of the instance."""
        start = f'format = "connectors-local/5"\nowner_uid = {os.geteuid()}\n{head}[adapters]\n'
        place = f'[connectors.shop.instances.me]\nendpoint = "{self.running.url}"\n{table}'
        written(self.headwater.place, "config.toml", start + place)

    def connect(self, instance: str = "me") -> str:
        """Connect the account; return the reference of the connection."""
        means = Means(lambda _: {"token": Secret(TOKEN)}, AtTerminal())
        told = asyncio.run(self.host.connecting.connect(Selection("shop", instance), means=means))
        return str(told["connection"])

    def ask(self, operation: str = "orders.list", given: Any = None, *, name: str = "shop/me", **how: Any) -> Any:
        """Ask once; return the whole answer."""
        seconds, reference = how.pop("seconds", 10), how.pop("connection", None)

        async def ask() -> Mapping[str, Any]:
            operating = self.host.operating
            aimed = operating.aimed(name, operation, (how.get("schema"), how.get("revision")), reference=reference)
            async with operating.reading(aimed, reference) as reads:
                return await reads.read({} if given is None else given, seconds)

        return asyncio.run(ask())

    def refused(self, *words: Any, **how: Any) -> HeadwaterError:
        """Ask once, and return why that was refused."""
        with pytest.raises(HeadwaterError) as caught:
            self.ask(*words, **how)
        return caught.value

    def journal(self) -> list[dict[str, Any]]:
        """Return what was noted of requests, the oldest first."""
        asking = Asking(os.geteuid(), "shop.me", "shop", "me")
        return past(self.headwater.state / "headwater.db", asking, 1 << 62, 1000)[::-1]


@contextmanager
def desk_in(place: Path, kind: type[Desk] = Desk) -> Iterator[Desk]:
    """Have a desk that is configured and not connected, in a folder of its own."""
    with ExitStack() as open_:
        running = open_.enter_context(provider(whoami))
        one = kind(Headwater(place), running, open_.close)
        running.answer = one.answer
        connector = shutil.copytree(GUESTS / "shop", place / "connector")
        one.define(OPERATIONS)
        key = written(place, "key", "k" * 43)
        sealed = f'binding = "sealed_file"\nfile = "{place}/custody.sealed"\nkey_file = "{key}"\n'
        instances = f'[instances."shop/me"]\nfolder = "{connector}"\n'
        written(place, "collect.toml", f'format = "headwater-collect/1"\n[custody]\n{sealed}{instances}')
        one.configure()
        yield one


def failure_of(error: HeadwaterError) -> tuple[str, str, str, str | None]:
    """Return the code of a refusal, its stage, what to do next, and the service's code."""
    return error.code, error.stage, error.next_action, error.data.get("service_code")
