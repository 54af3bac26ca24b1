"""A relay in front of a server: it notes each request, may ask for something else, or answer in its place."""

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_TIMEOUT_SECONDS = 60

# Answers in the server's place with a status and a JSON value (or bytes); None lets the request through.
Meddler = Callable[[str], tuple[int, Any] | None]


class Relay:
    """The relay that runs."""

    def __init__(self, server: str) -> None:
        self.server = urlsplit(server)
        self.seen: list[str] = []
        self.meddle: Meddler = lambda target: None
        self.rewrite: Callable[[str], str] = lambda target: target
        self.base_url = ""

    def paths(self, part: str = "") -> list[str]:
        """Return the requests so far whose path has a part in it."""
        return [target for target in self.seen if part in target.partition("?")[0]]


class _Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 64 * 1024
    disable_nagle_algorithm = True
    relay: Relay

    def do_GET(self) -> None:
        self.relay.seen.append(self.path)
        answer = self.relay.meddle(self.path)
        if answer is None:
            answer = self._pass_on()
        status, said = answer
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 - the name that http.server gives it

    def _pass_on(self) -> tuple[int, bytes]:
        address = self.relay.server
        link = http.client.HTTPConnection(address.hostname or "", address.port, timeout=_TIMEOUT_SECONDS)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        kept = {name: self.headers[name] for name in ("Authorization", "Content-Type") if name in self.headers}
        link.request(self.command, self.relay.rewrite(self.path), body or None, kept)
        response = link.getresponse()
        answer = response.status, response.read()
        link.close()
        return answer

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class _Listening(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error."""


@contextmanager
def relay_to(server: str) -> Iterator[Relay]:
    """Run a relay on a port of its own."""
    relay = Relay(server)
    passing = type("Passing", (_Passing,), {"relay": relay})
    with _Listening(("127.0.0.1", 0), passing) as listening:
        relay.base_url = f"http://127.0.0.1:{listening.server_address[1]}"
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield relay
        finally:
            listening.shutdown()
