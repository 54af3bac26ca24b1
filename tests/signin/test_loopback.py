"""The listener that a browser comes back to: one answer, and nothing else gets in."""

import asyncio
from contextlib import suppress

import pytest

from headwater import limits
from headwater.outbound.loopback import Loopback
from headwater.secret import Secret

pytestmark = pytest.mark.anyio


async def say(loopback: Loopback, text: bytes) -> bytes:
    port = int(loopback.redirect_uri.rstrip("/").rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    answer = await reader.read()
    writer.close()
    return answer


def get(target: bytes) -> bytes:
    return b"GET " + target + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.mark.clause("INT-194")
async def test_the_first_whole_request_decides():
    async with Loopback.listening() as loopback:
        answer = await say(loopback, get(b"/?code=sentinel%20code&state=s"))
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"sentinel" not in answer
        await say(loopback, get(b"/?code=later&state=s"))
        found = await loopback.parameters()
    assert found == {"code": Secret("sentinel code"), "state": Secret("s")}
    assert "sentinel" not in repr(found)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (get(b"/favicon.ico?code=x&state=s"), b"404"),
        (get(b"/callback?code=x"), b"404"),
        (get(b"/"), b"400"),
        (get(b"/?"), b"400"),
        (get(b"/?code=x&code=y"), b"400"),
        (get(b"/?code"), b"400"),
        (get(b"http://127.0.0.1/?code=x"), b"400"),
        (get(b"/?" + b"&".join(b"a%d=1" % number for number in range(40))), b"400"),
        (b"POST /?code=x HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /?code=x\r\n\r\n", b"400"),
        (b"GET  /?code=x HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /?code=\xff HTTP/1.1\r\n\r\n", b"400"),
        (b"\x16\x03\x01\r\n\r\n", b"400"),
        (b"GET /?code=x HTTP/1.1\r\nX: " + b"x" * limits.LOOPBACK_HEAD_BYTES + b"\r\n\r\n", b"400"),
    ],
)
async def test_anything_else_decides_nothing(text, status):
    async with Loopback.listening() as loopback:
        assert (await say(loopback, text)).split(b" ")[1] == status
        assert not loopback._came.done()
        await say(loopback, get(b"/?code=x"))
        assert await loopback.parameters() == {"code": Secret("x")}


async def test_those_that_say_nothing_take_a_bounded_room(monkeypatch):
    monkeypatch.setattr(limits, "LOOPBACK_CONNECTIONS", 4)
    async with Loopback.listening() as loopback:
        port = int(loopback.redirect_uri.rstrip("/").rpartition(":")[2])
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
        while len(loopback._serving) < 4:
            await asyncio.sleep(0)
        with suppress(ConnectionError):
            assert await say(loopback, get(b"/?code=x")) == b""
        for _, writer in silent:
            writer.close()
        while loopback._serving:
            await asyncio.sleep(0)
        assert (await say(loopback, get(b"/?code=x"))).split(b" ")[1] == b"200"


async def test_a_connection_that_is_open_does_not_keep_it_and_says_nothing(caplog):
    async with asyncio.timeout(1), Loopback.listening() as loopback:
        port = int(loopback.redirect_uri.rstrip("/").rpartition(":")[2])
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        while not loopback._serving:
            await asyncio.sleep(0)
    writer.close()
    assert caplog.text == ""


async def test_silence_ends(monkeypatch):
    monkeypatch.setattr(limits, "LOOPBACK_IDLE_SECONDS", 0.05)
    async with Loopback.listening() as loopback:
        assert await say(loopback, b"GET /?code=x HTTP/1.1\r\n") == b""


async def test_it_listens_on_this_machine_only_and_ends_with_the_sign_in():
    async with Loopback.listening() as loopback:
        assert loopback.redirect_uri.startswith("http://127.0.0.1:")
    with pytest.raises(ConnectionError):
        await say(loopback, get(b"/?code=x"))
