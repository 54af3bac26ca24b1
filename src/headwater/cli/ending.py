"""Running what can be ended: SIGTERM ends it as Ctrl-C does, so that what was begun is left as it should be."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run work to its end, and return what it returns. Raise `KeyboardInterrupt` where it was ended by a signal."""

    async def watched() -> T:
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await work

    try:
        return asyncio.run(watched())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
