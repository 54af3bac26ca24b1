"""Answering a connector's questions: from a file, or at the terminal."""

import asyncio
import contextlib
import os
import termios
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from headwater import limits
from headwater.cli.output import plain
from headwater.errors import refuse
from headwater.wire.messages import Interaction

_HIDDEN = ("password", "passcode", "secret", "token", "otp", "code", "pin")


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One prepared answer."""

    kind: str
    data: dict[str, Any]

    def __repr__(self) -> str:
        """Show nothing of the answer."""
        return f"Answer({self.kind!r})"


class AnswerFile:
    """Answers from a document `{"answers":[{"kind","data"}]}`, used in order; another kind is a refusal."""

    def __init__(self, path: Path) -> None:
        try:
            content = path.read_bytes()[: limits.DOCUMENT_BYTES]
            document = msgspec.json.decode(content, type=dict[str, list[Answer]])
            self._answers = list(document["answers"])
        except (OSError, msgspec.DecodeError, KeyError) as error:
            message = 'The answer file cannot be read as {"answers":[{"kind","data"}]}.'
            raise refuse("invalid_input", message, safe="Nothing was started.") from error

    async def answer(self, question: Interaction) -> Mapping[str, Any] | None:
        """See `Respondent.answer`."""
        if not self._answers or self._answers[0].kind != question.kind:
            return None
        return self._answers.pop(0).data


class Terminal:
    """The person at the terminal. Secrets are not echoed, and the terminal is left as it was found."""

    def __init__(self, device: str = "/dev/tty") -> None:
        self._device = device

    @classmethod
    def here(cls) -> "Terminal | None":
        """Return the controlling terminal, None where there is none."""
        try:
            os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
        except OSError:
            return None
        return cls()

    async def answer(self, question: Interaction) -> Mapping[str, Any] | None:
        """See `Respondent.answer`. End of input declines, and so does a terminal that goes away."""
        try:
            descriptor = os.open(self._device, os.O_RDWR | os.O_NOCTTY)
        except OSError:
            return None
        try:
            return await _asked(descriptor, question)
        except (OSError, termios.error):
            return None
        finally:
            os.close(descriptor)


async def _asked(descriptor: int, question: Interaction) -> Mapping[str, Any] | None:
    os.write(descriptor, f"\n{plain(question.message)}\n".encode())
    answers = {}
    for name, label, hidden in _wanted(question):
        text = await _ask(descriptor, label, hidden=hidden)
        if text is None:
            return None
        answers[name] = text
    return answers


def _wanted(question: Interaction) -> Iterator[tuple[str, str, bool]]:
    """Yield (member, label, hidden) for each thing to ask."""
    schema = {} if question.schema is UNSET else question.schema
    properties = schema.get("properties")
    if isinstance(properties, dict) and properties:
        for name, given in properties.items():
            rule = given if isinstance(given, dict) else {}
            secret = rule.get("format") == "password" or any(word in name.lower() for word in _HIDDEN)
            yield name, f"{plain(rule.get('title') or name)}: ", secret
    elif question.kind == "credentials":
        yield "username", "username: ", False
        yield "password", "password: ", True
    elif question.kind == "otp":
        yield "code", "code: ", True
    else:
        yield "confirmation", "Press Enter when it is done (Ctrl-D to give up) ", False


async def _ask(descriptor: int, label: str, *, hidden: bool) -> str | None:
    with _echo(descriptor, shown=not hidden):
        os.write(descriptor, label.encode())
        line = await _line(descriptor)
    if hidden:
        os.write(descriptor, b"\n")
    return line.decode("utf-8", "replace").rstrip("\r\n") if line.endswith(b"\n") else None


async def _line(descriptor: int) -> bytes:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, 64 * limits.KIB)


@contextlib.contextmanager
def _echo(descriptor: int, *, shown: bool) -> Iterator[None]:
    before = termios.tcgetattr(descriptor)
    changed = [*before[:3], before[3] if shown else before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(descriptor, termios.TCSAFLUSH, changed)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
