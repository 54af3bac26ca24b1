"""A provider over real HTTP that answers what a test says, and counts what it was asked."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl


@dataclass(frozen=True)
class Asked:
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    form: dict[str, str]
    body: bytes = b""


@dataclass
class Reply:
    """What is answered. `body` may be bytes, or anything that is JSON.

    `cut` answers half of it and hangs up, `dropped` hangs up without a word.
    """

    status: int = 200
    body: Any = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    dropped: bool = False


@dataclass
class Provider:
    """The provider that runs: `answer` may be changed at any time, and is asked for each request."""

    url: str
    answer: Callable[[Asked], Reply]
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def provider(
    answer: Callable[[Asked], Reply], context: ssl.SSLContext | None = None, *, keeps: bool = False
) -> Iterator[Provider]:
    """Run a provider on loopback, over TLS where a context is given. With `keeps`, its connections stay open."""

    class Serving(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1" if keeps else "HTTP/1.0"

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            sent = self.rfile.read(length)
            form = dict(parse_qsl(sent.decode(), keep_blank_values=True))
            headers = {name.lower(): text for name, text in self.headers.items()}
            asked = Asked(self.command, self.path, headers, form, sent)
            running.asked.append(asked)
            reply = running.answer(asked)
            if reply.dropped:
                self.close_connection = True
                return
            body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body) + (100 if reply.cut else 0)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def do_PUT(self) -> None:
            self.do_GET()

        def do_PATCH(self) -> None:
            self.do_GET()

        def do_DELETE(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Serving)
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "http" if context is None else "https"
    running = Provider(f"{scheme}://127.0.0.1:{server.server_address[1]}", answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()
