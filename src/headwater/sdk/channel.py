"""The connector's end of the pipe: stdin and stdout, and nothing else on them."""

import io
import os
import queue
import sys
import threading
from typing import Any, NoReturn

import msgspec

from headwater import clock, limits
from headwater.sdk.outcome import Cancelled, Declined
from headwater.sdk.revision import Revision, in_first_revision, revision_of
from headwater.sdk.secrets import Secrets
from headwater.sdk.values import check_values
from headwater.wire.messages import Interaction, InteractionResponse, Start
from headwater.wire.surroundings import OPTIONS_VARIABLE

_BUFFER_BYTES = 256 * 1024
_FLUSH_SECONDS = 0.25
# A host answers a question when its time is over. One that does not even do that is waited for so much longer.
_GRACE_SECONDS = 30.0
_TAKEN_VARIABLE = "HEADWATER_STDOUT_OF"
_answers = msgspec.json.Decoder(Start | InteractionResponse).decode


def fatal(message: str) -> NoReturn:
    """End the process at once over a breach by the other side: text on stderr, non-zero exit."""
    sys.stderr.write(f"connector: {message}\n")
    sys.stderr.flush()
    os._exit(70)


_stdout: int | None = None


def take_stdout() -> int:
    """Take stdout for the protocol and return its descriptor.

    Descriptor 1 becomes stderr, so that no print can break the run; programs that the connector starts inherit
    that, and not the protocol.
    """
    global _stdout
    if _stdout is None:
        _stdout = os.dup(1)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        os.environ[_TAKEN_VARIABLE] = str(os.getpid())
    return _stdout


def is_connector() -> bool:
    """Say whether Headwater started this very process as a connector, and not as a program of a connector's own."""
    return OPTIONS_VARIABLE in os.environ and _TAKEN_VARIABLE not in os.environ


class Channel:
    """Reads START and answers, writes messages. A write is handed over a quarter second later, if another follows.

    It knows what the other side understands, and which secrets it was told.
    """

    def __init__(self, reading: int = 0, writing: int = 1, revision: Revision = "current") -> None:
        self._in = os.fdopen(reading, "rb", closefd=False)
        self._out = io.BufferedWriter(io.FileIO(writing, "wb", closefd=False), _BUFFER_BYTES)
        self._waiting: queue.Queue[InteractionResponse | None] | None = None
        self._closed = False
        self._turn = threading.RLock()
        self._writer: int | None = None
        self._stopped = False
        self.records = 0
        self.revision = revision
        self.secrets = Secrets()
        self._encode = msgspec.json.Encoder().encode
        self._flushed = clock.monotonic()

    @classmethod
    def of_process(cls) -> "Channel":
        """Take the stdin and stdout of this process, whose environment tells what the host understands."""
        return cls(0, take_stdout(), revision_of(os.environ))

    def start(self) -> Start:
        """Wait for START. Nothing is written before it (CP-200)."""
        line = self._in.readline()
        if not line:
            fatal("stdin closed before START")
        try:
            message = _answers(line)
        except (msgspec.DecodeError, RecursionError):
            fatal("the first line is not START")
        if not isinstance(message, Start):
            fatal("the first line is not START")
        threading.Thread(target=self._listen, daemon=True).start()
        return message

    def _listen(self) -> None:
        """Give each answer to the question that waits; anything else from the host is fatal (CP-202, CP-710)."""
        for line in self._in:
            try:
                message = _answers(line)
            except (msgspec.DecodeError, RecursionError):
                fatal("the host sent a line that is no message")
            waiting, self._waiting = self._waiting, None
            if isinstance(message, Start) or waiting is None:
                fatal(f"the host sent {type(message).__struct_config__.tag} while none was due")
            waiting.put(message)
        self._closed = True
        if self._waiting is not None:
            self._waiting.put(None)

    def say(self, kind: str, **members: Any) -> None:
        """Write a message, without the members that are None, in the words that the host understands (CP-908).

        Raise `Misuse` where JSON has no form for a value.
        """
        check_values(members, f"a {kind}")
        message = {
            "type": kind,
            **{name: value for name, value in members.items() if value is not None},
        }
        if said := message if self.revision == "current" else in_first_revision(message):
            self.send(said)

    def send(self, message: Any, *, records: int = 0) -> None:
        """Write a message, and count its records. While a question is open, other threads wait here for its answer."""
        line = self._encode(message) + b"\n"
        with self._turn:
            self._writer = threading.get_ident()
            try:
                self._out.write(line)
                self.records += records
                if (moment := clock.monotonic()) - self._flushed > _FLUSH_SECONDS:
                    self._out.flush()
                    self._flushed = moment
            finally:
                self._writer = None
            if self._stopped:
                self._stopped = False
                raise Cancelled

    def stop(self) -> None:
        """Raise `Cancelled` in the thread that calls; where it is writing a message, once that is whole and counted."""
        if self._writer == threading.get_ident():
            self._stopped = True
        else:
            self._stopped = False
            raise Cancelled

    def flush(self) -> None:
        """Hand over everything that was written."""
        with self._turn:
            self._out.flush()
            self._flushed = clock.monotonic()

    def ask(self, question: Interaction) -> InteractionResponse:
        """Send a question and wait for its answer; nothing is written in between (CP-701).

        Raise `Declined` where the host is gone, or says nothing though the time is over.
        """
        asked = question.timeout_seconds
        patience = (limits.INTERACTION_MAX_SECONDS if asked is msgspec.UNSET else asked) + _GRACE_SECONDS
        waiting: queue.Queue[InteractionResponse | None] = queue.Queue()
        with self._turn:
            self._waiting = waiting
            self.send(question)
            self.flush()
            answer = None if self._closed and waiting.empty() else self._awaited(waiting, patience)
        if answer is None or answer.request_id != question.request_id:
            raise Declined("The host closed the conversation.")
        if answer.data is not msgspec.UNSET:
            self.secrets.remember(question, answer.data)
        return answer

    def _awaited(
        self, waiting: "queue.Queue[InteractionResponse | None]", seconds: float
    ) -> InteractionResponse | None:
        try:
            return waiting.get(timeout=seconds)
        except queue.Empty:
            self._waiting = None
            raise Declined("The host did not answer in time.", hint="retry_by_runtime") from None
