"""Work that cannot be told to stop, done beside the event loop by a thread that nobody waits for at the end."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


async def aside(work: Callable[[], T]) -> T:
    """Do work in a thread of its own, and return or raise what it does: the loop's own would hold the program up."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[T] = loop.create_future()

    def tell(done: Callable[[], None]) -> None:
        if not found.done():
            done()

    def working() -> None:
        try:
            done = partial(found.set_result, work())
        except BaseException as error:  # noqa: BLE001 - told to whoever waits
            done = partial(found.set_exception, error)
        with suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(tell, done)

    Thread(target=working, name="aside", daemon=True).start()
    return await found
