"""The service that drives one run: a child's lines through a session into the store, under every deadline."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headwater import clock, limits
from headwater.collect.batches import Batches
from headwater.collect.checkpoints import Decision, Withheld
from headwater.collect.effects import WRITES, Ask, Effect, Finish, Gap, Reply, Tell
from headwater.collect.ports import Conclusion, Guest, Ledger, Lines, Observer, Outcome, Respondent
from headwater.collect.session import Session
from headwater.collect.unsaid import Unsaid
from headwater.collect.verdict import Exit, Verdict
from headwater.errors import HeadwaterError
from headwater.events import Answered, Asked, BatchStored, Progressed, RunStarted, Tally
from headwater.wire.encode import encode
from headwater.wire.framing import LineTooLong
from headwater.wire.messages import Interaction, InteractionResponse, seconds_to_answer


@dataclass(frozen=True)
class Deadlines:
    """How long a run may take, in seconds: without a word, and as a whole."""

    idle: float = limits.IDLE_SECONDS
    run: float = limits.RUN_SECONDS


class Run:
    """One run of one connector."""

    def __init__(
        self,
        session: Session,
        ledger: Ledger,
        launch: Callable[[], Awaitable[Guest]],
        *,
        instance: str,
        observe: Observer,
        respondent: Respondent | None = None,
        deadlines: Deadlines | None = None,
    ) -> None:
        self.run_id = session.plan.run_id
        self.instance = instance
        self._session = session
        self._ledger = ledger
        self._launch = launch
        self._observe = observe
        self._respondent = respondent
        self._deadlines = deadlines or Deadlines()
        self._batches = Batches(ledger)
        self._tallies = {name: Tally() for name in session.plan.streams}
        self._truncated = False
        self._unsaid = Unsaid()
        self._saying: asyncio.Task[None] | None = None
        self._cancelling = asyncio.Event()

    def cancel(self) -> None:
        """End the run as cancelled. What is stored stays; no cursor moves."""
        self._session.cancel()
        self._cancelling.set()

    async def collect(self) -> Outcome:
        """Run to the end and return how it ended. Raise only where no process could be started."""
        await self._ledger.begin(self._session.plan)
        try:
            guest = await self._launch()
        except HeadwaterError as error:
            self._session.stop("not_started", error.message)
            await self._conclude(Exit(), "")
            raise
        watch = asyncio.create_task(self._stop_when_cancelled(guest))
        try:
            self._say(guest, encode(self._session.start()))
            self._observe(RunStarted(self._session.plan.run_id, self.instance, self._session.plan.streams))
            await self._converse(guest)
            exit_ = await self._part(guest)
        finally:
            watch.cancel()
            await guest.stop()
            if self._saying is not None:
                await _drop(self._saying)
        return await self._conclude(exit_, guest.stderr_tail)

    def _say(self, guest: Guest, line: bytes) -> None:
        """Write a line behind those before it, and do not wait: a child may never listen."""
        before = self._saying

        async def saying() -> None:
            if before is not None:
                await before
            await guest.send(line)

        self._saying = asyncio.create_task(saying())

    # Listening.

    async def _converse(self, guest: Guest) -> None:
        """Take lines until the child is done, is gone, or has to go."""
        started = heard = clock.monotonic()
        ended = False
        while not ended and not self._session.is_over:
            left = self._time_left(started, heard)
            if left <= 0:
                break
            read = await self._read(guest, min(left, limits.BATCH_WAIT_SECONDS) if self._batches.are_open else left)
            ended, self._truncated = read.ended, read.truncated
            if read.lines:
                await self._take(guest, read.lines)
                heard = clock.monotonic() if any(read.lines) else heard
                if self._batches.is_due:
                    await self._store()
            elif self._batches.are_open:
                await self._store(settled=True)
        await self._store(settled=True)

    async def _read(self, guest: Guest, timeout_seconds: float) -> Lines:
        """Wait for lines; one that is too long ends the run."""
        try:
            return await guest.read(timeout_seconds)
        except LineTooLong:
            self._session.receive_overlong()
            return Lines(ended=True)

    def _time_left(self, started: float, heard: float) -> float:
        """Return the seconds until the nearest deadline; past it, end the run with the reason."""
        now = clock.monotonic()
        done = self._session.done is not None
        idle = limits.EXIT_SECONDS if done else self._deadlines.idle
        left = min(heard + idle - now, started + self._deadlines.run - now)
        if left > 0:
            return left
        if done:
            self._session.stop("did_not_exit", f"The connector was still there {idle:g} seconds after DONE.")
        elif heard + idle <= now:
            self._session.stop("idle", f"The connector was silent for {idle:g} seconds.")
        else:
            self._session.stop("run_time", f"The run took longer than {self._deadlines.run:g} seconds.")
        return 0

    async def _take(self, guest: Guest, lines: Sequence[bytes]) -> None:
        receive, batches, rest = self._session.receive, self._batches, iter(lines)
        filling = batches.filling
        for line in rest:
            effect = receive(line)
            if effect is None:
                continue
            if isinstance(effect, WRITES):
                filling.append(effect)
                batches.held_bytes += len(line)
                if batches.held_bytes >= limits.BATCH_BYTES:
                    await self._store()
                    filling = batches.filling
            else:
                await self._act(guest, effect, rest)
                filling = batches.filling
                if self._session.is_over:
                    return

    async def _act(self, guest: Guest, effect: Effect, rest: Iterator[bytes]) -> None:
        match effect:
            case Tell(text, stream, reached, total):
                self._observe(Progressed(self.run_id, self._unsaid.scrub(text), stream, reached, total))
            case Reply(message):
                self._say(guest, encode(message))
            case Ask(question):
                await self._store(settled=True)
                if not self._speaks(rest):  # what came with the question came before any answer (CP-702)
                    await self._ask(guest, question)
            case Finish():
                await self._store(ended=True, settled=True)
                await guest.close_input()

    async def _store(self, *, ended: bool = False, settled: bool = False) -> None:
        """Hand the batch over to be stored; with `settled`, wait until it is.

        A store that fails ends the run, and what was in the batch and in the one behind it was not kept.
        """
        if self._unsaid:
            self._leave_unsaid()
        try:
            self._count(await self._batches.hand_over(ended=ended))
            if settled:
                self._count(await self._batches.settle())
        except HeadwaterError as error:
            self._session.stop("storage_failed", error.message)

    def _leave_unsaid(self) -> None:
        """Take the owner's answers out of what is about to be stored; a cursor that holds one ends the run."""
        kept = [effect for effect in self._batches.filling if not self._unsaid.is_in(effect)]
        if len(kept) < len(self._batches.filling):
            self._session.stop("answer_in_cursor", "The connector put an answer of the owner's into a cursor.")
        self._batches.filling = [self._unsaid.scrub_gap(one) if isinstance(one, Gap) else one for one in kept]

    def _count(self, tallies: Mapping[str, Tally] | None) -> None:
        """Count what became of a batch, if one was stored."""
        if tallies is None:
            return
        for stream, tally in tallies.items():
            self._tallies[stream] = self._tallies.get(stream, Tally()) + tally
        self._observe(BatchStored(self._session.plan.run_id, dict(self._tallies)))

    # Asking.

    async def _ask(self, guest: Guest, question: Interaction) -> None:
        seconds = seconds_to_answer(question)
        self._observe(Asked(self._session.plan.run_id, question.kind, seconds))
        asking = asyncio.create_task(self._answer(question, seconds))
        listening = asyncio.create_task(self._listen(guest, seconds + limits.STOP_SECONDS))
        cancelling = asyncio.create_task(self._cancelling.wait())
        await asyncio.wait({asking, listening, cancelling}, return_when=asyncio.FIRST_COMPLETED)
        await _drop(cancelling)
        if listening.done() or self._session.cancelled:
            await _drop(asking)
            await _drop(listening)
            return
        await _drop(listening)
        response = await asking
        self._session.answered(response)
        self._say(guest, encode(response))
        self._observe(Answered(self._session.plan.run_id, response.status))

    async def _listen(self, guest: Guest, seconds: float) -> None:
        """Hear a connector that waits for an answer, until it speaks or leaves: both end the run."""
        deadline = clock.monotonic() + seconds
        while (left := deadline - clock.monotonic()) > 0:
            read = await self._read(guest, left)
            if self._speaks(read.lines):
                return
            if read.ended:
                self._session.stop("left_while_waiting", "The connector ended while its question was open.")
                return

    def _speaks(self, lines: Iterable[bytes]) -> bool:
        """Take lines while a question is open; True where one is more than blank, and so a violation."""
        return any(self._session.receive(line) is not None for line in lines)

    async def _answer(self, question: Interaction, seconds: float) -> InteractionResponse:
        if self._respondent is None:
            return InteractionResponse(question.request_id, "cancelled")
        try:
            async with asyncio.timeout(seconds) as timer:
                data = await self._respondent.answer(question)
        except TimeoutError:
            return InteractionResponse(question.request_id, "timeout")
        if timer.expired():  # an answer that came for all that comes too late (CP-708)
            return InteractionResponse(question.request_id, "timeout")
        if data is None:
            return InteractionResponse(question.request_id, "cancelled")
        self._unsaid.add(question, data)
        return InteractionResponse(question.request_id, "success", dict(data))

    # Ending.

    async def _stop_when_cancelled(self, guest: Guest) -> None:
        await self._cancelling.wait()
        with contextlib.suppress(HeadwaterError):
            await self._ledger.note_cancelled()
        await guest.stop()

    async def _part(self, guest: Guest) -> Exit:
        """Let a child that said DONE leave by itself, and end any other."""
        await guest.close_input()
        if not self._session.is_over:
            if (exit_ := await guest.wait(limits.EXIT_SECONDS)) is not None:
                return exit_
            seconds = f"{limits.EXIT_SECONDS:g} seconds"
            self._session.stop("did_not_exit", f"The connector still ran {seconds} after it closed its stdout.")
        return await guest.stop()

    async def _conclude(self, exit_: Exit, stderr_tail: str) -> Outcome:
        session = self._session
        verdict, decision = session.end(exit_, truncated=self._truncated)
        stderr_tail, facts = self._unsaid.scrub(stderr_tail), self._unsaid.scrub_facts(session.facts)
        commit = await self._ledger.conclude(Conclusion(verdict, decision, facts, stderr_tail))
        if commit.failed is not None:
            verdict = Verdict("failed", "checkpoint_write_failed", f"The cursor of {commit.failed} was not written.")
            decision = _partly(decision, commit.committed, commit.failed)
        tried = len(session.plan.retries)
        return Outcome(session.plan.run_id, verdict, decision, self._tallies, facts, stderr_tail, tried)


def _partly(decision: Decision, committed: tuple[str, ...], failed: str) -> Decision:
    missed = [stream for stream in decision.committed if stream not in committed]
    reasons = [
        Withheld(stream, "write_failed", "Its cursor could not be written.")
        if stream == failed
        else Withheld(stream, "not_reached", "The run failed before its cursor was written.")
        for stream in missed
    ]
    return replace(decision, committed=committed, withheld=(*decision.withheld, *reasons))


async def _drop(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
