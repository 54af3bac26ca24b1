"""A connector's main: START in, one function per stream, DONE always out."""

import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Never

from msgspec import UNSET

from headwater import limits
from headwater.manifest.declaration import Declaration
from headwater.manifest.reading import read
from headwater.sdk.channel import Channel
from headwater.sdk.outcome import Cancelled, Fail, Incomplete
from headwater.sdk.streams import RunContext, StreamRun
from headwater.wire.messages import CollectionStream, Start

Collecting = Callable[[StreamRun], Iterable[Mapping[str, Any]] | None]

STREAM_FAILED = "stream_collection_failed"
SCOPE_NOT_SUPPORTED = "scope_not_supported"


class Connector:
    """A set of stream functions and the manifest that declares them.

    A function takes a `StreamRun`; it may yield records, call its methods, or both. A stream without a function
    is written by another stream's function. `folder` is where `manifest.json` lies: the script's own by default.
    """

    def __init__(self, folder: Path | None = None) -> None:
        home = folder or Path(sys.argv[0]).resolve().parent
        self.declaration: Declaration = read((home / "manifest.json").read_bytes())
        self._functions: dict[str, Collecting] = {}

    def stream(self, name: str) -> Callable[[Collecting], Collecting]:
        """Register the function that collects a declared stream."""
        if name not in self.declaration.streams:
            raise KeyError(f"manifest.json declares no stream {name}")

        def register(function: Collecting) -> Collecting:
            self._functions[name] = function
            return function

        return register

    def run(self) -> Never:
        """Speak the protocol on stdin and stdout, then exit: 0 when the run succeeded, 1 otherwise (CP-211)."""
        sys.exit(self.main(Channel.of_process()))

    def main(self, channel: Channel) -> int:
        """Run over a channel and return the exit status."""
        start = channel.start()
        run = RunContext(self.declaration, start, channel)

        def asked_to_stop(_signal: int, _frame: object) -> None:
            # A host that reads no more takes no DONE either: SIGALRM then ends the process (CP-216).
            signal.setitimer(signal.ITIMER_REAL, limits.LEAVE_SECONDS)
            channel.stop()

        signal.signal(signal.SIGTERM, asked_to_stop)
        try:
            status, error = self._collect(run, start)
        except Cancelled:
            status, error = "cancelled", None
        except Fail as failure:
            status, error = "failed", _described(failure)
        except (Exception, SystemExit) as failure:  # noqa: BLE001 - the run boundary: DONE is sent whatever the code does (CP-214)
            traceback.print_exc()
            status, error = "failed", {"message": f"{type(failure).__name__} in the connector", "retryable": True}
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        channel.say("DONE", status=status, records_emitted=run.records_emitted, error=error)
        channel.flush()
        signal.setitimer(signal.ITIMER_REAL, 0)
        return 0 if status == "succeeded" else 1

    def _collect(self, run: RunContext, start: Start) -> tuple[str, dict[str, Any] | None]:
        missing = sorted(self.declaration.required_bindings - run.bindings.keys())
        if missing:
            lack = f"START lacks a required binding: {', '.join(missing)}"
            sys.stderr.write(f"connector: {lack}\n")
            raise Fail(lack, retryable=False)
        failed = []
        for entry in start.scope.streams:
            function = self._functions.get(entry.name)
            if unsupported := self._unsupported(run, entry):
                told = {"reason": SCOPE_NOT_SUPPORTED, "message": unsupported}
                run.channel.say("SKIP_RESULT", stream=entry.name, **told)
            elif function is not None and not self._one(run.stream(entry.name), function):
                failed.append(entry.name)
        if not failed:
            return "succeeded", None
        names = ", ".join(failed)
        return "failed", {"message": f"Could not collect: {names}", "retryable": True, "code": STREAM_FAILED}

    def _unsupported(self, run: RunContext, entry: CollectionStream) -> str:
        """Say why a stream's scope cannot be kept, empty where it can: it is skipped aloud, not in silence (CP-317)."""
        stream = self.declaration.streams.get(entry.name)
        if stream is None:
            return "The connector has no such stream."
        if entry.time_range is not UNSET and stream.consent_time_field is None:
            return "The stream has no time that could be compared with a time_range."
        writers = self._functions if stream.parents == (stream.name,) else stream.parents
        if entry.name in self._functions or any(run.wants(name) for name in writers):
            return ""
        return "Its records come with another stream, which this run does not collect."

    def _one(self, stream: StreamRun, function: Collecting) -> bool:
        """Collect one stream; a fault of its own fails it alone, and the others go on (CP-811)."""
        try:
            for data in function(stream) or ():
                stream.emit(data)
        except Fail:
            raise
        except Incomplete as failure:
            stream.skip(STREAM_FAILED, str(failure))
            return False
        except Exception as failure:  # noqa: BLE001 - the run boundary of one stream (CP-811)
            traceback.print_exc()
            stream.skip(STREAM_FAILED, f"{type(failure).__name__} in the connector")
            return False
        return True


def _described(failure: Fail) -> dict[str, Any]:
    described = {"message": failure.message, "retryable": failure.retryable, "code": failure.code}
    described["recovery_hint"] = failure.hint
    return {name: value for name, value in described.items() if value is not None}
