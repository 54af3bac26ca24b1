"""What other processes of the owner may ask of a live run: its open question, an answer to it, its end.

A live run has a socket in the state directory, named after it. Nothing that goes over it is kept, so an answer
is in the memory of two processes and nowhere else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from headwater.link import unix
from headwater.wire.messages import Interaction

if TYPE_CHECKING:
    from headwater.collect.inbox import Inbox
    from headwater.collect.runs import Run


class Asked(msgspec.Struct, frozen=True):
    """What a process asks: nothing but how things stand, an end, or an answer; `data` is None for a refusal."""

    want: Literal["standing", "cancel", "answer"]
    question_id: str = ""
    data: dict[str, Any] | None = None

    def __repr__(self) -> str:
        """Show nothing of the answer."""
        return f"Asked({self.want!r})"


class Question(msgspec.Struct, frozen=True):
    """An open question, as it stands in a list."""

    question_id: str
    run_id: str
    instance: str
    asked: Interaction
    seconds_left: float


@asynccontextmanager
async def reachable(folder: Path, run: Run, inbox: Inbox) -> AsyncIterator[None]:
    """Let other processes reach a run while the context is open."""

    def standing() -> dict[str, Any]:
        waiting, told = inbox.waiting, {"ok": True, "instance": run.instance}
        if waiting is None:
            return told
        asked = (waiting.question, waiting.seconds_left)
        return {**told, "question": Question(waiting.question_id, run.run_id, run.instance, *asked)}

    async def answering(message: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            asked = msgspec.convert(message, Asked)
        except msgspec.ValidationError:
            return {"ok": False}
        match asked.want:
            case "standing":
                return standing()
            case "cancel":
                run.cancel()
                return {"ok": True}
            case "answer":
                return {"ok": inbox.give(asked.question_id, asked.data)}

    async with unix.serving(folder / f"{run.run_id}.sock", answering):
        yield


def questions(folder: Path) -> list[Question]:
    """Return the open questions of every live run, by run. A socket that a killed run left is cleared away."""
    return [question for path in _live(folder) if (question := _standing(path)) is not None]


def answer(folder: Path, question_id: str, data: Mapping[str, Any] | None) -> bool:
    """Answer an open question, or decline it with None; False where it is not open any more."""
    for question in questions(folder):
        if question.question_id == question_id:
            path = folder / f"{question.run_id}.sock"
            said = unix.ask(path, {"want": "answer", "question_id": question_id, "data": data})
            return said is not None and said.get("ok") is True
    return False


def cancel(folder: Path, run_id: str) -> bool:
    """End a live run as cancelled; False where it is not live."""
    path = folder / f"{run_id}.sock"
    return path in _live(folder) and unix.ask(path, {"want": "cancel"}) == {"ok": True}


def live_runs(folder: Path, instance: str) -> list[str]:
    """Return the live runs of an instance."""
    said = {path.stem: unix.ask(path, {"want": "standing"}) for path in _live(folder)}
    return [run_id for run_id, one in said.items() if one is not None and one.get("instance") == instance]


def _standing(path: Path) -> Question | None:
    said = unix.ask(path, {"want": "standing"})
    if said is None:
        path.unlink(missing_ok=True)
    return None if said is None or "question" not in said else msgspec.convert(said["question"], Question)


def _live(folder: Path) -> Iterator[Path]:
    return iter(sorted(folder.glob("run_*.sock")))
