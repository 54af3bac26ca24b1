"""The adapters of one owner: each instance has one process at most, started when it is needed, stopped exactly.

Those who ask for one that is starting wait for the same start, each until its own deadline. One that fails says so and
harms no other; nothing is started anew by itself. An instance that a person stopped stays stopped until it is used.
"""

import asyncio
import contextlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from headwater import clock, limits
from headwater.adapters.hosting import Adapter, Unready, started
from headwater.errors import HeadwaterError, refuse
from headwater.owner.served import Served
from headwater.settings import Settings
from headwater.store.locks import private
from headwater.store.sqlite.descriptions import Descriptions
from headwater.store.sqlite.owner_records import OwnerRecords

State = Literal["not_running", "starting", "ready", "stopping", "stopped", "failed"]


@dataclass
class Live:
    """One incarnation of an adapter. `ready` has it when it has said hello, or why it did not."""

    served: Served
    incarnation: str
    ready: asyncio.Future[Adapter]
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None
    state: State = "starting"
    failure: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lives(self) -> bool:
        """Whether its process is there, or is about to be."""
        return self.state in ("starting", "ready", "stopping")


class Supervisor:
    """Starts, watches and stops adapters."""

    def __init__(self, settings: Settings, incarnation: str) -> None:
        self._settings = settings
        self._incarnation = incarnation
        self._records = OwnerRecords(settings.database_path, os.geteuid())
        self._descriptions = Descriptions(settings.database_path, os.geteuid())
        self._starting = asyncio.Semaphore(limits.ADAPTERS_STARTING)
        self._live: dict[str, Live] = {}

    async def adapter(self, one: Served, seconds: float, *, resumes: bool = True) -> Adapter:
        """Return the ready adapter of an instance, started if need be. Using it by name ends its suppression.

        Raise `unavailable` or `readiness_mismatch` where it does not come to be, `timeout` where that takes longer, and
        `description_unavailable` for one that was stopped and is not to be resumed.
        """
        if self._records.is_suppressed(one.instance_id):
            if not resumes:
                raise refuse("description_unavailable", next_action="revalidate_connection")
            self._records.suppress(one.instance_id, suppressed=False)
        live = self._live.get(one.instance_id)
        if live is not None and live.lives and live.served.selection != one.selection:
            await self._end(live)
        if live is None or not live.lives:
            live = self._begin(one)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(live.ready)
        except TimeoutError:
            raise refuse("timeout", "The instance's program did not become ready in time.", stage="readiness") from None

    def begin_automatic(self, served: Iterable[Served]) -> None:
        """Start what is to start by itself, and was not stopped. Nobody waits for it (CLI-800)."""
        for one in served:
            brings_code = one.integration is not None and one.instance_id not in self._live
            if one.is_automatic and brings_code and not self._records.is_suppressed(one.instance_id):
                self._begin(one)

    def observation(self, one: Served) -> dict[str, Any]:
        """Return how an instance stands, as `instances status` shows it."""
        told: dict[str, Any] = {
            "adapter": one.alias,
            "connector": one.connector,
            "instance": one.instance,
            "configuration_revision": one.configuration_revision,
            "host_incarnation": self._incarnation,
            "observed_at_ms": clock.millis(),
        }
        live = self._live.get(one.instance_id)
        if self._records.is_suppressed(one.instance_id):
            return {**told, "state": "suppressed"}
        if one.integration is None:  # what the owner itself does for it is always there
            return {**told, "state": "ready", "child_incarnation": self._incarnation}
        if live is None:
            return {**told, "state": "not_running"}
        return {**told, "state": live.state, "child_incarnation": live.incarnation, **live.failure}

    async def stop(self, one: Served, revision: str, host: str, child: str) -> dict[str, Any]:
        """Stop exactly the incarnation that is named, and keep the instance stopped.

        Raise `incarnation_mismatch`, and signal nothing, where any of the coordinates is another one (CLI-809 to 813).
        """
        live = self._live.get(one.instance_id)
        known = self._incarnation if one.integration is None else (live.incarnation if live and live.lives else "")
        if (revision, host, child) != (one.configuration_revision, self._incarnation, known):
            raise refuse(
                "incarnation_mismatch", "Another incarnation runs, or none; nothing was stopped.", stage="stop"
            )
        self._records.suppress(one.instance_id, suppressed=True)
        if live is not None and live.lives:
            await self._end(live)
        return self.observation(one)

    async def stop_all(self) -> None:
        """End every adapter; what was suppressed stays so, and nothing else becomes so."""
        await asyncio.gather(*(self._end(live) for live in self._live.values() if live.lives))

    def _begin(self, one: Served) -> Live:
        live = Live(one, clock.identifier("adapter"), asyncio.get_running_loop().create_future())
        live.ready.add_done_callback(_seen)
        live.task = asyncio.create_task(self._keep(live))
        self._live[one.instance_id] = live
        return live

    async def _end(self, live: Live) -> None:
        live.state = "stopping"
        live.ending.set()
        if live.task is not None:
            await asyncio.wait([live.task])
        live.state = "stopped"

    async def _keep(self, live: Live) -> None:
        """Be an adapter's life: its start, its readiness, its end."""
        one = live.served
        try:
            assert one.integration is not None
            one.verify()
            async with contextlib.AsyncExitStack() as life:
                async with self._starting:
                    running = started(one.folder, one.integration, self._settings.private, self._log_of(one))
                    adapter = await life.enter_async_context(running)
                self._note(one, adapter)
                live.state = "ready"
                live.ready.set_result(adapter)
                await _first(live.ending.wait(), adapter.ended())
            if not live.ending.is_set():
                live.state, live.failure = "failed", {"failure": "unavailable"}
        except Unready as unready:
            self._failed(live, unready)
        except HeadwaterError:
            self._failed(live, Unready("digest"))
        finally:  # also of what nobody foresaw: an instance that stays `starting` could never be used again
            if not live.ready.done():
                self._failed(live, Unready("spawn"))

    def _note(self, one: Served, adapter: Adapter) -> None:
        """Keep what an adapter said of its operations. Where that cannot be kept, it is only not described."""
        if adapter.hello.operations:
            with contextlib.suppress(HeadwaterError):
                self._descriptions.keep(one.instance_id, one.selection, adapter.hello.said)

    def _failed(self, live: Live, unready: Unready) -> None:
        """Say why a start failed (CLI-818 to CLI-822)."""
        one, mismatch = live.served, unready.reason == "handshake_mismatch"
        code = "readiness_mismatch" if mismatch else "unavailable"
        live.state = "failed"
        live.failure = {"failure": code, "start_failure": unready.reason}
        if unready.end is not None:
            ended = {"start_exit_code": unready.end.code, "start_signal": unready.end.signal}
            live.failure |= {name: value for name, value in ended.items() if value is not None}
        if unready.reason not in ("admission", "digest", "spawn") and self._log_path(one).is_file():
            live.failure["start_log"] = str(self._log_path(one))
        if not live.ready.done():
            message = "The instance's program could not be started."
            command = f"headwater instances status {one.connector}/{one.instance}"
            live.ready.set_exception(
                refuse(code, message, stage="readiness", next_action="check_configuration", command=command)
            )

    def _log_path(self, one: Served) -> Any:
        return self._settings.state_dir / "start-logs" / f"{one.instance_id}.log"

    def _log_of(self, one: Served) -> Any:
        """Return what keeps the log of a start: what comes after it is kept nowhere, for it may hold a credential."""

        def keep(text: str) -> None:
            path = self._log_path(one)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with contextlib.suppress(OSError, HeadwaterError):  # a log that cannot be kept costs no start
                private(path.parent)
                with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
                    file.write(text.encode()[-limits.START_LOG_BYTES :])

        return keep


async def _first(*waits: Any) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _seen(ready: "asyncio.Future[Adapter]") -> None:
    """Look at a failure that nobody waited for, so that it is no stray one."""
    if not ready.cancelled():
        ready.exception()
