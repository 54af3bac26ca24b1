"""The demo's provider: a small message service on loopback, always the same archive.

    python provider.py --round N [--port 0] [--delay-ms 50]

It prints one JSON line with its address, and ends when its stdin does or on SIGTERM. Each round adds twelve messages,
edits five and deletes one. In round 0 two attachments answer 503, and one is always pending.

    GET /v1/people
    GET /v1/messages?limit=50&updated_since=TIME&after=CURSOR   by last change; `next` is null on the last page
    GET /v1/attachments/ID and /v1/attachments/ID/content
"""

import argparse
import json
import os
import signal
import sys
import threading
from bisect import bisect_left, bisect_right
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from time import sleep
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from headwater.connectors.demo import board
else:
    import board

FAILING: Final = ("att_0407", "att_1259")
PENDING: Final = "att_0803"
PAGE_MAX: Final = 200
RETRY_AFTER_SECONDS: Final = 20


class Archive:
    """The service's data in one round, and what it answers."""

    def __init__(self, rounds: int) -> None:
        self._broken = rounds == 0
        self._messages = sorted(board.history(rounds), key=board.position)
        self._positions = [board.position(message) for message in self._messages]
        self._carriers = {name: message for message in self._messages for name in message.get("attachment_ids", ())}

    def page(self, query: dict[str, str]) -> dict[str, Any]:
        """Return the messages from a time on and after a cursor, or raise `ValueError` for what is none.

        `cursor` is the place of the page's last message; it stays valid after the last page, for the next time.
        """
        limit = max(1, min(int(query.get("limit", "50")), PAGE_MAX))
        first, cursor = 0, query.get("after") or None
        if since := query.get("updated_since"):
            moment = datetime.fromisoformat(since)
            if moment.tzinfo is None:
                raise ValueError("a time needs its offset")
            first = bisect_left(self._positions, (board.stamp(moment), ""))
        if cursor is not None:
            updated_at, key = cursor.split("~")
            first = max(first, bisect_right(self._positions, (updated_at, key)))
        shown = self._messages[first : first + limit]
        remaining = len(self._messages) - first
        cursor = "~".join(board.position(shown[-1])) if shown else cursor
        following = cursor if remaining > limit else None
        return {"messages": shown, "next": following, "cursor": cursor, "remaining": remaining}

    def attachment(self, name: str) -> tuple[int, dict[str, Any]]:
        """Return an attachment's status and description."""
        if self._broken and name in FAILING:
            return 503, {"error": "temporarily_unavailable"}
        if self._broken and name == PENDING:
            return 200, {"pending": True}
        if name not in self._carriers:
            return 404, {"error": "not_found"}
        carrier = self._carriers[name]
        file, kind, content = board.attachment(name)
        described = {"filename": file, "mime_type": kind, "size_bytes": len(content), "created_at": carrier["sent_at"]}
        return 200, {"id": name, "message_id": carrier["id"], **described}


class Answering(BaseHTTPRequestHandler):
    """One connection, kept open for many requests."""

    protocol_version = "HTTP/1.1"
    wbufsize = 64 * 1024  # one write an answer, or each waits for the other side's delayed acknowledgement
    disable_nagle_algorithm = True
    archive: Archive
    delay_seconds: float

    def do_GET(self) -> None:
        """Answer."""
        url = urlsplit(self.path)
        match url.path.strip("/").split("/"):
            case ["v1", "people"]:
                self._json(200, {"people": board.people()})
            case ["v1", "messages"]:
                self._page({name: values[-1] for name, values in parse_qs(url.query).items()})
            case ["v1", "attachments", name]:
                self._json(*self.archive.attachment(name))
            case ["v1", "attachments", name, "content"]:
                self._content(name)
            case _:
                self._json(404, {"error": "not_found"})

    def _page(self, query: dict[str, str]) -> None:
        sleep(self.delay_seconds)
        try:
            page = self.archive.page(query)
        except ValueError:
            self._json(400, {"error": "invalid_query"})
        else:
            self._json(200, page)

    def _content(self, name: str) -> None:
        status, described = self.archive.attachment(name)
        if status != 200:
            self._json(status, described)
        elif "id" not in described:
            self._json(404, {"error": "not_found"})
        else:
            self._send(200, described["mime_type"], board.attachment(name)[2])

    def _json(self, status: int, value: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(value).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status == 503:
            self.send_header("Retry-After", str(RETRY_AFTER_SECONDS))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that http.server gives it
        """Say nothing."""


class Service(ThreadingHTTPServer):
    """The server."""

    def server_bind(self) -> None:
        """Bind, without asking a name server what this machine is called."""
        TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report a fault of ours; a client that went away is none."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def _end_with_stdin() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


def main() -> None:
    """Serve until stdin ends."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--round", type=int, default=0)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay-ms", type=float, default=50)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    Answering.archive = Archive(options.round)
    Answering.delay_seconds = options.delay_ms / 1000
    server = Service(("127.0.0.1", options.port), Answering)
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    sys.stdout.write(json.dumps({"base_url": f"http://127.0.0.1:{server.server_address[1]}"}) + "\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
