"""Listening on the loopback address, with a bound on everything that a client may take."""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from headwater import limits
from headwater.errors import refuse

ADDRESS = "127.0.0.1"


def listen(port: int) -> socket.socket:
    """Return a socket on the loopback address; port 0 picks a free one. Raise `address_in_use` where it is taken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((ADDRESS, port))
        listener.listen(limits.SERVER_CONNECTIONS)
    except OSError as error:
        listener.close()
        message = "The port cannot be listened on; another program may have it."
        raise refuse("address_in_use", message, command="headwater serve --port 0") from error
    return listener


async def serve(app: ASGIApp, listener: socket.socket, listening: Callable[[], None]) -> int:
    """Answer until SIGINT or SIGTERM, and return which; `listening` is called once requests are answered."""
    logging.getLogger("uvicorn").addHandler(logging.NullHandler())  # it would log tracebacks
    logging.getLogger("uvicorn").propagate = False
    config = uvicorn.Config(
        app,
        http=_Bounded,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=limits.SERVER_HEAD_BYTES,
        timeout_keep_alive=int(limits.SERVER_ASK_SECONDS),
        timeout_graceful_shutdown=int(limits.SERVER_STOP_SECONDS),
    )
    server = _Server(config)
    stopped_by: list[int] = []

    def stop(number: int) -> None:
        stopped_by.append(number)
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    listening()  # what connects from here on waits in the listener's queue
    await server.serve([listener])
    return stopped_by[0]


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to `serve`."""
        yield


class _Bounded(H11Protocol):
    """One connection, which is closed where its client lets the server wait."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > limits.SERVER_CONNECTIONS:
            transport.abort()
        self._expect(limits.SERVER_ASK_SECONDS, self._asked)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect(limits.SERVER_ASK_SECONDS, self._asked)

    def _expect(self, seconds: float, then: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, then)

    def _asked(self) -> None:
        """Close a connection that has not asked anything, and give an answer that is under way its time."""
        if self.cycle is None or self.cycle.response_complete:
            self.transport.abort()
        else:
            self._expect(limits.SERVER_ANSWER_SECONDS, self.transport.abort)
