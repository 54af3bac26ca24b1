"""A desk beside a shelf of releases: the shop is a connector's folder, and what else is asked is of a release alone."""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from operate.desk import OPERATIONS, TOKEN, Desk
from releases.making import ASSET, index_of, packed
from signin.provider import Asked, Reply

from headwater.cli.consent import AtTerminal
from headwater.configuration.selecting import Selection
from headwater.connect.entries import Means
from headwater.errors import HeadwaterError
from headwater.secret import Secret

AUTH = """
key = "api_token"
label = "API token"
flow = "token"
scheme = "token"
fields = [{ name = "token", label = "API token", type = "token", required = true }]
identity = { source = "api", kind = "user", path = "/whoami", subject = "/id", display = "/name" }
"""
WALK = """
[operations."bills.list"]
description = "What is to be paid, a page at a time."
path = "/bills"
params.cursor = {}

[operations."bills.list".walk]
param = "cursor"
next = "/next"
records = "/bills"
ends = [{ name = "no_more", pointer = "/more", equals = false }]
"""


def definition(
    url: str, *, more: str = "", auth: str = f"[[auth.methods]]{AUTH}", operations: str = OPERATIONS
) -> bytes:
    """Return a definition of a service at a URL, with `more` members."""
    head, _, rest = operations.partition("\n")
    return f'{head}\nbase_url = "{url}"\n{more}\n{rest}\n{auth}'.encode()


class Shelf:
    """The releases of one Headwater, and its desk."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.url = desk.running.url

    def install(self, files: Mapping[str, bytes], tag: str = "0.3.0") -> str:
        """Publish a release in a folder and install it; return its digest."""
        folder = self.desk.headwater.place / "source" / tag
        folder.mkdir(parents=True, exist_ok=True)
        asset = packed(files)
        (folder / "index.json").write_text(json.dumps(index_of(files, asset, tag=tag)))
        (folder / ASSET).write_bytes(asset)
        return str(self.desk.host.releases.install(str(folder.parent), tag)["index_sha256"])

    def opted(self, name: str, files: Mapping[str, bytes], tag: str = "0.3.0") -> str:
        """Install a release, and have an instance served by it."""
        digest = self.install(files, tag)
        self.desk.host.opting.use(name, digest)
        return digest

    def place(self, name: str, *, table: str = "") -> None:
        """Give an instance its endpoint, as the configuration's owner does by hand."""
        connector, instance = name.split("/")
        path = self.desk.headwater.place / "config.toml"
        row = f'[connectors.{connector}.instances.{instance}]\nendpoint = "{self.url}"\n{table}'
        path.write_text(f"{path.read_text()}{row}")

    def connect(self, name: str) -> str:
        """Connect an account; return the reference of the connection."""
        means = Means(lambda _: {"token": Secret(TOKEN)}, AtTerminal())
        told = asyncio.run(self.desk.host.connecting.connect(Selection(*name.split("/")), means=means))
        return str(told["connection"])

    def operations(self, name: str = "acme/me") -> set[str]:
        """Return what can be asked of an instance."""
        page = self.desk.host.operating.list_(Selection(*name.split("/")), None, 100, None)
        return {row["id"] for row in page["operations"]}

    def revision(self, name: str) -> str:
        """Return the revision of an instance's configuration."""
        told = self.desk.host.configuring.describe(Selection(*name.split("/")))
        return str(told["configuration"]["configuration_revision"])

    def state(self, name: str) -> str:
        """Return how an instance's connection stands."""
        told = self.desk.host.connecting.describe(Selection(*name.split("/")), None)
        return str(told["connection"]["state"])

    def kept(self, digest: str, path: str = "") -> Path:
        """Return where a file of an installed release is, or the release."""
        return self.desk.headwater.state / "installed-definitions" / digest / path

    @property
    def collect(self) -> Path:
        """The file that the key stands in."""
        return self.desk.headwater.place / "collect.toml"


def billed(last: int = 3) -> Callable[[Asked], Reply]:
    """Answer pages 1 to `last` of bills."""

    def answer(asked: Asked) -> Reply:
        page = int(asked.path.partition("cursor=")[2] or "1")
        return Reply(body={"bills": [{"number": page}], "next": str(page + 1), "more": page < last})

    return answer


def refusal(work: Callable[..., Any], *given: Any) -> HeadwaterError:
    """Do what is refused, and return why."""
    with pytest.raises(HeadwaterError) as caught:
        work(*given)
    return caught.value
