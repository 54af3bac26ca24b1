"""`/v1/state/{connector_id}`: the cursors of a connector's instance, the owner's or those of a grant."""

import asyncio
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

import jiter
import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headwater.errors import HeadwaterError
from headwater.host import Host
from headwater.joining.cursors import StateAddress
from headwater.server.answers import Refusal, json_answer
from headwater.server.asking import body_of, query_of
from headwater.store.sqlite.cursors import StreamState

PREFIX = "/v1/state/"
_PARAMETERS = {"grant_id", "connector_instance_id"}


class _Put(msgspec.Struct, forbid_unknown_fields=True):
    """A body: cursors as they came, by stream."""

    state: dict[str, msgspec.Raw]


class StateRoutes:
    """Reads and puts cursors. Puts wait for one another, so that none finds the instance's lock taken by a put."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._putting = asyncio.Lock()

    async def answer(self, request: Request) -> Response:
        """Answer with the cursors at an address; those of a PUT are merged in before, by stream."""
        address = _address(request)
        cursors = None if request.method != "PUT" else _cursors(await body_of(request))
        try:
            return _answer(address, await self._asked(address, cursors))
        except HeadwaterError as error:
            if error.code != "invalid_input":
                raise
            raise Refusal(400, "invalid_request", error.message, error.data.get("param")) from error

    async def _asked(self, address: StateAddress, cursors: Mapping[str, str] | None) -> StreamState:
        if cursors is None:
            return await asyncio.to_thread(self._host.state_of, address)
        async with self._putting:
            return await asyncio.to_thread(self._host.put_state, address, cursors)


def _answer(address: StateAddress, state: StreamState) -> Response:
    cursors = {stream: msgspec.Raw(text.encode()) for stream, text in state.cursors.items()}
    named = {"connector_id": address.connector_id, "grant_id": address.grant_id}
    return json_answer({"object": "stream_state", **named, "state": cursors, "updated_at": state.updated_at})


def _address(request: Request) -> StateAddress:
    """Read the path and the query exactly: a parameter that is misspelt must not address the owner's own cursors."""
    raw_path = request.scope["raw_path"].decode("ascii")
    try:
        connector_id = unquote_to_bytes(raw_path.removeprefix(PREFIX)).decode()
    except UnicodeDecodeError as error:
        raise Refusal(400, "invalid_request", "It is not UTF-8.", "connector_id") from error
    given = query_of(request, _PARAMETERS)
    return StateAddress(connector_id, given.get("connector_instance_id"), given.get("grant_id"))


def _cursors(body: bytes) -> dict[str, str]:
    """Return the text of each cursor; a body with two readings is none."""
    try:
        jiter.from_json(body, catch_duplicate_keys=True, cache_mode="keys")
        put = msgspec.json.decode(body, type=_Put)
        return {stream: bytes(cursor).decode() for stream, cursor in put.state.items()}
    except (ValueError, RecursionError) as error:
        message = 'The body must be {"state":{stream: cursor}}, JSON that has one reading.'
        raise Refusal(400, "invalid_request", message, "state") from error
