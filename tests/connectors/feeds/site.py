"""A web site with feeds: pages that change, validators that are true, and all the answers that a site may give."""

import gzip
import hashlib
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class Page:
    """What is at a path. `validated` says by which headers it can be asked for conditionally."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    validated: bool = True
    packed: bool = False
    raw: bytes | None = None
    hangs: bool = False
    drips: bytes = b""

    @property
    def etag(self) -> str:
        """A mark of the content."""
        return f'"{hashlib.sha256(self.body).hexdigest()[:12]}"'


class Site:
    """Pages by path, and every request that came."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.requests: list[tuple[str, dict[str, str], int, int]] = []
        self.closing = threading.Event()
        self.port, self.scheme = 0, "http"

    def put(self, path: str, body: str | bytes = b"", **more: Any) -> str:
        """Set what is at a path, and return its address."""
        self.pages[path] = Page(body.encode() if isinstance(body, str) else body, **more)
        return self.url(path)

    def url(self, path: str) -> str:
        """Return the address of a path."""
        return f"{self.scheme}://127.0.0.1:{self.port}{path}"

    @property
    def statuses(self) -> list[int]:
        """What was answered, in order."""
        return [status for _, _, status, _ in self.requests]

    @property
    def sent_bytes(self) -> int:
        """How many bytes of bodies were sent in all."""
        return sum(size for _, _, _, size in self.requests)


class _Handler(BaseHTTPRequestHandler):
    server: Any

    def do_GET(self) -> None:
        site: Site = self.server.site
        page = site.pages.get(self.path, Page(status=404))
        if page.hangs:
            site.closing.wait(60)
            return
        if page.drips:
            self._drip(site, page.drips)
            return
        if page.raw is not None:
            self.wfile.write(page.raw)
            return
        status, body = page.status, page.body
        if status == 200 and page.validated and self.headers.get("If-None-Match") == page.etag:
            status, body = 304, b""
        if page.packed and body:
            body = gzip.compress(body)
        site.requests.append((self.path, dict(self.headers), status, len(body)))
        self.send_response(status)
        for name, value in page.headers.items():
            self.send_header(name, value)
        if page.validated:
            self.send_header("ETag", page.etag)
        if page.packed:
            self.send_header("Content-Encoding", "gzip")
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _drip(self, site: Site, begin: bytes) -> None:
        """Say a byte every tenth of a second, for as long as it is taken."""
        with suppress(OSError):
            self.wfile.write(begin)
            while not site.closing.wait(0.1):
                self.wfile.write(b"x")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def site(certified: Path | None = None) -> Iterator[Site]:
    """Run a site for the block; over https where a folder holds its certificate."""
    ours = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.site = ours  # type: ignore[attr-defined]
    server.daemon_threads = True
    ours.port = server.server_address[1]
    if certified is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certified / "server.pem", certified / "server.key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        ours.scheme = "https"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield ours
    finally:
        ours.closing.set()
        server.shutdown()
        server.server_close()
