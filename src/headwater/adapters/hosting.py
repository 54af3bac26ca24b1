"""An integration's code in a process of its own, confined like a connector: one call, one answer, within a deadline.

The process has no network unless its manifest asks for one of its own; the host sends its requests, to the hosts that
the manifest names (INT-493). Secrets reach it through its pipe and in no other way, and those of one call only.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from headwater import clock, limits
from headwater.adapters.sending import Send, sent
from headwater.collect.verdict import Exit
from headwater.connect.failures import AuthFailure, FailureCode
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.faults import Fault
from headwater.manifest.hello import Hello, examine_hello
from headwater.manifest.hook_source import implemented, operations_of
from headwater.manifest.integration import Integration
from headwater.process.child import Child
from headwater.process.launch import Launch
from headwater.wire.framing import LineTooLong

Count = Callable[[], Awaitable[None]]
"""Counts one more attempt, or raises `AuthFailure`."""

_CODES: Final = get_args(FailureCode)  # no set: what foreign code told may have no hash


StartFailure = Literal[
    "admission", "digest", "copy", "spawn", "exited_before_handshake", "handshake_deadline", "handshake_mismatch"
]


class Unready(Exception):
    """An integration's process did not come to be ready.

    `end` is how it ended, where it did; `faults` are what is wrong with what it said.
    """

    def __init__(self, reason: StartFailure, end: Exit | None = None, faults: Sequence[Fault] = ()) -> None:
        super().__init__(reason)
        self.reason, self.end, self.faults = reason, end, faults


@dataclass(frozen=True)
class Call:
    """One call: what is asked, what it is told of the host, and what the host does for it meanwhile.

    What is asked is a hook with its arguments, or an operation with what it is given, as JSON text. `until` is its
    deadline by the monotonic clock; without one it has `limits.HOOK_SECONDS` from its turn on.
    """

    asked: Mapping[str, Any]
    context: Mapping[str, Any]
    send: Send
    count: Count
    until: float | None = None

    @property
    def left(self) -> float | None:
        """The seconds that are left; None where it has no deadline."""
        return None if self.until is None else max(self.until - clock.monotonic(), 0.0)


class Adapter:
    """A running integration. Calls wait for one another."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._lines: list[bytes] = []
        self._turn = asyncio.Lock()
        self.hello = Hello(frozenset(), {}, {})

    async def greet(self, hooks: frozenset[str], operations: frozenset[str]) -> None:
        """Hear what it has. Raise `Unready` where it says nothing in time, or has something else than its source."""
        try:
            async with asyncio.timeout(limits.HOOK_START_SECONDS):
                hello, faults = examine_hello(await self._line())
        except TimeoutError:
            raise Unready("handshake_deadline") from None
        except AuthFailure:
            if (end := await self._child.wait(limits.STOP_SECONDS)) is None:
                raise Unready("handshake_mismatch") from None
            raise Unready("exited_before_handshake", end) from None
        if hello is None or (hello.hooks, frozenset(hello.operations)) != (hooks, operations):
            raise Unready("handshake_mismatch", faults=faults)
        self.hello = hello

    @property
    def hooks(self) -> frozenset[str]:
        """The hooks that it implements."""
        return self.hello.hooks

    async def call(self, call: Call) -> Any:
        """Run a hook or an operation once and return what it gave. Raise `AuthFailure`.

        A process whose answer did not come, or was none, is ended: what it says later is no answer to the next call.
        Raise `TimeoutError` where its turn did not come in time: nothing was asked then.
        """
        async with asyncio.timeout(call.left):
            await self._turn.acquire()
        try:
            told = None
            try:
                async with asyncio.timeout(limits.HOOK_SECONDS if call.left is None else call.left):
                    told = await self._answer(call)
            except TimeoutError:
                raise AuthFailure("provider_timeout") from None
            finally:
                if told is None:
                    await self._child.stop()
        finally:
            self._turn.release()
        if "failure" in told:
            raise _failure(told)
        return told.get("result")

    @property
    def log(self) -> str:
        """The end of what it wrote to its log."""
        return self._child.stderr_tail

    async def stop(self) -> Exit:
        """End the process: asked first, forced after `limits.STOP_SECONDS`."""
        return await self._child.stop()

    async def ended(self) -> None:
        """Wait until the process is gone."""
        while await self._child.wait(limits.HOOK_SECONDS) is None:
            pass

    async def _answer(self, call: Call) -> Mapping[str, Any]:
        await self._send({**call.asked, "context": call.context})
        for _ in range(limits.HOOK_REQUESTS):
            told = await self._message()
            if "http" in told:
                await self._send(await sent(call.send, told["http"]))
            elif "throttle" in told:
                await self._send(await _counted(call.count))
            else:
                return told
        raise AuthFailure("provider_protocol_error")

    async def _send(self, message: Mapping[str, Any]) -> None:
        await self._child.send(json.dumps(message).encode() + b"\n")

    async def _message(self) -> Mapping[str, Any]:
        """Return what the next line says; one that says nothing is the integration's fault."""
        try:
            told = json.loads(await self._line())
        except (ValueError, RecursionError):
            raise AuthFailure("provider_protocol_error") from None
        if not isinstance(told, dict):
            raise AuthFailure("provider_protocol_error")
        return told

    async def _line(self) -> bytes:
        """Wait for the next line; that none comes, or one that is too long, is the integration's fault."""
        try:
            while not self._lines:
                read = await self._child.read(limits.HOOK_SECONDS)
                self._lines = list(read.lines)
                if read.ended and not self._lines:
                    raise AuthFailure("provider_protocol_error")
        except LineTooLong:
            raise AuthFailure("provider_protocol_error") from None
        return self._lines.pop(0)


