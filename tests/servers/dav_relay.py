"""A relay in front of a WebDAV server: it notes what is asked, and may answer itself or change what is said."""

import http.client
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

_TIMEOUT_SECONDS = 60
_PASSED_ON = ("Authorization", "Depth", "Content-Type")


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    body: str

    @property
    def kind(self) -> str:
        """The method, and what a REPORT is about: `sync-collection`, `calendar-multiget`."""
        word = self.body.partition("?>")[2].strip().lstrip("<").partition(" ")[0]
        return word if self.method == "REPORT" else self.method


class Relay:
    """The relay that runs. `instead` answers a request with a status and a body, or None; status 0 breaks it off.

    `changed` changes the body of the server's answer.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = ""
        self.asked: list[Asked] = []
        self.instead: Callable[[Asked], tuple[int, str] | None] = lambda _asked: None
        self.changed: Callable[[Asked, str], str] = lambda _asked, body: body

    @property
    def kinds(self) -> list[str]:
        """What was asked, in order."""
        return [asked.kind for asked in self.asked]


class _Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 64 * 1024
    disable_nagle_algorithm = True
    relay: Relay

    def do_PROPFIND(self) -> None:
        """Note the request and answer it."""
        asked = Asked(self.command, self.path, self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
        self.relay.asked.append(asked)
        instead = self.relay.instead(asked)
        status, body, location = (*instead, "") if instead is not None else self._passed_on(asked)
        if status == 0:
            self.close_connection = True
            return
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        content = (self.relay.changed(asked, body) if status == 207 else body).encode()
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_REPORT(self) -> None:
        """Likewise."""
        self.do_PROPFIND()

    def _passed_on(self, asked: Asked) -> tuple[int, str, str]:
        headers = {name: value for name in _PASSED_ON if (value := self.headers.get(name))}
        link = http.client.HTTPConnection("127.0.0.1", self.relay.port, timeout=_TIMEOUT_SECONDS)
        link.request(asked.method, asked.path, asked.body.encode(), headers)
        response = link.getresponse()
        answer = response.status, response.read().decode(), response.getheader("Location", "")
        link.close()
        return answer

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def relay_to(port: int, context: ssl.SSLContext | None = None) -> Iterator[Relay]:
    """Run a relay to a port of loopback, over TLS where a context is given."""
    relay = Relay(port)
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Passing", (_Passing,), {"relay": relay})) as listening:
        listening.daemon_threads = True
        if context is not None:
            listening.socket = context.wrap_socket(listening.socket, server_side=True)
        relay.url = f"{'http' if context is None else 'https'}://127.0.0.1:{listening.server_address[1]}"
        threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        try:
            yield relay
        finally:
            listening.shutdown()
