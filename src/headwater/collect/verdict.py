"""The verdict: everything that was seen of a run in, one status and its one cause out."""

from dataclasses import dataclass
from typing import Literal

from headwater.wire.messages import Done

Status = Literal["succeeded", "failed", "cancelled", "abandoned"]

STREAM_FAILED = "stream_collection_failed"


@dataclass(frozen=True)
class Exit:
    """How a process ended: its exit status, or the signal that killed it."""

    code: int | None = None
    signal: int | None = None

    @property
    def is_success(self) -> bool:
        """Whether the process exited with 0."""
        return self.code == 0

    def __str__(self) -> str:
        return f"killed by signal {self.signal}" if self.signal is not None else f"exit status {self.code}"


@dataclass(frozen=True)
class Stop:
    """Why the host ended a process: a stable cause and a sentence."""

    cause: str
    message: str


@dataclass(frozen=True)
class Sight:
    """What was seen of a run up to the end of its process.

    `stop` is the host's own reason to end it (a violation, a limit, a failed store). `certifying` says that
    every failed stream was named in a skip of its own, and none wrongly (CP-800 to CP-806).
    """

    exit: Exit
    done: Done | None = None
    records_seen: int = 0
    records_claimed: int | None = None
    cancelled: bool = False
    stop: Stop | None = None
    truncated: bool = False
    certifying: bool = False


@dataclass(frozen=True)
class Verdict:
    """How a run ended. `cause` is a stable name, `message` one sentence, `may_commit` whether any cursor may move."""

    status: Status
    cause: str
    message: str
    may_commit: bool = False


def judge(sight: Sight) -> Verdict:
    """Decide how a run ended. Cancellation is looked at first, before DONE is evaluated (CP-481)."""
    if sight.cancelled:
        return Verdict("cancelled", "cancelled", "You cancelled the run.")
    if sight.stop is not None:
        return Verdict("failed", sight.stop.cause, sight.stop.message)
    done = sight.done
    if done is None:
        return _without_done(sight)
    if sight.records_claimed != sight.records_seen:
        claimed, seen = f"{sight.records_claimed:,}", f"{sight.records_seen:,}"
        return Verdict("failed", "wrong_count", f"The connector says it sent {claimed} records; {seen} came.")
    if sight.exit.is_success != (done.status == "succeeded"):
        message = f"The connector said {done.status} and then ended with {sight.exit}."
        return Verdict("failed", "exit_disagrees", message)
    if done.status == "succeeded":
        return Verdict("succeeded", "succeeded", "The connector finished.", may_commit=True)
    if done.status == "cancelled":
        return Verdict("cancelled", "connector_cancelled", "The connector ended the run as cancelled.")
    if sight.certifying and _code(done) == STREAM_FAILED:
        message = "At least one stream could not be collected; the others were."
        return Verdict("failed", STREAM_FAILED, message, may_commit=True)
    return Verdict("failed", "connector_failed", "The connector reported that the run failed.")


def _without_done(sight: Sight) -> Verdict:
    if sight.truncated:
        message = f"The connector's last line was cut off; it ended with {sight.exit} and no DONE."
        return Verdict("failed", "truncated", message)
    return Verdict("failed", "no_done", f"The connector ended with {sight.exit} and no DONE.")


def _code(done: Done) -> object:
    return getattr(done.error, "code", None)
