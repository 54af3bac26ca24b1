"""The demo's provider: a small message service on loopback, always the same archive.

    python provider.py --round N [--port 0] [--delay-ms 50]

It prints one JSON line with its address, and ends when its stdin does. Each round adds twelve messages, edits
five and deletes one. In round 0 two attachments answer 503, and one is always pending.
"""

import argparse
import json
import os
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep
from typing import Any
from urllib.parse import parse_qs, urlsplit

MESSAGES = 2_196
ADDED, EDITED = 12, 5
ATTACHMENT_EVERY = 12
FAILING = ("att_0407", "att_1259")
PENDING = "att_0803"
PAGE_MAX = 200

_GIVEN = ["Ada", "Bruno", "Chidi", "Dana", "Emre", "Farah", "Goran", "Hana", "Ines", "Jonas"]
_FAMILY = ["Okafor", "Lindqvist", "Moreau", "Tanaka"]
_THINGS = ["harbour", "lantern", "orchard", "ledger", "bridge", "garden", "archive", "letter", "parcel", "season"]
_DOINGS = ["opened", "repaired", "painted", "counted", "moved", "signed", "carried", "found", "measured", "planted"]
_PLACES = ["by the river", "behind the station", "at the market", "on the hill", "near the old mill"]
_START = datetime(2025, 1, 6, 8, 0, tzinfo=UTC)


def stamp(moment: datetime) -> str:
    """Write a time as RFC 3339."""
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def people() -> list[dict[str, Any]]:
    """Return everybody who writes."""
    names = [f"{given} {family}" for family in _FAMILY for given in _GIVEN]
    mails = [name.lower().replace(" ", ".") + "@archive.example" for name in names]
    return [
        {"id": f"p{index:02d}", "name": name, "email": mail}
        for index, (name, mail) in enumerate(zip(names, mails, strict=True))
    ]


def message(index: int) -> dict[str, Any]:
    """Return message `index` as it was first sent."""
    sent = _START + timedelta(minutes=index * 97)
    thing, doing = _THINGS[index * 7 % 10], _DOINGS[index * 3 % 10]
    attached = [f"att_{index:04d}"] if index % ATTACHMENT_EVERY == ATTACHMENT_EVERY - 1 else []
    return {
        "id": f"msg_{index:04d}",
        "sent_at": stamp(sent),
        "updated_at": stamp(sent),
        "sender_id": f"p{index * 11 % 40:02d}",
        "subject": f"The {thing}, {doing}",
        "body": f"We {doing} the {thing} {_PLACES[index % 5]}. {index % 9 + 1} of us were there.",
        "attachment_ids": attached,
    }


def archive(rounds: int) -> list[dict[str, Any]]:
    """Return every message after some rounds, in the order of their last change. Deleted ones stay as tombstones."""
    messages = [message(index) for index in range(MESSAGES + ADDED * rounds)]
    changed = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(1, rounds + 1):
        moment = stamp(changed + timedelta(days=number))
        for added in messages[MESSAGES + ADDED * (number - 1) : MESSAGES + ADDED * number]:
            added["updated_at"] = moment
        for step in range(EDITED):
            edited = messages[(number * 173 + step * 31) % MESSAGES]
            edited["body"] += f" (Corrected, {number}.)"
            edited["updated_at"] = moment
        gone = messages[(number * 211 + 5) % MESSAGES]
        gone["deleted"], gone["updated_at"] = True, moment
    return sorted(messages, key=_position)


def _position(item: dict[str, Any]) -> tuple[str, str]:
    return item["updated_at"], item["id"]


class Archive:
    """The service's data in one round, and what it answers."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.messages = archive(rounds)

    def page(self, query: dict[str, list[str]]) -> dict[str, Any]:
        """Return the messages after a position `updated_at~id`, oldest change first."""
        after = tuple(query.get("after", [""])[0].split("~")) if query.get("after", [""])[0] else ("", "")
        limit = min(int(query.get("limit", ["50"])[0]), PAGE_MAX)
        left = [item for item in self.messages if _position(item) > after]
        shown = left[:limit]
        following = "~".join(_position(shown[-1])) if len(left) > limit else None
        return {"messages": shown, "next": following, "total": len(left)}

    def attachment(self, name: str) -> tuple[int, dict[str, Any]]:
        """Return an attachment's status and description."""
        if self.rounds == 0 and name in FAILING:
            return 503, {"error": "temporarily unavailable"}
        if self.rounds == 0 and name == PENDING:
            return 200, {"pending": True}
        index = int(name.removeprefix("att_")) if name.removeprefix("att_").isdigit() else -1
        if not 0 <= index < len(self.messages) or index % ATTACHMENT_EVERY != ATTACHMENT_EVERY - 1:
            return 404, {"error": "no such attachment"}
        return 200, {"id": name, "message_id": f"msg_{index:04d}", "filename": f"{_THINGS[index * 7 % 10]}.svg"}


def picture(name: str) -> bytes:
    """Return an attachment's bytes: a small drawing of its own."""
    hue, size = int(name[-4:]) * 37 % 360, int(name[-2:]) % 40 + 20
    circle = f'<circle cx="60" cy="60" r="{size}" fill="hsl({hue} 60% 55%)"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 120"><title>{name}</title>{circle}</svg>'.encode()


class Answering(BaseHTTPRequestHandler):
    """One request."""

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
                self._json(200, {"people": people()})
            case ["v1", "messages"]:
                sleep(self.delay_seconds)
                self._json(200, self.archive.page(parse_qs(url.query)))
            case ["v1", "attachments", name]:
                self._json(*self.archive.attachment(name))
            case ["v1", "attachments", name, "content"] if self.archive.attachment(name)[0] == 200:
                self._send(200, "image/svg+xml", picture(name))
            case _:
                self._json(404, {"error": "no such thing"})

    def _json(self, status: int, value: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(value).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status == 503:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that http.server gives it
        """Say nothing."""


def _end_with_stdin() -> Iterator[None]:
    while sys.stdin.buffer.read(4096):
        yield
    os._exit(0)


def main() -> None:
    """Serve until stdin ends."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--round", type=int, default=0)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay-ms", type=float, default=50)
    options = parser.parse_args()
    Answering.archive = Archive(options.round)
    Answering.delay_seconds = options.delay_ms / 1000
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Answering)
    threading.Thread(target=lambda: list(_end_with_stdin()), daemon=True).start()
    sys.stdout.write(json.dumps({"base_url": f"http://127.0.0.1:{server.server_port}"}) + "\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
