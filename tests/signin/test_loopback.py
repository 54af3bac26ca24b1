"""The listener that a browser comes back to: one answer, and nothing else gets in."""

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest

from headwater import limits
from headwater.outbound.loopback import Loopback
from headwater.secret import Secret

pytestmark = pytest.mark.anyio
OURS = Secret("ours")


async def say(loopback: Loopback, text: bytes) -> bytes:
    port = int(loopback.redirect_uri.rstrip("/").rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    answer = await reader.read()
    writer.close()
    return answer


def get(target: bytes) -> bytes:
    return b"GET " + target + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@asynccontextmanager
async def awaited():
    """A listener that is waited at, with the task that waits."""
    async with Loopback.listening() as loopback:
        waiting = asyncio.create_task(loopback.parameters(OURS))
        await asyncio.sleep(0)
        yield loopback, waiting
        waiting.cancel()


@pytest.mark.clause("INT-194")
async def test_the_first_whole_request_with_our_state_decides():
    async with awaited() as (loopback, waiting):
        answer = await say(loopback, get(b"/?code=sentinel%20code&state=ours"))
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"sentinel" not in answer
        assert (await say(loopback, get(b"/?code=later&state=ours"))).startswith(b"HTTP/1.1 200 ")
        found = await waiting
    assert found == {"code": Secret("sentinel code"), "state": OURS}
    assert "sentinel" not in repr(found)


async def test_a_refusal_with_our_state_decides_as_well():
    async with awaited() as (loopback, waiting):
        await say(loopback, get(b"/?error=access_denied&state=ours"))
        assert await waiting == {"error": Secret("access_denied"), "state": OURS}


async def test_before_it_is_known_what_to_wait_for_nothing_is_an_answer():
    async with Loopback.listening() as loopback:
        assert (await say(loopback, get(b"/?code=x&state=ours"))).startswith(b"HTTP/1.1 400 ")
        waiting = asyncio.create_task(loopback.parameters(OURS))
        await asyncio.sleep(0)
        await say(loopback, get(b"/?code=y&state=ours"))
        assert (await waiting)["code"] == Secret("y")


async def test_each_redirect_of_a_sign_in_has_an_answer_of_its_own():
    async with awaited() as (loopback, waiting):
        await say(loopback, get(b"/?code=1&state=ours"))
        await waiting
        second = asyncio.create_task(loopback.parameters(Secret("next")))
        await asyncio.sleep(0)
        assert (await say(loopback, get(b"/?code=1&state=ours"))).startswith(b"HTTP/1.1 400 ")
        await say(loopback, get(b"/?code=2&state=next"))
        assert (await second)["code"] == Secret("2")


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (get(b"/favicon.ico?code=x&state=s"), b"404"),
        (get(b"/"), b"400"),
        (get(b"/?"), b"400"),
        (get(b"/?code=x"), b"400"),
        (get(b"/?code=x&state="), b"400"),
        (get(b"/?code=x&state=theirs"), b"400"),
        (get(b"/?code=x&state=OURS"), b"400"),
        (get(b"/?code=x&state=ours&state=ours"), b"400"),
        (get(b"/?code=x&code=y&state=ours"), b"400"),
        (get(b"/?code&state=ours"), b"400"),
        (get(b"/callback?code=x&state=ours"), b"404"),
        (get(b"http://127.0.0.1/?code=x&state=ours"), b"400"),
        (get(b"/?" + b"&".join(b"a%d=1" % number for number in range(40))), b"400"),
        (b"POST /?code=x&state=ours HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /?code=x&state=ours\r\n\r\n", b"400"),
        (b"GET  /?code=x&state=ours HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /?code=\xff&state=ours HTTP/1.1\r\n\r\n", b"400"),
        (b"\x16\x03\x01\r\n\r\n", b"400"),
        (b"GET /?code=x&state=ours HTTP/1.1\r\nX: " + b"x" * limits.LOOPBACK_HEAD_BYTES + b"\r\n\r\n", b"400"),
    ],
)
async def test_anything_else_is_answered_and_decides_nothing(text, status):
    async with awaited() as (loopback, waiting):
        for _ in range(3):
            assert (await say(loopback, text)).split(b" ")[1] == status
        assert not waiting.done()
        await say(loopback, get(b"/?code=ours&state=ours"))
        assert await waiting == {"code": OURS, "state": OURS}


async def test_those_that_say_nothing_take_a_bounded_room(monkeypatch):
    monkeypatch.setattr(limits, "LOOPBACK_CONNECTIONS", 4)
    async with awaited() as (loopback, _):
        port = int(loopback.redirect_uri.rstrip("/").rpartition(":")[2])
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
        while len(loopback._serving) < 4:
            await asyncio.sleep(0)
        with suppress(ConnectionError):
            assert await say(loopback, get(b"/?code=x&state=ours")) == b""
        for _, writer in silent:
            writer.close()
        while loopback._serving:
            await asyncio.sleep(0)
        assert (await say(loopback, get(b"/?code=x&state=ours"))).split(b" ")[1] == b"200"


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
