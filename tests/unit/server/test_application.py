"""The application in this process: what nobody foresaw, and what came over no network."""

import asyncio
import json
from pathlib import Path

import pytest

from headwater.host import Host
from headwater.server.app import application
from headwater.settings import Settings

TOKEN = "t" * 43


def ask(settings, path):
    """Send one GET, and return the messages of the answer. What the application raises after them is raised."""
    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {TOKEN}".encode())]
    asked = {"method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": headers}
    scope = {"type": "http", "http_version": "1.1", "scheme": "http", "root_path": "", **asked}
    sent = []

    async def receive():
        return {"type": "http.request"}

    async def send(message):
        sent.append(message)

    async def asking():
        await application(Host(settings), TOKEN)(scope, receive, send)

    try:
        asyncio.run(asking())
    except ValueError as error:
        return sent, error
    return sent, None


def test_of_what_nobody_foresaw_nothing_is_told(tmp_path):
    """The caller learns that it failed; no word of the exception, and still the headers of every answer."""
    (start, body), raised = ask(Settings(Path("secret\0/config.toml"), tmp_path), "/v1/state/x")
    assert "null byte" in str(raised)
    assert start["status"] == 500
    error = json.loads(body["body"])["error"]
    assert (error["type"], error["code"]) == ("api_error", "internal_error")
    assert "null" not in body["body"].decode()
    assert dict(start["headers"])[b"cache-control"] == b"no-store"
    assert dict(start["headers"])[b"request-id"].decode() == error["request_id"]


@pytest.mark.parametrize("path", ["/v1/state", "/v1/state/", "/", "/v1/states/x"])
def test_a_path_without_a_connector_is_not_found(tmp_path, path):
    """And is not redirected to one that there is."""
    settings = Settings(tmp_path / "config.toml", tmp_path)
    with Host(settings).serving():
        (start, _), _ = ask(settings, path)
    assert start["status"] == 404
