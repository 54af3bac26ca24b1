"""What a person or a program gets to see. stdout carries the result and nothing else; the rest is stderr."""

import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click
import msgspec

from headwater.errors import HeadwaterError

_PRESENTATION = {"cli_parse": 2, "cli_input": 2, "cli_internal": 1}


class Output:
    """Prints results and failures, as tables and sentences or as one JSON object (CLI-001, CLI-002)."""

    def __init__(self, mode: str) -> None:
        self.mode = mode

    @property
    def is_json(self) -> bool:
        """Whether a program reads this."""
        return self.mode == "json"

    def result(self, value: Any, human: Callable[[], Iterable[str]]) -> None:
        """Print a result: the value in the envelope, or the lines that `human` makes of it."""
        if self.is_json:
            sys.stdout.buffer.write(msgspec.json.encode({"ok": True, "result": value}) + b"\n")
            return
        for line in human():
            sys.stdout.write(f"{line}\n")

    def note(self, text: str) -> None:
        """Tell a person something on the way; a program is not bothered with it (CLI-010)."""
        if not self.is_json:
            sys.stderr.write(f"{text}\n")

    def failure(self, error: HeadwaterError) -> int:
        """Print a failure and return its exit status."""
        if self.is_json:
            data = {"kind": error.kind, "code": error.code, "stage": error.stage, "next_action": error.next_action}
            sentences = {"message": error.message, "safe": error.safe, "command": error.command}
            data.update({name: text for name, text in sentences.items() if text})
            self._refusal("failure", {**data, **error.data})
        else:
            sys.stderr.write(f"headwater: {plain(error.message)}\n")
            for line in error.data.get("explanation", ()) if isinstance(error.data, dict) else ():
                sys.stderr.write(f"  {plain(line)}\n")
            if error.safe:
                sys.stderr.write(f"  {error.safe}\n")
            if error.command:
                sys.stderr.write(f"  Next: {typed(error.command)}\n")
        return error.exit_status

    def misuse(self, error: click.ClickException) -> int:
        """Print a parse refusal, without repeating what was typed (CLI-004, CLI-011)."""
        shape = isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter)
        code = "cli_input" if shape else "cli_parse"
        if self.is_json:
            self._refusal(code, {})
        else:
            context = getattr(error, "ctx", None)
            path = context.command_path if context is not None else "headwater"
            sys.stderr.write(f"headwater: {_misuse(error)}\n  Next: {typed(path)} --help\n")
        return _PRESENTATION[code]

    def internal(self) -> int:
        """Print that something went wrong inside, and nothing of what."""
        if self.is_json:
            self._refusal("cli_internal", {})
        else:
            sys.stderr.write("headwater: Something went wrong inside Headwater. What was stored is whole.\n")
        return _PRESENTATION["cli_internal"]

    def _refusal(self, code: str, data: Mapping[str, Any]) -> None:
        line = msgspec.json.encode({"ok": False, "error": {"code": code, "data": data}})
        sys.stderr.write(line.decode() + "\n")


def _misuse(error: click.ClickException) -> str:
    match error:
        case click.MissingParameter():
            name = error.param.human_readable_name if error.param else "an argument"
            return f"{name} is missing."
        case click.NoSuchOption():
            return "There is no such option."
        case click.BadParameter():
            name = error.param.human_readable_name if error.param else str(error.param_hint or "an argument")
            return f"The value of {name} does not fit."
        case click.UsageError() if "No such command" in error.message:
            return "There is no such command."
    return "The command line does not fit."


def typed(command: str) -> str:
    """Return a command as it has to be typed here: through the checkout's launcher where nothing is installed."""
    return command if shutil.which("headwater") else command.replace("headwater", "./headwater", 1)


def plain(value: object) -> str:
    """Return text without control characters, so that no data can drive a terminal."""
    text = "" if value is None else str(value)
    return "".join(c if c.isprintable() else " " if c in "\n\t\r" else "\ufffd" for c in text)


def table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], *, empty: str) -> list[str]:
    """Lay rows out under headings; numbers stand to the right. `columns` maps members to headings."""
    if not rows:
        return [empty]
    numeric = {name for name in columns if all(isinstance(row.get(name), int | None) for row in rows)}
    cells = [[_cell(row.get(name)) for name in columns] for row in rows]
    heads = list(columns.values())
    widths = [max(_width(text) for text in column) for column in zip(heads, *cells, strict=True)]
    lines = []
    for row in [heads, *cells]:
        parts = [
            _pad(text, width, right=name in numeric) for text, width, name in zip(row, widths, columns, strict=True)
        ]
        lines.append("  ".join(parts).rstrip())
    return lines


def pairs(values: Mapping[str, Any]) -> list[str]:
    """Lay out single values as `name: value` lines, without the empty ones."""
    return [f"{name}: {_cell(value)}" for name, value in values.items() if value is not None]


def clip(value: object, width: int) -> str:
    """Cut text to a width in columns."""
    text = plain(value)
    if _width(text) <= width:
        return text
    kept = ""
    for character in text:
        if _width(kept + character) >= width:
            break
        kept += character
    return kept + "…"


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else plain(value)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _pad(text: str, width: int, *, right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if right else text + space
