"""The process of an integration: one call a line in, one answer a line out, one at a time.

    python -m headwater.sdk.adapter FOLDER

It says which hooks and operations `integration.py` in the folder has, then serves calls until its input ends. What
they print goes to stderr. A call is answered with a result, or with a failure of the closed list; the text of an error
that the author did not foresee is told to nobody but the log, redacted (INT-284, INT-492).
"""

import asyncio
import inspect
import json
import os
import sys
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from headwater import clock
from headwater.sdk.channel import take_stdout
from headwater.sdk.context import Context, Provider
from headwater.sdk.hooks import implemented, loaded
from headwater.sdk.http import Http
from headwater.sdk.integration import Account, Envelope, Integration
from headwater.sdk.logging import Log
from headwater.sdk.operations import method_of, said
from headwater.sdk.refusals import Refused


class Pipe:
    """The two ends of the conversation with the host."""

    def __init__(self, reading: BinaryIO, writing: int) -> None:
        self._reading, self._writing = reading, writing

    def receive(self) -> Mapping[str, Any] | None:
        """Wait for a line; None when the host is gone."""
        line = self._reading.readline()
        return json.loads(line) if line else None

    def send(self, message: Mapping[str, Any]) -> None:
        """Write a line."""
        rest = memoryview(json.dumps(message).encode() + b"\n")
        while rest:
            rest = rest[os.write(self._writing, rest) :]

    def exchange(self, kind: str, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask the host something in the midst of a call."""
        self.send({kind: asked})
        told = self.receive()
        if told is None:
            raise SystemExit(0)
        return told


def main(folder: Path) -> None:
    """Load the integration of a folder, and serve it."""
    pipe = Pipe(sys.stdin.buffer, take_stdout())
    kind = loaded(folder)
    pipe.send({"hooks": implemented(kind), "operations": said(kind)})
    integration = kind()
    while (call := pipe.receive()) is not None:
        pipe.send(_answered(integration, call, pipe))


def _answered(integration: Integration, call: Mapping[str, Any], pipe: Pipe) -> dict[str, Any]:
    """Run one call, and say what came of it."""
    told = call["context"]
    given = json.loads(call["given"]) if "operation" in call else call["arguments"]
    log = Log(_texts([given, told.get("credential"), told["provider"]["settings"]]))
    try:
        result = _begun(integration, call, given, _context(call, pipe, log))
        if inspect.iscoroutine(result):
            result = asyncio.run(result)
        return {"result": _told(result)}
    except Refused as refused:
        return {"failure": refused.code, "retry_after": refused.retry_after, "fields": refused.fields}
    except Exception as error:  # noqa: BLE001 - the boundary of foreign code: its errors may hold anything
        log.write(f"{type(error).__name__} in {call.get('operation') or call['hook']}: {error}")
        return {"failure": "provider_protocol_error"}


def _begun(integration: Integration, call: Mapping[str, Any], given: Any, context: Context) -> Any:
    """Call the hook or the operation that is meant; what it returns may have to be awaited."""
    if "hook" in call:
        return getattr(integration, call["hook"])(context, **_arguments(given))
    method = method_of(integration, call["operation"])
    if method is None:
        raise LookupError
    return method(context, given)


def _context(call: Mapping[str, Any], pipe: Pipe, log: Log) -> Context:
    told = call["context"]
    credential = told.get("credential")
    return Context(
        owner=told["owner"],
        acting_user=told["acting_user"],
        team=told["team"],
        provider=Provider(**told["provider"]),
        credential=None if credential is None else _envelope(credential),
        deadline=datetime.fromisoformat(told["deadline"]),
        throttle=_throttle(pipe),
        clock=clock.now,
        http=Http(lambda asked: pipe.exchange("http", asked)),
        log=log,
    )


def _throttle(pipe: Pipe) -> Callable[[], None]:
    def count() -> None:
        told = pipe.exchange("throttle", {})
        if "failure" in told:
            raise Refused(told["failure"], retry_after=told.get("retry_after"))

    return count


def _arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    arguments = dict(given)
    if "envelope" in arguments:
        arguments["envelope"] = _envelope(arguments["envelope"])
    if "body" in arguments:
        arguments["body"] = b64decode(arguments["body"])
    return arguments


def _envelope(told: Mapping[str, Any]) -> Envelope:
    members = dict(told)
    if members.get("expires_at"):
        members["expires_at"] = datetime.fromisoformat(members["expires_at"])
    if members.get("account"):
        members["account"] = Account(**members["account"])
    return Envelope(**members)


def _told(result: Any) -> Any:
    """Return a hook's result as JSON says it, with the name of its type where it has one."""
    if is_dataclass(result) and not isinstance(result, type):
        return {"kind": type(result).__name__.lower(), "value": json.loads(json.dumps(asdict(result), default=_text))}
    return {"kind": "value", "value": json.loads(json.dumps(result, default=_text))}


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError


def _texts(node: Any) -> set[str]:
    """Return every text of a value."""
    if isinstance(node, Mapping | list):
        return {text for value in (node.values() if isinstance(node, Mapping) else node) for text in _texts(value)}
    return {node} if isinstance(node, str) else set()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
