"""One place for questions that somebody answers later, from another window or another face."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater import clock
from headwater.collect.ports import Respondent
from headwater.wire.messages import Interaction, seconds_to_answer


@dataclass(frozen=True)
class Waiting:
    """A question that is open: its own id, and when its connector stops waiting, on the monotonic clock."""

    question_id: str
    question: Interaction
    until: float

    @property
    def seconds_left(self) -> float:
        """How long an answer is still of use."""
        return max(0.0, self.until - clock.monotonic())


class Inbox:
    """The open question of one run. It is held in memory and nowhere else, and so is its answer."""

    def __init__(self) -> None:
        self.waiting: Waiting | None = None
        self._answer: asyncio.Future[Mapping[str, Any] | None] | None = None

    async def answer(self, question: Interaction) -> Mapping[str, Any] | None:
        """Wait for `give`. See `Respondent.answer`."""
        self._answer = asyncio.get_running_loop().create_future()
        until = clock.monotonic() + seconds_to_answer(question)
        self.waiting = Waiting(clock.identifier("question"), question, until)
        try:
            return await self._answer
        finally:
            self.waiting = None

    def give(self, question_id: str, data: Mapping[str, Any] | None) -> bool:
        """Answer the open question, or decline it with None; False where it is not open any more (CP-708)."""
        if self.waiting is None or self.waiting.question_id != question_id:
            return False
        if self._answer is None or self._answer.done():
            return False
        self._answer.set_result(data)
        return True


class Several:
    """Several who may answer: the first one who does, or who declines, speaks for all."""

    def __init__(self, respondents: Sequence[Respondent]) -> None:
        self._respondents = respondents

    async def answer(self, question: Interaction) -> Mapping[str, Any] | None:
        """See `Respondent.answer`."""
        asking = [asyncio.ensure_future(one.answer(question)) for one in self._respondents]
        try:
            done, _ = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
            return next(iter(done)).result()
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
