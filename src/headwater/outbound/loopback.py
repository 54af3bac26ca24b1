"""Where a browser comes back to after consent: a listener on the loopback address, for one answer (RFC 8252).

It lives as long as one sign-in, on a port that the system chooses. Whoever is on this machine can send something there,
and so can a page in the browser: only a request for `/` with the `state` that the sign-in began with is its answer, and
no other ends it. A request is read to the end of its head and no further, and what it holds is shown nowhere.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final, Self
from urllib.parse import parse_qsl, urlsplit

from headwater import limits
from headwater.secret import Secret

_PAGE: Final = "<!doctype html><meta charset=utf-8><title>Headwater</title><p>Thank you. You can close this page."
_OTHER: Final = "<!doctype html><meta charset=utf-8><title>Headwater</title><p>This is not what Headwater waits for."
_ANSWERS: Final = {200: ("OK", _PAGE), 400: ("Bad Request", _OTHER), 404: ("Not Found", "")}


class Loopback:
    """One listener. `redirect_uri` is exactly what the provider is told."""

    def __init__(self) -> None:
        self.redirect_uri = ""
        self._state: Secret | None = None
        self._came: asyncio.Future[Mapping[str, Secret]] = asyncio.get_running_loop().create_future()
        self._serving: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @classmethod
    @asynccontextmanager
    async def listening(cls) -> AsyncIterator[Self]:
        """Listen until the end of the context."""
        loopback = cls()
        server = await asyncio.start_server(
            loopback._connected, "127.0.0.1", 0, limit=limits.LOOPBACK_HEAD_BYTES, backlog=limits.LOOPBACK_CONNECTIONS
        )
        loopback.redirect_uri = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        try:
            yield loopback
        finally:
            server.close()
            await loopback._hang_up()

    async def parameters(self, state: Secret) -> Mapping[str, Secret]:
        """Return the parameters of the redirect: the first whole request for `/` with this `state` decides."""
        self._state, self._came = state, asyncio.get_running_loop().create_future()
        return await self._came

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._serving) >= limits.LOOPBACK_CONNECTIONS:
            writer.transport.abort()
            return
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._serving[task] = writer
        task.add_done_callback(self._serving.pop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError):
            status, found = await self._judged(reader)
            # The page is sent before the sign-in goes on: the listener ends with it.
            await _answer(writer, status)
            if found is not None and not self._came.done():
                self._came.set_result(found)
        writer.close()

    async def _hang_up(self) -> None:
        for writer in self._serving.values():
            writer.transport.abort()
        if self._serving:
            await asyncio.wait(self._serving)

    async def _judged(self, reader: asyncio.StreamReader) -> tuple[int, Mapping[str, Secret] | None]:
        try:
            async with asyncio.timeout(limits.LOOPBACK_IDLE_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            target = _target(head)
            if urlsplit(target).path != "/":
                return 404, None
            pairs = parse_qsl(urlsplit(target).query, strict_parsing=True, max_num_fields=32)
        except (ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return 400, None
        found = {name: Secret(value) for name, value in pairs}
        is_awaited = len(found) == len(pairs) and self._state is not None and found.get("state") == self._state
        return (200, found) if is_awaited else (400, None)


def _target(head: bytes) -> str:
    """Return the target of a GET; raise `ValueError` for anything else."""
    method, target, version = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
    if method != "GET" or not version.startswith("HTTP/1.") or not target.startswith("/"):
        raise ValueError
    return target


async def _answer(writer: asyncio.StreamWriter, status: int) -> None:
    reason, page = _ANSWERS[status]
    headers = "Content-Type: text/html; charset=utf-8\r\nReferrer-Policy: no-referrer\r\nConnection: close"
    writer.write(
        f"HTTP/1.1 {status} {reason}\r\n{headers}\r\nContent-Length: {len(page)}\r\n\r\n{page}".encode("ascii")
    )
    async with asyncio.timeout(limits.LOOPBACK_IDLE_SECONDS):
        await writer.drain()
