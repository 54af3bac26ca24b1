"""The owner: one process that answers for a state directory, as long as there is something to do.

It holds the lifetime lock, supervises adapters, runs the schedules, and ends when nobody asked anything for a while
and nothing is scheduled. It decides nothing about connections: it calls what every face calls.
"""

import asyncio
import contextlib
import fcntl
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from headwater import clock, limits
from headwater.errors import HeadwaterError, refuse
from headwater.host import Host
from headwater.link.owner import VERSION, Place, build
from headwater.link.unix import Handed, Message, serving
from headwater.owner.answers import Answers
from headwater.owner.scheduling import Scheduling
from headwater.owner.served import automatic
from headwater.owner.supervisor import Supervisor

Answer = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


class Owner:
    """The owner of one state directory."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.incarnation = clock.identifier("owner")
        self.supervisor = Supervisor(host.settings, self.incarnation)
        self._answers = Answers(host, self.supervisor, self.incarnation)
        self._scheduling = Scheduling(host)
        self._ending = asyncio.Event()
        self._asked = clock.monotonic()
        self._busy = 0

    async def serve(self) -> None:
        """Answer until asked to end, or idle for `limits.OWNER_IDLE_SECONDS`.

        Raise `run_active` beside another owner.
        """
        place = Place.of(self._host.settings.state_dir)
        with _alone(place) as lock:
            place.socket.unlink(missing_ok=True)  # of one that was killed: the lock says that it is gone
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._ending.set)
            bounds = (limits.REQUEST_MAX_SECONDS + limits.OWNER_MARGIN_SECONDS, limits.LINK_INPUT_BYTES)
            with contextlib.suppress(HeadwaterError):  # what cannot be read refuses whoever asks for it
                self.supervisor.begin_automatic(automatic(self._host.settings))
            async with serving(place.socket, self._answer, *bounds), self._scheduling.running():
                await self._until_done(lambda: _is_at(place, lock))
                await self.supervisor.stop_all()

    async def _until_done(self, is_ours: Callable[[], bool]) -> None:
        """Wait until there is nothing to do, or the state directory is another one's or gone."""
        while not self._ending.is_set() and is_ours():
            left = self._asked + limits.OWNER_IDLE_SECONDS - clock.monotonic()
            if left <= 0 and self._busy == 0 and not self._scheduling.is_needed:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limits.OWNER_TICK_SECONDS):
                    await self._ending.wait()

    async def _answer(self, asked: Message) -> Message | Handed:
        if asked.get("want") == "shutdown" and asked.get("version") == VERSION:
            self._ending.set()
            return {"result": {}}
        try:
            async with self._working():
                if asked.get("version") != VERSION or asked.get("build") != build():
                    raise refuse("owner_build_mismatch", command="headwater setup owner-stop")
                told = await self._answers.to(asked)
                if isinstance(told, Handed):
                    return told._replace(message={"result": told.message})
                return {"result": told}
        except HeadwaterError as error:
            return {"refused": _told(error)}
        except Exception as error:  # noqa: BLE001 - a fault of ours: it is noted, and no trace of it goes to a terminal
            with contextlib.suppress(OSError, HeadwaterError):
                self._host.note_crash(error)
            message = "The owner failed; it may have done what it was asked."
            return {"refused": _told(refuse("outcome_unknown", message))}

    @asynccontextmanager
    async def _working(self) -> AsyncIterator[None]:
        """Count a client; one too many is refused."""
        if self._busy >= limits.OWNER_CLIENTS or self._ending.is_set():
            raise refuse("capacity", "The owner is busy; try again soon.", stage="admission")
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            self._asked = clock.monotonic()


@contextmanager
def _alone(place: Place) -> Iterator[int]:
    """Hold the lifetime lock and yield its descriptor, or raise `run_active`."""
    from headwater.store.locks import private

    private(place.lock.parent)
    descriptor = os.open(place.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise refuse("run_active", "Another owner is active here.", command="headwater setup owner-stop") from None
        yield descriptor
    finally:
        os.close(descriptor)


def _is_at(place: Place, lock: int) -> bool:
    """Whether the lock that is held is the one that others would meet."""
    try:
        return os.path.samestat(place.lock.stat(), os.fstat(lock))
    except OSError:
        return False


def _told(error: HeadwaterError) -> Mapping[str, Any]:
    """Return a refusal as it crosses the socket."""
    return {
        "code": error.code,
        "message": error.message,
        "stage": error.stage,
        "next_action": error.next_action,
        "safe": error.safe,
        "command": error.command,
        "data": error.data,
    }
