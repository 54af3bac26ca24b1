"""The routes of signing in by steps: begun with fields, gone on with an answer, and connected at the end."""

import asyncio
import os
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headwater import clock
from headwater.configuration.selecting import Selection, target
from headwater.connect.flows import Pending
from headwater.errors import refuse
from headwater.host import Host
from headwater.joining.signing_in import Actor, Wanted
from headwater.secret import Secret
from headwater.server.answers import json_answer
from headwater.server.asking import document_of

_LOOPBACK: Final = re.compile(r"http://(?:127\.0\.0\.1|\[::1\]|localhost):\d{1,5}/[!-~]*")


class _Begin(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a sign-in begins with. `redirect_uri` is where a browser comes back: an address of this machine."""

    fields: dict[str, str] = {}
    redirect_uri: str | None = None


class _GoOn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a sign-in goes on with: its state as it was given, and what the challenge asked for."""

    auth_state: str
    answer: dict[str, str] = {}


class _BeginNew(_Begin, kw_only=True):
    instance: str


class _GoOnNew(_GoOn, kw_only=True):
    instance: str


class _BeginAgain(_Begin, kw_only=True):
    expected_revision: str


class _GoOnAgain(_GoOn, kw_only=True):
    expected_revision: str


class SignInRoutes:
    """Begins and goes on, for a new connection of an instance or for another credential of one."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def start(self, request: Request) -> Response:
        """Begin to connect an instance."""
        asked = await document_of(request, _BeginNew)
        return await self._begin(request, asked, await self._new(request, asked.instance))

    async def complete(self, request: Request) -> Response:
        """Go on with that."""
        asked = await document_of(request, _GoOnNew)
        return await self._go_on(request, asked, await self._new(request, asked.instance))

    async def restart(self, request: Request) -> Response:
        """Begin to replace the credential of a connection."""
        asked = await document_of(request, _BeginAgain)
        return await self._begin(request, asked, await self._renewal(request, asked.expected_revision))

    async def recomplete(self, request: Request) -> Response:
        """Go on with that."""
        asked = await document_of(request, _GoOnAgain)
        return await self._go_on(request, asked, await self._renewal(request, asked.expected_revision))

    async def _new(self, request: Request, instance: str) -> Wanted:
        row = await asyncio.to_thread(self._host.integrating.named, request.path_params["key"])
        method = request.path_params["method"]
        if method not in [one["key"] for one in row["methods"]]:
            raise refuse("not_found", "The integration has no such way to sign in.")
        return Wanted(target(f"{row['connector']}/{instance}"), method)

    async def _renewal(self, request: Request, revision: str) -> Wanted:
        reference = request.path_params["id"]
        selection: Selection = await asyncio.to_thread(self._host.connecting.addressed, reference)
        return Wanted(selection, request.path_params["method"], reference, revision)

    async def _begin(self, request: Request, asked: _Begin, wanted: Wanted) -> Response:
        if asked.redirect_uri is not None and not _LOOPBACK.fullmatch(asked.redirect_uri):
            raise refuse("invalid_input", "A browser comes back to an address of this machine: http://127.0.0.1:PORT/…")
        fields = _secrets(asked.fields)
        got = await self._host.signing_in.start(wanted, fields, _actor(request), redirect_uri=asked.redirect_uri)
        return _told(got)

    async def _go_on(self, request: Request, asked: _GoOn, wanted: Wanted) -> Response:
        state, answer = Secret(asked.auth_state), _secrets(asked.answer)
        got = await self._host.signing_in.complete(wanted, state, answer, _actor(request))
        return json_answer({"auth_state": asked.auth_state}, 202) if got is None else _told(got)


def _actor(request: Request) -> Actor:
    return Actor(str(os.geteuid()), address=request.client.host if request.client is not None else "")


def _secrets(entered: Mapping[str, str]) -> dict[str, Secret]:
    return {name: Secret(text) for name, text in entered.items()}


def _told(got: Pending | dict[str, Any]) -> Response:
    """Answer with the connection, as the command line does, or with what has to be done first."""
    if not isinstance(got, Pending):
        return json_answer(got)
    shown = msgspec.to_builtins(got.challenge)
    shown["fields"] = [{name: row[name] for name in ("name", "label", "type", "required")} for row in shown["fields"]]
    moment = got.challenge.expires_at
    shown["expires_at"] = None if moment is None else clock.text(moment)
    del shown["upstream"]
    return json_answer({"auth_state": got.auth_state.text(), "challenge": shown}, 202)
