#!/usr/bin/env python3
"""Time `headwater invoke --walk` against a bare loop over the same pages, in turn, in one run.

    bench/walk.py [--pages 300] [--records 100] [--rounds 5]

The floor is one process that asks for page after page over one connection, decodes each, writes its records as lines and
notes each request in SQLite before it leaves and when it is over, with `synchronous=FULL`. Ours is the whole command: beside
that it reads the credential from a sealed file for each page, and looks whether it may still be asked. Only ratios mean
anything: medians over rounds of floor, ours, floor, ours.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qsl, urlsplit

TOKEN = "token-of-the-bench"
DEFINITION = """
format = "connectors-definition/1"
id = "bench"
base_url = "{url}"

[[auth.methods]]
key = "token"
label = "Token"
flow = "token"
scheme = "token"
fields = [{{ name = "token", label = "Token", type = "token", required = true }}]
identity = {{ source = "api", kind = "user", path = "/whoami", subject = "/id" }}

[operations.items]
description = "Items, a page at a time."
path = "/items"
params.cursor = {{}}

[operations.items.walk]
param = "cursor"
next = "/next"
records = "/items"
ends = [{{ name = "no_next", pointer = "/next", absent = true }}]
"""
FLOOR = (
    """
import sys, apsw, httpx2, msgspec
url, out, database = sys.argv[1:]
store = apsw.Connection(database)
for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "CREATE TABLE asked (over TEXT)"):
    list(store.execute(statement))
cursor, records = None, 0
with httpx2.Client(headers={"authorization": "Bearer " + "%s"}, trust_env=False) as client, open(out, "wb") as file:
    while True:
        store.execute("INSERT INTO asked (over) VALUES (NULL)")
        page = msgspec.json.decode(client.get(url + "/items", params={} if cursor is None else {"cursor": cursor}).content)
        file.write(b"".join(msgspec.json.encode(item) + b"\\n" for item in page["items"]))
        store.execute("UPDATE asked SET over = 'succeeded' WHERE over IS NULL")
        records += len(page["items"])
        cursor = page.get("next")
        if cursor is None:
            break
print(records)
"""
    % TOKEN
)


def serving(pages: int, records: int) -> ThreadingHTTPServer:
    """Serve the pages on loopback, over connections that stay open."""
    items = json.dumps([{"id": number, "name": f"item {number}", "text": "x" * 200} for number in range(records)])

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body leave together, or the second would wait for an answer to the first
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            page = int(dict(parse_qsl(parts.query)).get("cursor", "1"))
            further = f', "next": "{page + 1}"' if page < pages else ""
            body = '{"id": "me"}' if parts.path == "/whoami" else f'{{"items": {items}{further}}}'
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    return server


def headwater(place: Path, *words: str) -> list[str]:
    """Return a command line of a Headwater in a folder of its own."""
    where = ["--config", str(place / "config.toml"), "--state-dir", str(place / "state"), "--output", "json"]
    return [sys.executable, "-m", "headwater", *where, *words]


def connected(place: Path, url: str) -> None:
    """Configure a Headwater, and connect the instance that the pages are of."""
    os.umask(0o077)
    (place / "config.toml").write_text(f'format = "connectors-local/5"\nowner_uid = {os.geteuid()}\n')
    (place / "key").write_text("k" * 43)
    sealed = f'binding = "sealed_file"\nfile = "{place}/custody.sealed"\nkey_file = "{place}/key"\n'
    (place / "collect.toml").write_text(f'format = "headwater-collect/1"\n[custody]\n{sealed}')
    (place / "bench.toml").write_text(DEFINITION.format(url=url))
    (place / "entry.json").write_text(json.dumps({"token": TOKEN}))
    ask = headwater(place, "invoke", "--definition", str(place / "bench.toml"), "items", "--input-json", "{}")
    subprocess.run(ask, check=False, capture_output=True, start_new_session=True)  # recorded; nobody says yes
    connect = headwater(
        place, "connections", "connect", "bench/definition", "--credential-file", str(place / "entry.json")
    )
    subprocess.run(connect, check=True, capture_output=True)


def timed(words: list[str]) -> float:
    """Return the wall seconds of a command that has to succeed."""
    start = time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--records", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    server = serving(asked.pages, asked.records)
    url = f"http://127.0.0.1:{server.server_address[1]}"
    found: dict[str, list[float]] = {"floor": [], "ours": []}
    try:
        connected(place, url)
        walk = ["invoke", "bench", "items", "--walk", "--max-pages", "10000", "--input-json", "{}", "--out"]
        for number in range(asked.rounds):
            floor = [sys.executable, "-c", FLOOR, url, str(place / f"floor{number}"), str(place / f"floor{number}.db")]
            found["floor"].append(timed(floor))
            found["ours"].append(timed(headwater(place, *walk, str(place / f"ours{number}"))))
            if (place / f"floor{number}").read_bytes() != (place / f"ours{number}").read_bytes():
                sys.exit("the two wrote other records")
    finally:
        server.shutdown()
        shutil.rmtree(place)
    floor, ours = (statistics.median(found[name]) for name in ("floor", "ours"))
    each = 1000 * ours / asked.pages
    print(f"floor {floor:.2f} s, ours {ours:.2f} s: {floor / ours:.2f}; ours {each:.1f} ms a page of {asked.records}")


if __name__ == "__main__":
    main()
