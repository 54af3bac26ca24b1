"""The service that the example signs in to, as small as it can be: one account, three lists, orders.

python provider.py [PORT]
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "token-of-ada"  # noqa: S105 - of an account that nobody has
PAGE = 2
OFFERED: dict[str, list[Any]] = {
    "groups": [{"id": "g1", "name": "Town hall"}, {"id": "g2", "name": "Jazz club"}],
    "events": [
        {"id": f"e{number}", "group": "g2", "name": f"Concert {number}", "starts_at": f"2027-05-0{number}T19:30:00Z"}
        for number in range(1, 6)
    ],
    "tickets": [{"id": "t1", "event": "e1", "price_cents": 2500, "left": 80}],
}


class Acme(ThreadingHTTPServer):
    """The service. `lists` is what it offers, `orders` what was bought."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Desk)
        self.lists = {name: list(items) for name, items in OFFERED.items()}
        self.orders: dict[str, Any] = {}
        self.tokens = {TOKEN}

    @property
    def endpoint(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}"


class Desk(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Acme

    def do_GET(self) -> None:
        """Tell of the account, a page of a list, or an order."""
        parts = urlsplit(self.path)
        if not self.knows():
            return
        name, _, reference = parts.path[1:].partition("/")
        if name == "me":
            self.answer(200, {"id": "ada", "name": "Ada"})
        elif name in self.server.lists:
            self.answer(200, self.page(name, parse_qs(parts.query).get("cursor", ["0"])[0]))
        else:
            order = self.server.orders.get(reference)
            self.answer(404 if order is None else 200, order)

    def do_POST(self) -> None:
        """Say a price, take an order, or forget the token."""
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if not self.knows():
            return
        if self.path == "/sign-out":
            self.server.tokens.clear()
            self.answer(200, {})
        elif self.path == "/quotes":
            (ticket,) = [one for one in self.server.lists["tickets"] if one["id"] == body["ticket"]]
            self.answer(200, {"total_cents": ticket["price_cents"] * body["count"], "holds_seconds": 300})
        else:
            self.server.orders[body["reference"]] = {**body, "status": "fulfilled"}
            self.answer(201, self.server.orders[body["reference"]])

    def page(self, name: str, cursor: str) -> dict[str, Any]:
        """Return a page of a list, and where the next one begins."""
        items, begin = self.server.lists[name], int(cursor)
        end = begin + PAGE
        return {"items": items[begin:end], "next": str(end) if end < len(items) else None}

    def knows(self) -> bool:
        """Whether the request has the token; it is answered where it has not."""
        known = self.headers.get("authorization", "").removeprefix("Bearer ") in self.server.tokens
        if not known:
            self.answer(401, {})
        return known

    def answer(self, status: int, body: Any) -> None:
        """Write an answer."""
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


if __name__ == "__main__":
    with Acme(int(sys.argv[1]) if sys.argv[1:] else 8300) as service:
        service.serve_forever()
