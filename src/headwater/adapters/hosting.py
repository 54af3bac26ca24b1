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

from headwater import limits
from headwater.adapters.sending import Send, sent
from headwater.collect.verdict import Exit
from headwater.connect.failures import AuthFailure, FailureCode
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.hook_source import implemented
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
    """An integration's process did not come to be ready. `end` is how it ended, where it did."""

    def __init__(self, reason: StartFailure, end: Exit | None = None) -> None:
        super().__init__(reason)
        self.reason, self.end = reason, end


@dataclass(frozen=True)
class Call:
    """One call: the hook, its arguments, what it is told of the host, and what the host does for it meanwhile."""

    hook: str
    arguments: Mapping[str, Any]
    context: Mapping[str, Any]
    send: Send
    count: Count


class Adapter:
    """A running integration. Calls wait for one another."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._lines: list[bytes] = []
        self._turn = asyncio.Lock()
        self.hooks: Sequence[str] = ()

    async def greet(self, expected: frozenset[str]) -> None:
        """Hear which hooks it has. Raise `Unready` where it says nothing in time, or has others than its source."""
        try:
            async with asyncio.timeout(limits.HOOK_START_SECONDS):
                told = await self._line()
        except TimeoutError:
            raise Unready("handshake_deadline") from None
        except AuthFailure:
            if (end := await self._child.wait(limits.STOP_SECONDS)) is None:
                raise Unready("handshake_mismatch") from None
            raise Unready("exited_before_handshake", end) from None
        hooks = told.get("hooks")
        if not isinstance(hooks, list) or not all(isinstance(hook, str) for hook in hooks) or set(hooks) != expected:
            raise Unready("handshake_mismatch")
        self.hooks = hooks

    async def call(self, call: Call) -> Any:
        """Run a hook once and return what it gave. Raise `AuthFailure`.

        A process whose answer did not come, or was none, is ended: what it says later is no answer to the next call.
        """
        async with self._turn:
            told = None
            try:
                async with asyncio.timeout(limits.HOOK_SECONDS):
                    told = await self._answer(call)
            except TimeoutError:
                raise AuthFailure("provider_timeout") from None
            finally:
                if told is None:
                    await self._child.stop()
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
        asked = {"hook": call.hook, "arguments": call.arguments, "context": call.context}
        await self._send(asked)
        for _ in range(limits.HOOK_REQUESTS):
            told = await self._line()
            if "http" in told:
                await self._send(await sent(call.send, told["http"]))
            elif "throttle" in told:
                await self._send(await _counted(call.count))
            else:
                return told
        raise AuthFailure("provider_protocol_error")

    async def _send(self, message: Mapping[str, Any]) -> None:
        await self._child.send(json.dumps(message).encode() + b"\n")

    async def _line(self) -> Mapping[str, Any]:
        """Return the next line; one that is none of ours, or none at all, is the integration's fault."""
        try:
            while not self._lines:
                read = await self._child.read(limits.HOOK_SECONDS)
                self._lines = list(read.lines)
                if read.ended and not self._lines:
                    raise AuthFailure("provider_protocol_error")
            told = json.loads(self._lines.pop(0))
        except (ValueError, RecursionError, LineTooLong):
            raise AuthFailure("provider_protocol_error") from None
        if not isinstance(told, dict):
            raise AuthFailure("provider_protocol_error")
        return told


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
            try:
                await adapter.greet(implemented(source))
            finally:
                log(adapter.log)
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
