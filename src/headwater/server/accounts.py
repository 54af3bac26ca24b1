"""The routes of integrations and of connected accounts: each translates a request into one call of the host."""

import asyncio
from typing import Any, get_args

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headwater.collect.verdict import Status
from headwater.configuration.selecting import Selection, target
from headwater.errors import refuse
from headwater.host import Host
from headwater.server.answers import json_answer
from headwater.server.asking import Nothing, document_of, query_of
from headwater.server.paging import Asked
from headwater.syncing import Syncs


class _Settings(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a change of settings: the value of each, a text or what JSON has."""

    options: dict[str, Any]


class AccountRoutes:
    """Shows and changes accounts. What only looks is done on a thread, so that nobody waits for it."""

    def __init__(self, host: Host, syncs: Syncs) -> None:
        self._host = host
        self._syncs = syncs

    # Looking.

    async def integrations(self, request: Request) -> Response:
        """List the services that accounts can be connected to."""
        asked = Asked(request)
        told = await asyncio.to_thread(self._host.integrating.catalog)
        return json_answer(asked.cut(told, "integrations"))

    async def integration(self, request: Request) -> Response:
        """Show one of them."""
        query_of(request)
        return json_answer(await asyncio.to_thread(self._host.integrating.named, request.path_params["key"]))

    async def instances(self, request: Request) -> Response:
        """List the configured instances."""
        asked = Asked(request)
        return json_answer(asked.cut(await asyncio.to_thread(self._host.configuring.instances), "instances"))

    async def connections(self, request: Request) -> Response:
        """List the connections of an instance, which is the default one where none is named."""
        asked = Asked(request, ["instance"])
        selection = target(asked.given["instance"]) if "instance" in asked.given else Selection()
        page = await asyncio.to_thread(self._host.connecting.list_, selection, asked.limit, asked.behind(str))
        return json_answer(asked.page(page, page.pop("next_cursor", None)))

    async def connection(self, request: Request) -> Response:
        """Show a connection."""
        query_of(request)
        reference = request.path_params["id"]

        def described() -> dict[str, Any]:
            return self._host.connecting.describe(self._host.connecting.addressed(reference), reference)

        return json_answer(await asyncio.to_thread(described))

    async def resources(self, request: Request) -> Response:
        """List the streams that the connection's instance has collected."""
        asked = Asked(request)
        reference = request.path_params["id"]

        def streams() -> dict[str, Any]:
            selection = self._host.connecting.addressed(reference)
            with self._host.reading() as reader:
                return {"streams": reader.streams(f"{selection.connector}/{selection.instance}")}

        return json_answer(asked.cut(await asyncio.to_thread(streams), "streams"))

    async def syncs(self, request: Request) -> Response:
        """List runs, newest first."""
        asked = Asked(request, ["instance", "status"])
        given = asked.given
        if given.get("status", "running") not in ("running", *get_args(Status)):
            raise refuse("invalid_input", "There is no run of this status.", param="status")

        def runs() -> dict[str, Any]:
            with self._host.reading() as reader:
                return reader.runs(given.get("instance"), given.get("status"), asked.limit, asked.behind(str))

        page = await asyncio.to_thread(runs)
        return json_answer(asked.page(page, page.pop("next_cursor", None)))

    async def sync(self, request: Request) -> Response:
        """Show one run, while it is under way and after it ended."""
        query_of(request)

        def run() -> dict[str, Any]:
            with self._host.reading() as reader:
                return reader.run(request.path_params["id"])

        return json_answer(await asyncio.to_thread(run))

    # Changing.

    async def refresh(self, request: Request) -> Response:
        """Start to collect from an account, and say which run that is; it goes on by itself."""
        await document_of(request, Nothing)
        selection = await self._acted_on(request)
        run_id = await self._syncs.start(await asyncio.to_thread(self._host.integrating.refreshed, selection))
        return json_answer({"sync_id": run_id}, 202, {"Location": f"/v1/syncs/{run_id}"})

    async def configure(self, request: Request) -> Response:
        """Change settings at a service, all or none."""
        asked = await document_of(request, _Settings)
        texts = [_setting(name, value) for name, value in asked.options.items()]
        selection = await self._acted_on(request)
        return json_answer(await self._host.integrating.configure(selection, texts))

    async def disconnect(self, request: Request) -> Response:
        """Disconnect an account."""
        await document_of(request, Nothing)
        selection = await self._acted_on(request, may_be_gone=True)
        return json_answer(await self._host.integrating.disconnect(selection))

    async def _acted_on(self, request: Request, *, may_be_gone: bool = False) -> Selection:
        """Return the instance of the connection that the path names, and that no other one took the place of."""
        find = self._host.connecting.acted_on
        return await asyncio.to_thread(find, request.path_params["id"], may_be_gone=may_be_gone)


def _setting(name: str, value: Any) -> str:
    """Write a setting as it is typed."""
    if "=" in name:
        raise refuse("invalid_options", "There is no option of this name.")
    return f"{name}={value if isinstance(value, str) else msgspec.json.encode(value).decode()}"