@asynccontextmanager
async def started(
    folder: Path,
    integration: Integration,
    hidden: Sequence[Path],
    log: Callable[[str], None] = lambda _text: None,
    *,
    place: Path | None = None,
) -> AsyncIterator[Adapter]:
    """Have the integration of a folder running. Raise `Unready` where it does not come to be.

    `hidden` is what no foreign code may see. `log` gets what it wrote to stderr until it was ready or was not. What it
    may write to is a folder in `place`, and gone with it.
    """
    with tempfile.TemporaryDirectory(prefix="headwater-adapter-", dir=place, ignore_cleanup_errors=True) as scratch:
        bindings: dict[str, dict[str, Any]] = {"network": {}} if integration.network == "own" else {}
        command = [sys.executable, "-m", "headwater.sdk.adapter", str(folder)]
        try:
            source = (folder / "integration.py").read_bytes()
            adapter = Adapter(await Launch(command, folder, Path(scratch), bindings, hidden, {})())
        except OSError:
            raise Unready("admission") from None
        except HeadwaterError:
            raise Unready("spawn") from None
        try:
            faults: Sequence[Fault] = ()
            try:
                await adapter.greet(implemented(source), operations_of(source))
            except Unready as unready:
                faults = unready.faults
                raise
            finally:
                log("\n".join([adapter.log, *(f"{fault.pointer} {fault.message}" for fault in faults)]))
            yield adapter
        finally:
            await adapter.stop()


@asynccontextmanager
async def running(folder: Path, integration: Integration, hidden: Sequence[Path]) -> AsyncIterator[Adapter]:
    """Have the integration of a folder running for a while, or raise `unavailable`."""
    try:
        async with started(folder, integration, hidden) as adapter:
            yield adapter
    except Unready:
        message = "The integration's code could not be started."
        raise refuse("unavailable", message, stage="readiness", next_action="retry_explicitly") from None


async def _counted(count: Count) -> Mapping[str, Any]:
    try:
        await count()
    except AuthFailure as failure:
        return {"failure": failure.code, "retry_after": failure.retry_after}
    return {}


def _failure(told: Mapping[str, Any]) -> AuthFailure:
    """Return the failure that a hook told; a code that it may not use is a fault of its own (INT-283)."""
    code, wait, fields = told["failure"], told.get("retry_after"), told.get("fields") or {}
    if code not in _CODES or not isinstance(fields, dict):
        return AuthFailure("provider_protocol_error")
    seconds = min(max(wait, 0), limits.RETRY_AFTER_SECONDS) if type(wait) is int else None
    said = {str(name): str(text)[: limits.LABEL_CHARACTERS] for name, text in fields.items()}
    return AuthFailure(code, retry_after=seconds, fields=said)
